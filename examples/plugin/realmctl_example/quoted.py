"""The tagger `quoted` of `tag --tagger`: titles of books, songs and films, which stand in quotation marks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from realmctl.corpus.blocks import Block
from realmctl.spans.salient import SalientSpan, Tagger

QUOTED = re.compile(r"\"(.+?)\"|“(.+?)”")


class QuotedTagger(Tagger):
    """It tags what is quoted in a block. As with every tagger, `tag` drops what crosses sentences or is too long."""

    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        return [
            [SalientSpan(match.start() + 1, match.end() - 1, "QUOTED") for match in QUOTED.finditer(block.text)]
            for block in blocks
        ]

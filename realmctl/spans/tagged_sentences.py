"""Turn tagged blocks into sentences that can become queries (REALM section 3.4).

Each span must lie in one sentence, consist of whole wordpieces, and be short enough to mask. All other spans are
dropped and counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from realmctl.corpus.blocks import Block
from realmctl.spans.dates import find_dates
from realmctl.spans.salient import SalientSpan, Tagger, covered_tokens, resolve_overlaps, split_by_sentence
from realmctl.spans.settings import TagSettings
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.scripts import JOINED_LETTER
from realmctl.tokens.tokenizer import Tokenizer

COUNTED = (
    *("blocks", "blocks_without_spans", "sentences", "sentences_with_spans", "spans", "dropped_crossing"),
    *("dropped_unaligned", "dropped_too_long", "dropped_past_query", "dropped_overlapping"),
)


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence with at least one salient span.

    `block` is the row of its block, and `number` its position there. `tokens` are its wordpiece ids, int32 [n], without
    special tokens. `spans` are character offsets in `text`. `token_spans` has (first, last + 1) wordpieces of each
    span.
    """

    block: int
    id: str
    title: str
    number: int
    text: str
    tokens: NDArray[np.int32]
    spans: list[SalientSpan]
    token_spans: list[tuple[int, int]]

    def record(self) -> dict[str, object]:
        """Return the fields for sentences.jsonl.zst."""
        return {
            "block": self.block,
            "id": self.id,
            "title": self.title,
            "sentence": self.number,
            "text": self.text,
            "spans": [list(span) for span in self.spans],
        }


def tagged_sentences(
    blocks: Sequence[Block],
    tagger: Tagger,
    wordpiece: Tokenizer,
    rules: TagSettings,
    counts: Counter[str],
    first_row: int = 0,
    language: str = "en",
) -> Iterator[TaggedSentence]:
    """Yield the sentences with salient spans of `blocks`, in order. `first_row` is the row of the first block, `language` that of dates.

    `counts` receives the names in COUNTED and spans_LABEL. A span is dropped as crossing (it is not inside one
    sentence), unaligned (it contains no whole wordpiece), too_long (more than `max_masks` wordpieces), past_query (it
    ends after the end of the query) or overlapping (a longer span covers some of it).
    """
    for row, (block, names) in enumerate(zip(blocks, tagger.tag(blocks), strict=True), first_row):
        spans = {span for span in _with_dates(block, names, rules, language) if rules.wants(span.label)}
        by_sentence, crossing = split_by_sentence(spans, block.sentences)
        sentences = list(_maskable_sentences(row, block, by_sentence, wordpiece, rules, counts))
        counts.update(blocks=1, blocks_without_spans=not sentences, sentences=len(block.sentences))
        counts.update(sentences_with_spans=len(sentences), dropped_crossing=crossing)
        for sentence in sentences:
            counts.update(name for span in sentence.spans for name in ("spans", f"spans_{span.label}"))
        yield from sentences


def _with_dates(block: Block, names: Iterable[SalientSpan], rules: TagSettings, language: str) -> Iterator[SalientSpan]:
    yield from names
    if rules.dates:
        for offset, end in block.sentences:
            for span in find_dates(block.text[offset:end], language):
                yield SalientSpan(offset + span.start, offset + span.end, span.label)


def _maskable_sentences(
    row: int,
    block: Block,
    by_sentence: Sequence[Sequence[SalientSpan]],
    wordpiece: Tokenizer,
    rules: TagSettings,
    counts: Counter[str],
) -> Iterator[TaggedSentence]:
    numbers = [number for number, spans in enumerate(by_sentence) if spans]
    texts = [block.text[slice(*block.sentences[number])] for number in numbers]
    for number, text, (tokens, offsets) in zip(numbers, texts, wordpiece.encode_batch(texts), strict=True):
        if "unknown-words" in rules.official and not wordpiece.aligns(text, tokens):
            counts["dropped_unknown_words"] += len(by_sentence[number])
            continue
        places = _places(by_sentence[number], text, offsets.tolist(), rules, counts)
        distinct = {(span.start, span.end): span for span in sorted(places)}
        kept = [*distinct.values()] if "overlapping-spans" in rules.official else resolve_overlaps(places)
        counts["dropped_overlapping"] += len(places) - len(kept)
        if kept:
            yield TaggedSentence(
                block=row,
                id=block.id,
                title=block.title,
                number=number,
                text=text,
                tokens=tokens,
                spans=kept,
                token_spans=[places[span] for span in kept],
            )


def _places(
    spans: Iterable[SalientSpan],
    text: str,
    offsets: Sequence[tuple[int, int]],
    rules: TagSettings,
    counts: Counter[str],
) -> dict[SalientSpan, tuple[int, int]]:
    """Return the wordpieces of each span that can be masked, and count the others."""
    places: dict[SalientSpan, tuple[int, int]] = {}
    for span in spans:
        joined = JOINED_LETTER.search(text, span.start, span.end) is not None
        place = covered_tokens(span, offsets, joined)
        if place is None:
            counts["dropped_unaligned"] += 1
        elif place[1] - place[0] > rules.max_masks and "long-spans" not in rules.official:
            counts["dropped_too_long"] += 1
        elif place[1] > rules.query_length - AROUND_ONE:
            counts["dropped_past_query"] += 1
        else:
            places[span] = place
    return places

"""Count how many spans of tagged sentences occur in other blocks: an upper bound of what retrieval can contribute.

    python examples/restated.py SPANS BLOCKS [--sentences 2000]

A hidden span can be copied from a block only if it occurs there. A block with two different spans of a sentence may
state the same fact. The block of the sentence itself does not count, because pre-training excludes it. Words are
compared in lower case. All blocks are read into memory.
"""

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.records import Records
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError


class Blocks:
    """The blocks that contain each of some words. `documents` and `uids` are indexed by row, as in the artifact."""

    def __init__(self, artifact: Artifact, sought: Set[str]) -> None:
        self._texts, self.documents = list[str](), list[str]()
        self._rows: dict[str, set[int]] = defaultdict(set)
        for row, block in enumerate(Corpus(artifact)):
            self.documents.append(block.document)
            self._texts.append(words_of(f"{block.title} {block.text}"))
            for word in sought.intersection(self._texts[-1].split()):
                self._rows[word].add(row)
        self.uids = np.load(artifact.file("uids.npy"))

    def holding(self, words: str) -> set[int]:
        """Return the rows of the blocks that contain these words next to each other. Each of them must be sought."""
        rows = set[int].intersection(*(self._rows.get(word, set()) for word in words.split()))
        return {row for row in rows if words in self._texts[row]}


def words_of(text: str) -> str:
    """Return the lower-case words and numbers, with a space before, between and after them."""
    return " ".join(["", *re.findall(r"\w+", text.lower()), ""])


def spans_of(sentence: dict[str, Any]) -> set[str]:
    """Return the words of each different span of a sentence."""
    return {words_of(sentence["text"][start:stop]) for start, stop, _ in sentence["spans"]} - {" "}


def restated(sentences: list[tuple[dict[str, Any], int]], blocks: Blocks) -> dict[str, tuple[int, int]]:
    """Return {name of a count: (count, total)}. `sentences` are records with the uid of their block."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for sentence, uid in sentences:
        own = set(np.flatnonzero(blocks.uids == uid).tolist())
        document = sentence["id"].rpartition("-")[0]
        holding = [blocks.holding(span) - own for span in spans_of(sentence)]
        for rows in holding:
            _count(counts["spans that stand in another block"], bool(rows))
            elsewhere = any(blocks.documents[row] != document for row in rows)
            _count(counts["spans that stand in another document"], elsewhere)
        if len(holding) > 1:
            together = any(first & second for at, first in enumerate(holding) for second in holding[:at])
            _count(counts["sentences of two spans or more, two of which stand in one other block"], together)
    return {name: (found, of) for name, (found, of) in counts.items()}


def _count(pair: list[int], found: bool) -> None:
    pair[0] += found
    pair[1] += 1


def main() -> None:
    """Run the command line: print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spans", type=Path)
    parser.add_argument("blocks", type=Path)
    parser.add_argument(
        "--sentences", type=int, default=2000, help="number of sentences, drawn at random (default 2000)"
    )
    given = parser.parse_args()
    if given.sentences < 1:
        parser.error("--sentences must be at least 1")
    try:
        spans = open_artifact(given.spans)
        uids, records = np.load(spans.file("uids.npy")), Records(spans.file("sentences.jsonl.zst"))
        drawn = sorted(random.Random(0).sample(range(len(records)), min(given.sentences, len(records))))
        sentences = [(records[row], int(uids[row])) for row in drawn]
        sought = {word for sentence, _ in sentences for span in spans_of(sentence) for word in span.split()}
        blocks = Blocks(open_artifact(given.blocks), sought)
    except (InputError, OSError) as error:
        raise SystemExit(f"restated: {error}") from None
    for name, (found, of) in restated(sentences, blocks).items():
        print(f"{name}: {found:,} of {of:,} ({found / of:.1%})")


if __name__ == "__main__":
    main()

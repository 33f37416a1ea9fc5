"""Pieces of sentences as queries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from realmctl.artifacts import Writer
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.extras.ir.ranking.trec import trec_name
from realmctl.tokens.scripts import WITHOUT_BLANKS
from realmctl.training.evaluation.cloze_recall import held_out
from realmctl.training.evaluation.held_out import left_out

if TYPE_CHECKING:
    from realmctl.lab.teachers.cut_queries import CutQueries

FEWEST_WORDS = 4
"""Words of the shortest sentence that gives a query."""
WORD = re.compile(rf"[{WITHOUT_BLANKS}]{{1,2}}|[^\s{WITHOUT_BLANKS}]+")
"""In a script without blanks two characters count as a word."""


def write_queries(settings: CutQueries, out: Writer) -> dict[str, int]:
    """Write queries.jsonl, qrels/train.tsv and corpus.jsonl, and return the number of queries.

    Raises InputError where no block has a sentence that is long enough and measures nothing.
    """
    corpus, rng = Corpus(settings.blocks), np.random.default_rng(settings.seed)
    kept, spared = held_out(corpus, settings.sentences, 0), {*left_out(settings.held_out, corpus).tolist()}
    queries: list[dict[str, str]] = []
    lines, texts, known = ["query-id\tcorpus-id\tscore\n"], [], set[int]()
    for row in rng.permutation(len(corpus)).tolist():
        if len(queries) == settings.sample:
            break
        if row in spared:
            continue
        block, uid = corpus.block(row), int(corpus.uid[row])
        pieces = [*_pieces(block, kept.get(row, set()), settings.words, rng)]
        if not pieces or uid in known:
            continue
        known.add(uid)
        name = trec_name(block.id)
        queries.append({"_id": f"{name}:cut", "text": pieces[int(rng.integers(len(pieces)))]})
        lines.append(f"{name}:cut\t{name}\t1\n")
        texts.append({"_id": name, "title": block.title, "text": block.text})
    if not queries:
        raise InputError(
            f"{settings.blocks} has no sentence of {FEWEST_WORDS} words or more beside those that are measured with."
        )
    out.file("qrels/train.tsv").write_text("".join(lines), encoding="utf-8")
    for file, records in (("queries.jsonl", queries), ("corpus.jsonl", texts)):
        with out.file(file).open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return {"queries": len(queries)}


def _pieces(block: Block, measured: set[int], words: int, rng: np.random.Generator) -> Iterator[str]:
    """A piece of each sentence that measures nothing, of at most so many words."""
    for number, (start, stop) in enumerate(block.sentences):
        sentence = block.text[start:stop]
        count = sum(1 for _ in WORD.finditer(sentence))
        if number not in measured and count >= FEWEST_WORDS:
            yield words_of(sentence, int(rng.integers(max(1, count - words + 1))), words)


def words_of(text: str, first: int, count: int) -> str:
    """So many words of a text from a place on, with one blank where there are blanks; fewer where it ends."""
    spans = [found.span() for found in islice(WORD.finditer(text), first, first + count)]
    return " ".join(text[spans[0][0] : spans[-1][1]].split()) if spans else ""

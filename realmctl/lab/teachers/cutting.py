"""Pieces of sentences as queries."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from realmctl.artifacts import Writer
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.extras.ir.ranking.trec import trec_name
from realmctl.training.evaluation.cloze_recall import held_out
from realmctl.training.evaluation.held_out import left_out

if TYPE_CHECKING:
    from realmctl.lab.teachers.cut_queries import CutQueries

FEWEST_WORDS = 4
"""Words of the shortest sentence that gives a query."""


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
        found = block.text[start:stop].split()
        if number not in measured and len(found) >= FEWEST_WORDS:
            first = int(rng.integers(max(1, len(found) - words + 1)))
            yield " ".join(found[first : first + words])

"""What both sides of the comparison start from: sizes, words, blocks, queries and questions, all from one seed.

Imports numpy alone, for it runs beside transformers 4.57.6 too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

SEED = 20
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
SYLLABLES = ["".join(letters) for letters in product("bdfgklmnprst", "aeiou")]
CANDIDATES, QUESTIONS = 3, 6


@dataclass(frozen=True)
class Size:
    """How large the models are, and how much there is to read."""

    hidden: int
    layers: int
    heads: int
    projection: int
    words: int
    blocks: int
    body: int
    queries: int
    reader_length: int
    span_width: int
    searcher_beam: int
    reader_beam: int


SIZES = {
    "golden": Size(8, 2, 2, 8, 90, 12, 14, 2, 20, 4, 6, 3),
    "wide": Size(128, 4, 4, 128, 2000, 200, 90, 6, 100, 10, 50, 5),
}


def config(size: Size) -> dict[str, Any]:
    """RealmConfig, with the wrong numbers for [PAD], [CLS] and [SEP] that the published ones have."""
    return {
        "vocab_size": size.words,
        "hidden_size": size.hidden,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": 2 * size.hidden,
        "max_position_embeddings": size.body + 30,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "retriever_proj_size": size.projection,
        "num_candidates": CANDIDATES,
        "max_span_width": size.span_width,
        "reader_beam_size": size.reader_beam,
        "searcher_beam_size": size.searcher_beam,
        "reader_seq_len": size.reader_length,
        "num_block_records": size.blocks,
    }


def inputs(size: Size) -> dict[str, Any]:
    """JSON: `words`; `titles`, `bodies`, `questions`, `answers` as texts; `queries` as ids with [MASK], where and what
    is hidden, and the blocks that are candidates beside the null document.

    The answers are one or two words of some block, and of no block in the last question.
    """
    rng = np.random.default_rng(SEED)
    pairs = rng.permutation(len(SYLLABLES) ** 2)[: size.words - len(SPECIALS)].tolist()
    plain = [SYLLABLES[pair // len(SYLLABLES)] + SYLLABLES[pair % len(SYLLABLES)] for pair in pairs]
    said, unsaid = plain[:-1], plain[-1]

    def some(least: int, most: int) -> list[str]:
        return [said[number] for number in rng.integers(len(said), size=int(rng.integers(least, most)))]

    bodies = [some(size.body // 2, size.body) for _ in range(size.blocks)]
    questions, answers = [], []
    for body in bodies[:QUESTIONS]:
        first, width = int(rng.integers(len(body) - 2)), int(rng.integers(1, 3))
        questions.append(" ".join([*body[:2], *some(1, 3)]))
        answers.append([" ".join(body[first : first + width]), *some(5, 6)])
    answers[-1] = [unsaid]
    return {
        "words": [*SPECIALS, *plain],
        "titles": [" ".join(some(1, 3)) for _ in bodies],
        "bodies": [" ".join(body) for body in bodies],
        "questions": questions,
        "answers": answers,
        "queries": [_query(size, rng) for _ in range(size.queries)],
    }


def _query(size: Size, rng: np.random.Generator) -> dict[str, Any]:
    ids = rng.integers(len(SPECIALS), size.words, size=int(rng.integers(5, 9))).tolist()
    hidden = sorted(rng.choice(len(ids), int(rng.integers(1, 4)), replace=False).tolist())
    targets = [ids[place] for place in hidden]
    for place in hidden:
        ids[place] = MASK
    blocks = rng.choice(size.blocks, CANDIDATES - 1, replace=False).tolist()
    return {"ids": ids, "places": [place + 1 for place in hidden], "targets": targets, "candidates": blocks}

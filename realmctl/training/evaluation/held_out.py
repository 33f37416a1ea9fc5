"""Questions that were written for documents which training leaves out: a frozen set, by which the training is measured.

The artifact is a folder in BEIR's layout, as `generate-queries` makes it: queries.jsonl, and qrels/train.tsv with the block of each query, whose white
space is written as in a URL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError

SPACE = re.compile(r"\s")


def questions_of(questions: Artifact, corpus: Corpus) -> Mapping[int, str]:
    """Return {row of a block: the first question that was written for it}, by rising row.

    Raises InputError for malformed files, and if the corpus has fewer than two of the blocks.
    """
    try:
        with questions.file("queries.jsonl").open(encoding="utf-8") as lines:
            texts = {str(record["_id"]): str(record["text"]) for record in map(json.loads, lines)}
        rows = questions.file("qrels/train.tsv").read_text(encoding="utf-8").splitlines()[1:]
        asked = {name: texts[query] for query, name, _ in (row.split("\t") for row in reversed(rows))}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{questions} holds no questions of blocks ({error}). Make it again.") from None
    names = ((row, SPACE.sub(lambda space: quote(space[0]), block.id)) for row, block in enumerate(corpus))
    found = {row: asked[name] for row, name in names if name in asked}
    if len(found) < 2:
        raise InputError(
            f"{corpus.artifact} has {len(found)} of the {len(asked)} blocks that {questions} asks of, and 2 are needed. Write questions for these blocks."
        )
    return found


def left_out(questions: Artifact | None, corpus: Corpus) -> NDArray[np.int64]:
    """Return the rows of all blocks of the documents that the questions ask of. Errors: as of `questions_of`."""
    if questions is None:
        return np.empty(0, np.int64)
    documents = {corpus.block(row).document for row in questions_of(questions, corpus)}
    return np.array([row for row, block in enumerate(corpus) if block.document in documents], np.int64)

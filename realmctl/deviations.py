"""`--official`: behaviour of the official code that differs from our defaults, by stage.

Only deviations that serve reproduction alone are here; the others have options of their own. docs/concepts/fidelity.md lists all.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Literal

TagDeviation = Literal["long-spans", "overlapping-spans", "unknown-words"]
IctDeviation = Literal["single-sentences"]
PretrainDeviation = Literal["span-draws", "shards", "double-candidates", "snapshot-queries"]
FinetuneDeviation = Literal["empty-steps"]
EvalDeviation = Literal["answer-text"]

MEANING: Mapping[str, str] = {
    "long-spans": "keep spans of more than --max-masks wordpieces; pre-training hides the whole span and predicts its beginning",
    "overlapping-spans": "keep all overlapping spans instead of the longest alone",
    "unknown-words": "skip sentences with [UNK], with an invisible character inside a word, and those whose length changes in lower case without accents",
    "single-sentences": "also draw blocks of one sentence, as often as a sentence stays in its block",
    "span-draws": "draw one span of each block at random instead of taking all spans in turn",
    "shards": "pass over 4 random shards at a time instead of over all data, which are cut into 5,000 shards",
    "double-candidates": "leave out a query whose hits contain copies of one block",
    "snapshot-queries": "search with the query encoder of the index's snapshot instead of the one in training",
    "answer-text": "join the words of an answer with spaces, so that `U.S.` becomes `U . S .`, and complete a word of which only a part was chosen",
    "empty-steps": "also step the optimizer on batches without a positive, where no retrieved block holds an answer",
}


def explained(deviations: object, meaning: Mapping[str, str] = MEANING) -> str:
    """The help text of `--official` for a stage with these deviations."""
    meanings = "; ".join(f"{name}: {meaning[name]}" for name in typing.get_args(deviations))
    return f"As the official code does, by names with commas between. {meanings}."

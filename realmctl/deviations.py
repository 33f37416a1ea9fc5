"""`--official`: habits of the official code that are not our defaults, by the stage that takes them up.

Only what nobody wants but to reproduce it is here; what is a choice has an option of its own. docs/concepts/fidelity.md has all.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, Literal

TagDeviation = Literal["long-spans", "overlapping-spans", "unknown-words"]
PretrainDeviation = Literal["span-draws", "shards", "double-candidates", "snapshot-queries"]
FinetuneDeviation = Literal["empty-steps"]
EvalDeviation = Literal["answer-text"]

MEANING: Mapping[str, str] = {
    "long-spans": "spans of more than --max-masks wordpieces stay; pre-training hides all of one and asks for its beginning",
    "overlapping-spans": "spans that overlap all stay, not the longest alone",
    "unknown-words": "sentences with [UNK], or of another length in lower case and without accents, are no queries",
    "span-draws": "a step takes blocks, and of each one of its spans by chance, not all spans in turn",
    "shards": "the data is passed over 4 random shards of 5,000 at a time, not as a whole",
    "double-candidates": "a query with copies among its hits is left out of its batch",
    "snapshot-queries": "the query encoder that searches is that of the index, not the live one",
    "answer-text": "an answer is its words joined by spaces, so that U.S. comes out as U . S .",
    "empty-steps": "the optimizer steps although no answer was in reach, so weights decay and moments fade",
}


def explained(habits: Any) -> str:
    """The help of an `--official`, with what each of these names means."""
    meanings = "; ".join(f"{name}: {MEANING[name]}" for name in typing.get_args(habits))
    return f"Do as the official code does, names with commas. {meanings}."

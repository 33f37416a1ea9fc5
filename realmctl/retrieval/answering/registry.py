"""The answerers, by their names in `qa-model.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from realmctl.registry import Registry

if TYPE_CHECKING:
    from realmctl.retrieval.answering.answerer import Answerer

ANSWERERS: Registry[Answerer] = Registry(
    "answerer",
    base="realmctl.retrieval.answering.answerer:Answerer",
    group="realmctl.answerers",
    built_in={
        "extractive": "realmctl.retrieval.answering.extractive:ExtractiveAnswerer",
        "closed-book": "realmctl.retrieval.answering.closed_book:ClosedBookAnswerer",
        "generative": "realmctl.retrieval.answering.generative:GenerativeAnswerer",
    },
)

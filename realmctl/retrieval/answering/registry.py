"""The answerers, by their names in `qa-model.json`."""

from __future__ import annotations

from realmctl.registry import Registry

ANSWERERS = Registry(
    "answerer",
    group="realmctl.answerers",
    built_in={
        "extractive": "realmctl.retrieval.answering.extractive:ExtractiveAnswerer",
        "closed-book": "realmctl.retrieval.answering.closed_book:ClosedBookAnswerer",
        "generative": "realmctl.retrieval.answering.generative:GenerativeAnswerer",
    },
)

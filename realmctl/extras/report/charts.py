"""The charts of the report: which metrics they draw, with labels and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from realmctl.extras.report.curves import AGE


@dataclass(frozen=True)
class Chart:
    """One chart of metrics over training steps.

    `metrics` maps a metric to its label, `axis` is the axis label with its unit. `share`: values are shown in per cent.
    `recorded_at_times`: the metric is recorded at some steps only.
    """

    title: str
    axis: str
    metrics: Mapping[str, str]
    about: str
    share: bool = False
    recorded_at_times: bool = False

    @property
    def shows_refreshes(self) -> bool:
        """Return whether bars below the curve show when an index was rebuilt."""
        return AGE in self.metrics


RECALL = {f"recall@{depth}": f"recall@{depth}" for depth in (1, 5, 20)}
CLOZE = Chart(
    "Cloze recall",
    "sentences (%)",
    {f"cloze_{name}": label for name, label in RECALL.items()},
    "Sentences that were cut out of their blocks, with their own block among the best 1, 5 and 20. It needs no labels.",
    share=True,
    recorded_at_times=True,
)
PRETRAIN = (
    Chart("Loss", "loss (nats)", {"loss": "loss"}, "−log p(y|x) of the hidden wordpieces. Lower is better."),
    Chart(
        "Retrieval utility",
        "utility (nats per wordpiece)",
        {"retrieval_utility": "utility"},
        "log p(y|z,x) − log p(y|∅,x): the gain from reading the retrieved blocks. Above 0, retrieval helps.",
    ),
    Chart(
        "Recall on held-out questions",
        "queries (%)",
        RECALL,
        "Queries of a fixed set with a block that holds the answer among the best 1, 5 and 20; "
        "measured whenever the index changes.",
        share=True,
        recorded_at_times=True,
    ),
    CLOZE,
    Chart(
        "Null share",
        "p(∅|x) (%)",
        {"null_share": "null share"},
        "p(∅|x): the weight of the null document, which stands for no retrieval.",
        share=True,
    ),
    Chart(
        "Index age",
        "age (steps)",
        {AGE: "index age"},
        "Steps since the snapshot that the index was built from. A bar below lasts from a snapshot "
        "to the first step that searched its index.",
    ),
)
LOSS = Chart("Loss", "loss (nats)", {"loss": "loss"}, "Training loss. Lower is better.")
ACCURACY = Chart("Accuracy", "right (%)", {"accuracy": "accuracy"}, "Accuracy in the training batch.", share=True)
ANSWERS = Chart(
    "Answers of the batch",
    "questions (%)",
    {"answer_in_beam": "in a retrieved block", "answer_in_reader": "in a block read", "span_exact_match": "right span"},
    "Training questions with an answer in a retrieved block, with an answer in a block that was "
    "read, and with the right span chosen.",
    share=True,
)
CHARTS: Mapping[str, Sequence[Chart]] = {
    "model": PRETRAIN,
    "encoder": (LOSS, ACCURACY, CLOZE),
    "retriever": (LOSS, ACCURACY, CLOZE),
    "qa-model": (LOSS, ANSWERS),
}
"""Charts by kind of artifact, in the order of the page."""

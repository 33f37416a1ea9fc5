"""The stage `title-init`: train a retriever on the titles of documents."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.retriever import RetrieverTrainingSettings


class TitleInit(RetrieverTrainingSettings, TrainingStage):
    """Train a retriever to find the first block of a document by its title."""

    makes = "retriever"

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.in_batch import train_retriever
        from realmctl_example.titles import TitleObjective

        return train_retriever(self, out, "title-init", TitleObjective)

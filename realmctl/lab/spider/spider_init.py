"""`realmctl spider-init`: train a retriever on recurring spans (Spider), as a warm start."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.lab.spider.settings import SpiderSettings
from realmctl.training.settings.base import TrainingStage


class SpiderInit(SpiderSettings, TrainingStage):
    """Train a retriever on recurring spans: find the other block of a document that shares a rare span with the query.

    The query is a window of a block about the span, with the span or without it. A third block of the document, which lacks
    the span, is the hard negative (Spider, Ram et al. 2022). Documents need three blocks or more. Under torchrun each process
    takes a part of the batch. The negatives are the blocks of the whole batch.
    """

    makes = "retriever"
    version = 4  # 2: windows as the authors draw them. 3: reworded titles must gain too. 4: another place of the block to find is no negative
    headline = ("loss", "accuracy", "seconds_per_step")

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.spider.objective import train_spider

        return train_spider(self, out)

"""Both sides of the refresh protocol, by hand."""

from __future__ import annotations

import torch

from realmctl.artifact import Artifact, open_artifact
from realmctl.nn.retriever import Retriever
from realmctl.train.live import IndexMaker, Live, at_step


def nudge(retriever: Retriever) -> None:
    """Another retriever, as after some steps of training."""
    with torch.no_grad():
        retriever.query_tower.projection.weight += 0.01


def deliver(live: Live, step: int) -> Artifact:
    """What a refresher does with the snapshot of a step."""
    return IndexMaker(live.order(), "cpu").make(
        open_artifact(at_step(live.snapshots, step)), at_step(live.indexes, step)
    )

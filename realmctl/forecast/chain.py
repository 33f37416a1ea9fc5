"""The stages of a run, with all their settings: from a pipeline file, or from the presets of the papers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from realmctl.pipeline import Stage, presets, roles
from realmctl.pipeline.pipeline import Pipeline


@dataclasses.dataclass(frozen=True)
class PlannedStage:
    """A stage that is to run.

    Attributes:
        name: Name of its output.
        command: Name of the stage.
        settings: {field: value}, defaults included.
        inputs: {field: name of the output that it reads}.
    """

    name: str
    command: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]

    def with_settings(self, **values: Any) -> PlannedStage:
        """The same stage with other settings. Values that are None, and names that are no field of it, change nothing."""
        new = {name: value for name, value in values.items() if value is not None and name in self.settings}
        return dataclasses.replace(self, settings={**self.settings, **new})


def chain_of(pipeline: Pipeline) -> tuple[PlannedStage, ...]:
    """The stages of a pipeline, in the order in which they can run."""
    return tuple(
        PlannedStage(step.name, step.stage.command(), {**_defaults(step.stage), **step.values}, dict(step.inputs))
        for step in pipeline.steps
    )


PAPER_BLOCKS = 13_353_718
"""Blocks of the English Wikipedia of December 20, 2018, in the official release of REALM. The paper says 13 million."""
_PAPER: tuple[tuple[str, str, str, Mapping[str, str]], ...] = (
    ("blocks", "chunk", "realm", {}),
    ("spans", "tag", "realm", {"blocks": "blocks"}),
    ("retriever", "ict-init", "ict", {"blocks": "blocks"}),
    ("embeddings", "embed", "realm", {"blocks": "blocks", "retriever": "retriever"}),
    ("index", "build-index", "realm", {"embeddings": "embeddings"}),
    ("model", "pretrain", "realm", {"spans": "spans", "blocks": "blocks", "retriever": "retriever", "index": "index"}),
    ("qa-model", "finetune", "orqa-nq", {"blocks": "blocks", "model": "model"}),
)


def paper_chain(stages: Mapping[str, type[Stage]], bert: str) -> tuple[PlannedStage, ...]:
    """The stages with the settings of the papers, as the presets `ict`, `realm` and `orqa-nq` have them.

    Args:
        stages: {command: stage}.
        bert: The BERT that retriever and reader start from.
    """
    chain = []
    for name, command, preset, inputs in _PAPER:
        settings = {**_defaults(stages[command]), **presets.settings_of(preset, command)}
        stage = PlannedStage(name, command, settings, inputs)
        chain.append(stage if command == "finetune" else stage.with_settings(bert=bert))
    return tuple(chain)


def _defaults(stage: type[Stage]) -> dict[str, Any]:
    return {
        item.name: None if item.default is dataclasses.MISSING else item.default
        for item in dataclasses.fields(stage)
        if roles(stage)[item.name].name != "reads"
    }

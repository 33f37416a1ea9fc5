"""`realmctl generate-queries`: a language model writes queries for blocks, as training data for retrievers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError
from realmctl.extras.chat.settings import SERVED
from realmctl.lab.language_models.generation_settings import GenerationSettings
from realmctl.pipeline import Stage
from realmctl.pipeline.trial import NotTried, Trial

SAMPLED_BLOCKS = 32
"""Blocks of the queries on which later stages are tried."""


class GenerateQueries(GenerationSettings, Stage):
    """Let a language model write queries for blocks: training data for retrievers where there are no labels.

    The result is a folder in BEIR's layout, which dpr-finetune, rank and mine-negatives read. Useless queries are dropped: unfinished or
    empty ones, those that say no more than the prompt, copies of the block, and repetitions. An interrupted run continues where it stopped.

    With --endpoint a server has the model, such as Ollama, vLLM or llama.cpp on this machine. All prompts and answers are kept.
    """

    makes = "queries"
    headline = ("queries", "written", "asked_blocks", "dropped_*", "log_prob")
    resumable = True

    def check(self) -> None:
        from realmctl.lab.language_models.generation import round_trip_inputs
        from realmctl.retrieval.search.dense import DenseSearcher

        if self.queries_per_block > 1 and not self.temperature:
            raise ConfigError(
                f"--queries-per-block {self.queries_per_block} needs a --temperature, such as 0.7: without one all queries of a block are the same."
            )
        if self.endpoint and self.keep < 1:
            raise ConfigError(
                f"--keep {self.keep:g} needs the probabilities of tokens, which a server does not tell. Leave it out with --endpoint; --round-trip sorts queries too."
            )
        if self.endpoint is None and self.lm.startswith(SERVED):
            raise ConfigError(f"--lm {self.lm} is a model of a server. Name the server by --endpoint.")
        if self.round_trip is not None:
            DenseSearcher.check(round_trip_inputs(self))

    def shrunk(self, folder: Path) -> tuple[Self, float]:
        return dataclasses.replace(self, sample=min(self.sample, SAMPLED_BLOCKS)), 1.0

    def trial(self) -> Trial:
        if self.endpoint:
            raise NotTried("a server writes")
        return super().trial()

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.language_models.generation import generate

        return generate(self, out)

"""The settings of `judge`: what is judged, by which model, and how much of it twice."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.extras.chat.settings import EndpointSettings
from realmctl.pipeline import help_texts, reads, setting, source
from realmctl.pipeline.values import LARGEST_INT


class JudgeSettings(EndpointSettings):
    """Judgements by a language model."""

    rankings: tuple[Path, ...] = source(
        "Rankings of rank, or TREC runs. The best of each are judged, in one pool.", positional=True
    )
    blocks: Artifact = reads("blocks", help="Blocks, whose texts are judged.")
    lm: str = setting("Name that the server of --endpoint has for the language model.")
    queries: Path | None = source(
        "Queries with their texts, for TREC runs of other systems. Default: those of the rankings.", default=None
    )
    qrels: Path | None = source(
        "Judgements of people. Only queries that they judged are drawn, and how far the model agrees with them is measured.",
        default=None,
    )
    depth: int = setting("Best of each ranking that are judged.", default=10, at_least=1, at_most=1000)
    sample: int = setting("Queries that are judged, drawn at random. 0: all.", default=100, at_least=0)
    repeated: int = setting(
        "Pairs that are judged twice more, as before and with the passage before the query, to measure the agreement of the model with itself. 0: none.",
        default=50,
        at_least=0,
    )
    temperature: float = setting(
        "Temperature of sampling. 0 takes the likeliest token each time.",
        default=0.0,
        at_least=0,
        at_most=10,
        advanced=True,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0, at_most=LARGEST_INT, advanced=True)

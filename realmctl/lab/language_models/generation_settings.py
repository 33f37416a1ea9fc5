"""The settings of `generate-queries`: which blocks are asked of, how a language model writes, and what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.extras.chat.settings import SERVED, EndpointSettings, named
from realmctl.pipeline import Precision, check_device, help_texts, reads, runtime, setting, source
from realmctl.pipeline.values import LARGEST_INT


class GenerationSettings(EndpointSettings):
    """Queries that a language model writes for blocks."""

    blocks: Artifact = reads("blocks", help="Blocks that queries are written for.")
    lm: str = source(
        "Language model that writes: a folder or a hub id, of GPT-2's kind or of T5's; with --endpoint the name that the server has for it.",
        hub=True,
        literals=(SERVED,),
    )
    prompt: Path | None = source(
        "File with the prompt: a text with {block} where a block stands, and with {title} where its title stands. Default: four examples in "
        "English, and for T5's kind the block alone.",
        default=None,
    )
    sample: int = setting(
        "Number of blocks that queries are written for, drawn at random.", default=1000, at_least=1, advanced=True
    )
    documents: float = setting(
        "Share of the documents whose blocks are asked of, drawn at random. A training can leave these documents out (ict-init --held-out).",
        default=1.0,
        above=0,
        at_most=1,
        left_out_at=1.0,
        advanced=True,
    )
    held_out: Artifact | None = reads(
        "queries",
        help="Questions of generate-queries that measure. Nothing is asked of their documents.",
        explicit_only=True,
        default=None,
    )
    queries_per_block: int = setting(
        "Queries that are written for a block. More than one needs a --temperature above 0.",
        default=1,
        at_least=1,
        at_most=64,
    )
    temperature: float = setting(
        "Temperature of sampling. 0 takes the likeliest token each time.",
        default=0.7,
        at_least=0,
        at_most=10,
        advanced=True,
    )
    block_length: int = setting(
        "Longest block in a prompt, in tokens of the language model. A longer one is cut at its end. With --endpoint four characters count as a token.",
        default=192,
        at_least=8,
        at_most=8192,
        advanced=True,
    )
    query_length: int = setting(
        "Longest query, in tokens of the language model. A query that does not end within them is dropped.",
        default=32,
        at_least=4,
        at_most=512,
        advanced=True,
    )
    keep: float = setting(
        "Share of the queries that is kept: those that the language model finds likeliest, by the mean log-probability of a token.",
        default=1.0,
        above=0,
        at_most=1,
    )
    round_trip: Artifact | None = reads(
        "retriever",
        help="Retriever that must find the block of a query again. Otherwise the query is dropped.",
        explicit_only=True,
        default=None,
    )
    index: Artifact | None = reads(
        "index",
        help="Index of the retriever of --round-trip.",
        unused_when=lambda given: given.get("round_trip") is None,
        default=None,
    )
    round_trip_top: int = setting(
        "Number of best blocks among which the block must be found.",
        default=1,
        at_least=1,
        at_most=1000,
        used_with="round_trip",
        advanced=True,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0, at_most=LARGEST_INT)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)
    batch_size: int = runtime("Queries written at once.", default=32, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    @classmethod
    def checked(cls, values: Mapping[str, object]) -> dict[str, Any]:
        return named(super().checked(values))

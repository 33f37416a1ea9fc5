"""From the request of `realmctl plan` to its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

from realmctl.artifacts.catalogue_text import size_text
from realmctl.corpus.work_units import expanded_bytes
from realmctl.errors import ConfigError
from realmctl.forecast.calibration import calibrated
from realmctl.forecast.chain import PAPER_BLOCKS, PlannedStage, chain_of, paper_chain
from realmctl.forecast.costs import ShapeOf
from realmctl.forecast.forecast import Row, forecast
from realmctl.forecast.machines import device_named, named_devices
from realmctl.forecast.simulation import IndexAges
from realmctl.forecast.sizes import EncoderShape, Text, encoder_shape, text_of_blocks, text_of_bytes
from realmctl.log import duration_text
from realmctl.pipeline import Stage, pipeline_file
from realmctl.pipeline.comparing import aligned
from realmctl.tokens.recipes import trained_kind

BERT = "scratch:base"
VOCABULARY = 30_522


@dataclasses.dataclass(frozen=True)
class PlanRequest:
    """The options of `realmctl plan`; its help says what they mean."""

    file: Path | None
    variables: tuple[str, ...]
    corpus: tuple[Path, ...]
    blocks: int | None
    bert: str | None
    pretrain: Mapping[str, int | None]
    device: str
    refresh_devices: int
    index_age: int | None
    price: float | None
    calibrate: bool


@dataclasses.dataclass(frozen=True)
class Plan:
    """A plan for a number of devices.

    Attributes:
        blocks: {output: number of blocks} of the chunk stages.
        seconds: Of all stages whose time is known, one after the other.
        price: Of the device-hours; None without a price for one.
        index_age: Ages of the index in `pretrain`; None without a refresh.
        refresh_devices_for_target_age: None if no age was asked for, or if no number is enough.
    """

    device: str
    devices: int
    refresh_devices: int
    blocks: Mapping[str, int]
    stages: Sequence[Row]
    seconds: float
    device_hours: float
    price: float | None
    index_age: IndexAges | None
    refresh_seconds: float | None
    target_index_age: int | None
    refresh_devices_for_target_age: int | None


def make_plan(request: PlanRequest, stages: Mapping[str, type[Stage]], devices: int) -> Plan:
    """Return the plan for a number of devices.

    Raises:
        ConfigError: the options contradict each other, or name an unknown device.
        InputError: a file or a BERT is not found.
    """
    if request.corpus and request.blocks:
        raise ConfigError("--corpus and --blocks both give the size of the corpus. Leave one of them out.")
    pipeline = None
    if request.file is not None:
        pipeline = pipeline_file.read(request.file, stages, dict(map(pipeline_file.pair, request.variables)), None)
    chain = chain_of(pipeline) if pipeline else paper_chain(stages, request.bert or BERT)
    chain = tuple(_changed(stage, request) for stage in chain)
    if not any(stage.command == "chunk" for stage in chain):
        raise ConfigError("this pipeline has no chunk stage, so the size of its corpus is not known. Add the stage.")
    if request.calibrate:
        if pipeline is None:
            raise ConfigError("--calibrate runs a sample of a pipeline. Name the pipeline file of your run.")
        found = calibrated(pipeline, chain, _shapes(chain), devices, request.refresh_devices)
        machines, texts = found.machines, found.texts
    else:
        machines = named_devices(device_named(request.device), devices, request.refresh_devices)
        texts = _texts(request, chain)
    said = forecast(chain, texts, machines, _shapes(chain), request.index_age)
    hours = sum(row.device_hours for row in said.rows)
    return Plan(
        device=machines.name,
        devices=machines.devices,
        refresh_devices=machines.refresh_devices,
        blocks={name: round(text.blocks) for name, text in texts.items()},
        stages=said.rows,
        seconds=sum(row.seconds or 0.0 for row in said.rows),
        device_hours=hours,
        price=None if request.price is None else hours * request.price,
        index_age=said.ages,
        refresh_seconds=said.refresh_seconds,
        target_index_age=request.index_age,
        refresh_devices_for_target_age=said.devices_for_age,
    )


def _changed(stage: PlannedStage, request: PlanRequest) -> PlannedStage:
    """The stage with the settings that the options replace."""
    if stage.command == "pretrain":
        stage = stage.with_settings(**request.pretrain)
    if stage.command == "chunk" and request.corpus:
        stage = stage.with_settings(corpus=request.corpus)
    return stage.with_settings(bert=request.bert) if stage.settings.get("bert") else stage


def _texts(request: PlanRequest, chain: Sequence[PlannedStage]) -> dict[str, Text]:
    """The blocks of each chunk stage, from the sizes of its files, or from the number that was given."""
    texts = {}
    for stage in chain:
        if stage.command != "chunk":
            continue
        most, corpus = stage.settings["max_wordpieces"], stage.settings["corpus"]
        if request.blocks or not corpus:
            texts[stage.name] = text_of_blocks(request.blocks or PAPER_BLOCKS, most)
        else:
            nbytes = sum(expanded_bytes(Path(path)) for path in corpus)
            texts[stage.name] = text_of_bytes(nbytes, most, any(".xml" in Path(path).name for path in corpus))
    return texts


def _shapes(chain: Sequence[PlannedStage]) -> ShapeOf:
    """A function from `--bert` to its shape; None stands for the first BERT of the chain."""
    berts = [stage.settings["bert"] for stage in chain if stage.settings.get("bert")]
    known: dict[str, EncoderShape] = {}

    def shape_of(bert: str | None) -> EncoderShape:
        name = bert or (berts[0] if berts else BERT)
        if name not in known:
            known[name] = encoder_shape(name, _vocabulary(chain))
        return known[name]

    return shape_of


def _vocabulary(chain: Sequence[PlannedStage]) -> int:
    """Size of the vocabulary of a BERT from scratch: that of a tokenizer that the chain trains, or BERT's."""
    for stage in chain:
        tokenizer = str(stage.settings.get("tokenizer") or "")
        if trained := trained_kind(tokenizer):
            return trained[1]
    return VOCABULARY


_HEAD = ("output", "stage", "time", "device-h", "work", "memory", "disk", "network")


def plan_text(plan: Plan) -> str:
    """Format a plan for people."""
    also = f" and {plan.refresh_devices} for the refresher" if plan.refresh_devices else ""
    blocks = ", ".join(f"{name} {count:,}" for name, count in plan.blocks.items())
    lines = [f"{plan.devices} x {plan.device}{also}; blocks: {blocks}"]
    table = [_HEAD, *map(_cells, plan.stages)]
    lines.append(aligned(table))
    lines.append(f"together {duration_text(plan.seconds)}, {plan.device_hours:,.1f} device-hours")
    if plan.price is not None:
        lines[-1] += f", price {plan.price:,.2f}"
    if (ages := plan.index_age) and plan.refresh_seconds is not None:
        lines.append(
            f"index: a refresh takes {duration_text(plan.refresh_seconds)}; age in steps {ages.mean:,.0f} on average, "
            f"{ages.p95:,.0f} at the 95th percentile; training waits {ages.waited_seconds / ages.seconds:.1%} of its time"
        )
    if target := plan.target_index_age:
        enough = plan.refresh_devices_for_target_age
        lines.append(
            f"index age {target:,}: {enough:,} refresher devices keep it for 95 % of the steps"
            if enough
            else f"index age {target:,}: no number of refresher devices keeps it. Use a smaller --refresh-every."
        )
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    if row.seconds is None:
        return (row.name, row.command, "not known", "", "", "", "", "")
    memory = size_text(int(row.memory_bytes)) + (f" (--micro-batch {row.micro_batch})" if row.micro_batch else "")
    work = f"{row.flops:.2g} FLOP" if row.flops else ""
    sent = size_text(int(row.network_bytes)) if row.network_bytes else ""
    return (
        row.name,
        row.command,
        duration_text(row.seconds),
        f"{row.device_hours:,.1f}",
        work,
        memory if row.memory_bytes else "",
        size_text(int(row.disk_bytes)),
        sent,
    )

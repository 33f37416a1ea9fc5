"""From the wishes of `realmctl plan` to its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.artifacts.catalogue import size_text
from realmctl.errors import ConfigError
from realmctl.forecast.calibration import Calibration, calibrated
from realmctl.forecast.chain import PAPER_BLOCKS, PlannedStage, chain_of, paper_chain, require_chunk
from realmctl.forecast.devices import device_named
from realmctl.forecast.forecast import Forecast, Row, forecast
from realmctl.forecast.machines import Machines, named_devices
from realmctl.forecast.sizes import EncoderShape, Text, encoder_shape, text_of_blocks, text_of_bytes
from realmctl.log import duration_text
from realmctl.pipeline import Stage, pipeline_file
from realmctl.pipeline.pipeline import Pipeline

BERT = "scratch:base"
VOCABULARY = 30_522


@dataclasses.dataclass(frozen=True)
class Wishes:
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


def make_plan(wishes: Wishes, stages: Mapping[str, type[Stage]], devices: int) -> dict[str, Any]:
    """Return the plan for a number of devices, as JSON values.

    Raises:
        ConfigError: the options contradict each other, or name an unknown device.
        InputError: a file or a BERT is not found.
    """
    if wishes.corpus and wishes.blocks:
        raise ConfigError("--corpus and --blocks both give the size of the corpus. Leave one of them out.")
    pipeline = _pipeline(wishes, stages)
    chain = chain_of(pipeline) if pipeline else paper_chain(stages, wishes.bert or BERT)
    chain = tuple(_changed(stage, wishes) for stage in chain)
    require_chunk(chain)
    found = _calibration(wishes, pipeline, chain, devices)
    machines = found.machines if found else named_devices(device_named(wishes.device), devices, wishes.refresh_devices)
    texts = found.texts if found else _texts(wishes, chain)
    said = forecast(chain, texts, machines, _shapes(chain), wishes.index_age)
    return _as_json(said, machines, wishes, texts)


def _pipeline(wishes: Wishes, stages: Mapping[str, type[Stage]]) -> Pipeline | None:
    if wishes.file is None:
        return None
    return pipeline_file.read(wishes.file, stages, dict(map(pipeline_file.pair, wishes.variables)), None)


def _changed(stage: PlannedStage, wishes: Wishes) -> PlannedStage:
    """The stage with the settings that the options replace."""
    if stage.command == "pretrain":
        stage = stage.with_settings(**wishes.pretrain)
    if stage.command == "chunk" and wishes.corpus:
        stage = stage.with_settings(corpus=wishes.corpus)
    return stage.with_settings(bert=wishes.bert) if stage.settings.get("bert") else stage


def _texts(wishes: Wishes, chain: Sequence[PlannedStage]) -> dict[str, Text]:
    """The blocks of each chunk stage, from the sizes of its files, or from the number that was given."""
    from realmctl.corpus.work_units import expanded_bytes

    texts = {}
    for stage in chain:
        if stage.command != "chunk":
            continue
        most, corpus = stage.settings["max_wordpieces"], stage.settings["corpus"]
        if wishes.blocks or not corpus:
            texts[stage.name] = text_of_blocks(wishes.blocks or PAPER_BLOCKS, most)
        else:
            nbytes = sum(expanded_bytes(Path(path)) for path in corpus)
            texts[stage.name] = text_of_bytes(nbytes, most, any(".xml" in Path(path).name for path in corpus))
    return texts


def _calibration(
    wishes: Wishes, pipeline: Pipeline | None, chain: Sequence[PlannedStage], devices: int
) -> Calibration | None:
    if not wishes.calibrate:
        return None
    if pipeline is None:
        raise ConfigError("--calibrate runs a sample of a pipeline. Name the pipeline file of your run.")
    return calibrated(pipeline, chain, _shapes(chain), devices, wishes.refresh_devices)


def _shapes(chain: Sequence[PlannedStage]):  # type: ignore[no-untyped-def]
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
        if tokenizer.startswith("train:") and tokenizer.removeprefix("train:").isdigit():
            return int(tokenizer.removeprefix("train:"))
    return VOCABULARY


def _as_json(said: Forecast, machines: Machines, wishes: Wishes, texts: Mapping[str, Text]) -> dict[str, Any]:
    hours = sum(row.device_hours for row in said.rows)
    return {
        "device": machines.name,
        "devices": machines.devices,
        "refresh_devices": machines.refresh_devices,
        "blocks": {name: round(text.blocks) for name, text in texts.items()},
        "stages": [dataclasses.asdict(row) for row in said.rows],
        "seconds": sum(row.seconds or 0.0 for row in said.rows),
        "device_hours": hours,
        "price": None if wishes.price is None else hours * wishes.price,
        "index_age": None if said.ages is None else dataclasses.asdict(said.ages),
        "refresh_seconds": said.refresh_seconds,
        "wished_index_age": wishes.index_age,
        "refresh_devices_for_wished_age": said.devices_for_age,
    }


def plan_text(value: Mapping[str, Any]) -> str:
    """Format plans for people."""
    return "\n\n".join(_one_text(plan) for plan in value["plans"])


_HEAD = ("output", "stage", "time", "device-h", "work", "memory", "disk", "network")


def _one_text(plan: Mapping[str, Any]) -> str:
    also = f" and {plan['refresh_devices']} for the refresher" if plan["refresh_devices"] else ""
    blocks = ", ".join(f"{name} {count:,}" for name, count in plan["blocks"].items())
    lines = [f"{plan['devices']} x {plan['device']}{also}; blocks: {blocks}"]
    table = [_HEAD, *(_cells(Row(**row)) for row in plan["stages"])]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEAD))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    lines.append(f"together {duration_text(plan['seconds'])}, {plan['device_hours']:,.1f} device-hours")
    if plan["price"] is not None:
        lines[-1] += f", price {plan['price']:,.2f}"
    return "\n".join([*lines, *_notes(plan)])


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


def _notes(plan: Mapping[str, Any]) -> list[str]:
    notes, ages = [], plan["index_age"]
    if ages:
        notes.append(
            f"index: a refresh takes {duration_text(plan['refresh_seconds'])}; age in steps {ages['mean']:,.0f} on average, "
            f"{ages['p95']:,.0f} at the 95th percentile; training waits {ages['waited_seconds'] / ages['seconds']:.1%} of its time"
        )
    if wished := plan["wished_index_age"]:
        enough = plan["refresh_devices_for_wished_age"]
        notes.append(
            f"index age {wished:,}: {enough:,} refresher devices keep it for 95 % of the steps"
            if enough
            else f"index age {wished:,}: no number of refresher devices keeps it. Use a smaller --refresh-every."
        )
    return notes

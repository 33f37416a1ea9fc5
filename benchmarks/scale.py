"""Run a whole chain over many documents, each stage in a process of its own with one thread, beside what `realmctl plan` forecasts.

    python benchmarks/scale.py TEXT --documents 10000 100000 1000000 --folder DIR
    python benchmarks/scale.py TEXT --encoder ENCODER --max-wordpieces 96 --refresh int8 --folder DIR

TEXT is a file of JSON lines with `title` and `text`, which may be compressed. With `--documents`, each document is 500 to 700 bytes of sentences drawn from it with
a fixed seed; without, its own documents are taken. ENCODER is the folder of a BERT; without it one of 2 layers and width 128 is made. `--refresh TYPE` adds a short
`pretrain` whose index of that type is made anew by a second process meanwhile.

Seconds are CPU seconds of the stage and its child processes, in the forecast too, because other programs change them little. Memory is what a stage's process needs at its peak beyond Python and PyTorch, without the pages of mapped files. A record
replaces the earlier one of the same documents, encoder and output in docs/results/scale/measured.json, and docs/results/scale/report.md is written from the records alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
from bench import processor
from indexes import Memory, alone
from side import cpu_seconds

from realmctl.artifacts import open_artifact
from realmctl.corpus import chunking
from realmctl.extras.plan.index_age import Aging
from realmctl.extras.plan.planning import make_plan
from realmctl.index.index_type import open_index
from realmctl.inputs.streams import decompressed
from realmctl.log import set_quiet
from realmctl.pipeline import pipeline_file, trying
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.pipeline import Pipeline
from realmctl.retrieval.embedding import embedding
from realmctl.training import loop
from stages.chunk import Chunk
from stages.mlm_init import MlmInit

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results" / "scale"
LEAST_BYTES = 500
SENTENCE = re.compile(r"(?<=[.!?]) +|\n+")
VOCABULARY, MADE = 8000, "L2-H128-A2"
QUERIES, TOP = 64, 8
GROWING = ("chunk", "tag", "embed")
ORDER = ("chunk", "ict-init", "embed", "build-index", "search", "tag", "pretrain")
PRETRAIN = {"batch-size": 4, "candidates": 5, "warmup": 5, "lr": 2e-5, "optimizer": "adamw", "refresh": "background"}


Run = tuple[int, bool, str]
"""Documents, whether they were drawn, and the encoder."""


@dataclass(frozen=True)
class Measured:
    """One stage of one run.

    Attributes:
        drawn: Whether the documents are sentences drawn from a text, and not its own documents.
        encoder: Name of the encoder's folder, or its size where it was made.
        stage: The command; `search` has no forecast.
        seconds: CPU seconds with those of child processes; of a search the CPU seconds of one query.
        wall_seconds: Time on the clock.
        mebibytes: Growth of the process's memory at its peak.
        disk_mebibytes: Bytes of the artifact, with links.
        forecast: What the plan says: `seconds`, `memory_mebibytes`, `disk_mebibytes`, and of `pretrain` `refresh_seconds`, `step_seconds`, `age`.
        found: Metrics of the artifact, and of `pretrain` what its records say.
        load: Load average of the machine when it ended; 1 of it is the stage.
        index: Type of the index that is built, or made anew, where a run names one.
    """

    documents: int
    drawn: bool
    encoder: str
    stage: str
    seconds: float
    wall_seconds: float
    mebibytes: float
    disk_mebibytes: float
    forecast: dict[str, float]
    found: dict[str, float]
    machine: str
    load: float
    date: str
    index: str = ""

    def same(self) -> tuple[object, ...]:
        """What a later record of the same replaces."""
        return (self.documents, self.drawn, self.encoder, self.stage, self.index)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--documents", type=int, nargs="*", default=[])
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("--max-wordpieces", type=int, default=288)
    parser.add_argument("--refresh", choices=["int8", "hnsw", "exact"])
    parser.add_argument(
        "--steps", type=int, default=1000, help="of pretrain; a snapshot is taken after every fifth of them"
    )
    parser.add_argument("--outputs", nargs="*", help="make these alone, of inputs that exist")
    parser.add_argument("--folder", type=Path, required=True, help="where corpus and artifacts are written; they stay")
    parser.add_argument("--results", type=Path, default=RESULTS / "measured.json")
    parser.add_argument("--page", type=Path, default=RESULTS / "report.md")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    encoder = (given.encoder or alone(made_encoder, given.text, given.folder / "start")).resolve()
    for documents in given.documents or [0]:
        size = given.encoder.name if given.encoder else MADE
        folder = given.folder / f"{documents}-{size}"
        folder.mkdir(exist_ok=True)
        corpus = given.text
        if documents:
            corpus = folder / "corpus.jsonl"
            if not corpus.is_file():
                write_corpus(given.text, corpus, documents)
        count = documents or sum(1 for _ in records(corpus))
        file = folder / f"pipeline-{given.refresh or 'none'}.yaml"
        stages = chain_of(corpus.resolve(), encoder, given.max_wordpieces, given.refresh, given.steps)
        file.write_text(json.dumps({"workspace": str(folder.resolve() / "made"), "stages": stages}), encoding="utf-8")
        said = file.with_suffix(".forecast.json")
        if not said.is_file():
            said.write_text(json.dumps(alone(forecast_of, file)))
        forecasts = json.loads(said.read_text())
        for output in given.outputs or stages:
            if [*(folder / "made" / output).glob("v[0-9]")]:
                continue
            measured = alone(measure_stage, file, output, (count, documents > 0, size), forecasts[output])
            if output in (named("index", given.refresh), named("model", given.refresh)):
                measured = replace(measured, index=given.refresh or "")
            keep(measured, given.results, given.page)
        if not given.refresh and not given.outputs:
            keep(alone(measure_search, folder, (count, documents > 0, size)), given.results, given.page)


def chain_of(corpus: Path, encoder: Path, most: int, refresh: str | None, steps: int) -> dict[str, dict[str, Any]]:
    """The outputs of the chain, as a pipeline file has them."""
    chain: dict[str, dict[str, Any]] = {
        "blocks": {"stage": "chunk", "corpus": [str(corpus)], "tokenizer": str(encoder), "max-wordpieces": most, "workers": 1},
        "retriever": {"stage": "ict-init", "bert": str(encoder), "steps": 20, "batch-size": 16, "warmup": 2, "lr": 2e-5, "optimizer": "adamw"},
        "embeddings": {"stage": "embed"},
        named("index", refresh): {"stage": "build-index", "type": refresh or "exact", "min-recall": 0.0},
        "spans": {"stage": "tag", "workers": 1},
    }  # fmt: skip
    if refresh:
        chain[named("model", refresh)] = {
            "stage": "pretrain",
            "index": named("index", refresh),
            "bert": str(encoder),
            "steps": steps,
            "refresh-every": steps // 5,
            **PRETRAIN,
        }
    return chain


def named(output: str, refresh: str | None) -> str:
    """Name of an output that each type of index has its own of."""
    return f"{output}-{refresh}" if refresh else output


def records(file: Path) -> Iterator[dict[str, str]]:
    """The documents of a file of JSON lines."""
    rest = b""
    for piece in decompressed(file):
        *lines, rest = (rest + piece).split(b"\n")
        yield from map(json.loads, filter(None, lines))
    if rest:
        yield json.loads(rest)


def write_corpus(text: Path, path: Path, documents: int) -> None:
    """Write documents of whole sentences drawn from a text, each at least `LEAST_BYTES` long and a sentence longer at most."""
    sentences = [part for each in records(text) for part in SENTENCE.split(each["text"]) if 20 < len(part) < 250]
    draw = np.random.default_rng(0)
    with path.with_suffix(".part").open("w", encoding="utf-8") as file:
        for number in range(documents):
            drawn, length = [], 0
            for row in draw.integers(len(sentences), size=LEAST_BYTES // 20):
                drawn.append(sentences[row])
                length += len(drawn[-1]) + 1
                if length >= LEAST_BYTES:
                    break
            file.write(json.dumps({"_id": str(number), "title": f"Page {number}", "text": " ".join(drawn)}) + "\n")
    path.with_suffix(".part").rename(path)


def made_encoder(text: Path, folder: Path) -> Path:
    """Make an encoder whose vocabulary was learned from the text."""
    set_quiet(True)
    if not (folder / "encoder").is_dir():
        folder.mkdir(exist_ok=True)
        write_corpus(text, folder / "corpus.jsonl", 20_000)
        blocks = Chunk(corpus=(folder / "corpus.jsonl",), tokenizer=f"train:{VOCABULARY}", workers=1).make(
            folder / "blocks"
        )
        MlmInit(blocks=blocks, spans=None, bert=f"scratch:{MADE}", steps=1, batch_size=4).make(folder / "encoder")
    return max((folder / "encoder").glob("v*"))


def forecast_of(file: Path) -> dict[str, dict[str, float]]:
    """What the plan says of each output of a pipeline file, from samples on this machine."""
    set_quiet(True)
    torch.set_num_threads(1)
    clock = SimpleNamespace(monotonic=cpu_seconds)
    trying.time = chunking.time = embedding.time = loop.time = clock  # type: ignore[assignment]
    plan = make_plan(file, {}, own_stages(), Aging())
    said = {
        row.name: {
            "seconds": row.seconds or math.nan,
            "memory_mebibytes": row.memory_bytes / 2**20,
            "disk_mebibytes": row.disk_bytes / 2**20,
        }
        for row in plan.stages
    }
    if plan.index:
        (model,) = (row.name for row in plan.stages if row.command == "pretrain")
        said[model] |= {"refresh_seconds": plan.index.refresh_seconds, "age": plan.index.ages.mean}
    return said


def pipeline_of(file: Path) -> Pipeline:
    return pipeline_file.read(file, own_stages(), {}, None)


def measure_stage(file: Path, output: str, run: Run, forecast: dict[str, float]) -> Measured:
    """Make one output of a pipeline whose inputs exist."""
    set_quiet(True)
    torch.set_num_threads(1)
    loop.time = SimpleNamespace(monotonic=cpu_seconds)  # type: ignore[assignment]
    pipeline = pipeline_of(file)
    (step,) = (step for step in pipeline.steps if step.name == output)
    inputs = {name: open_artifact(newest(pipeline.workspace / name)) for name in step.needs}
    wall, cpu = time.perf_counter(), cpu_seconds()
    with Memory() as memory:
        made = step.build(inputs, pipeline.workspace).make(pipeline.workspace / output)
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    disk = sum(path.stat().st_size for path in made.path.rglob("*") if path.is_file()) / 2**20
    found = {name: float(value) for name, value in made.metrics.items() if isinstance(value, int | float)}
    if step.stage.command() == "pretrain":
        found |= refreshes_of(made.path)
    return recorded(
        run, step.stage.command(), (round(cpu, 2), round(wall, 2)), (memory.own, round(disk, 1)), forecast, found
    )


def recorded(
    run: Run,
    stage: str,
    seconds: tuple[float, float],
    mebibytes: tuple[float, float],
    forecast: dict[str, float],
    found: dict[str, float],
) -> Measured:
    """A record of now, on this machine."""
    load = round(os.getloadavg()[0], 1)
    return Measured(*run, stage, *seconds, *mebibytes, forecast, found, processor(), load, date.today().isoformat())


def newest(series: Path) -> Path:
    return max(series.glob("v*"))


def refreshes_of(model: Path) -> dict[str, float]:
    """Mean age of the index."""
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text("utf-8").splitlines()]
    return {"age": statistics.mean(line["index_age_steps"] for line in lines if "index_age_steps" in line)}


def measure_search(folder: Path, run: Run) -> Measured:
    """Search an index, one query at a time."""
    torch.set_num_threads(1)
    index = open_index(newest(folder / "made" / "index"))
    rows = np.random.default_rng(0).integers(0, index.count, QUERIES)
    queries = index.vectors(rows) + np.float32(0.02) * np.random.default_rng(1).standard_normal(
        (QUERIES, index.dimension), np.float32
    )
    index.search(queries[:1], TOP)
    with Memory() as memory:
        wall, cpu = time.perf_counter(), cpu_seconds()
        for query in queries:
            index.search(query[None], TOP)
        cpu, wall = (cpu_seconds() - cpu) / QUERIES, (time.perf_counter() - wall) / QUERIES
    return recorded(run, "search", (round(cpu, 5), round(wall, 5)), (memory.own, 0.0), {}, {"rows": float(index.count)})


def keep(new: Measured, results: Path, page: Path) -> None:
    """Add a record to the results, in place of an earlier one of the same, and write the page."""
    print(json.dumps(asdict(new)), flush=True)
    kept = [each for each in read(results) if each.same() != new.same()] + [new]
    kept.sort(key=lambda each: (each.encoder, each.documents, ORDER.index(each.stage), each.index))
    results.write_text(json.dumps([asdict(each) for each in kept], indent=1) + "\n", encoding="utf-8")
    page.write_text(page_of(kept), encoding="utf-8")


def read(results: Path) -> list[Measured]:
    return [Measured(**each) for each in json.loads(results.read_text("utf-8"))] if results.is_file() else []


HEAD = """# A chain over many documents

Documents become blocks, spans, vectors and an index, each stage beside what [`realmctl plan`](../../how-to/time-and-memory.md#plan-a-whole-run) forecast of it. \
[How time and memory grow](../../../benchmarks/growth.md) has smaller corpora and more types of index.

<!-- Generated by benchmarks/scale.py: do not edit. -->
## What holds

"""
HOW = """
## How it was measured

`python benchmarks/scale.py TEXT --documents 10000 100000 1000000 --folder DIR` measures the documents of drawn sentences: 500 to 700 bytes each, from whole articles \
of Wikipedia. Without `--documents` the articles themselves are taken, and `--refresh int8` adds a `pretrain` whose index a second process makes anew.

- Each stage ran in a process of its own, with one thread. Seconds are CPU seconds with those of child processes, in the forecast too.
- Memory is by how much the process grew at its peak beyond Python and PyTorch, without the pages of mapped files. The forecast counts \
weights, activations and vectors alone: the process of `embed` or of a training stage also loads the libraries of models, some 150 MiB, and keeps memory that was freed for later.
- Files are those of the artifact, with the vectors that `build-index` links. The forecast of a training stage has its checkpoints.
- `search` is one query, the best 8, in the index of the line above it.
- The forecast of a record comes from the `plan` of its day. Those of 2026 until `plan` asked the stages themselves come from samples of 2 MB and formulas (`--calibrate`).
"""


def page_of(measured: Sequence[Measured]) -> str:
    """The page, with a table for each encoder and kind of documents."""
    runs = {(each.drawn, each.encoder) for each in measured}
    parts = [HEAD, "\n".join(what_holds(measured)), "\n"]
    for drawn, encoder in sorted(runs, reverse=True):
        mine = [each for each in measured if (each.drawn, each.encoder) == (drawn, encoder)]
        parts.append(
            f"\n## {'Documents of drawn sentences' if drawn else 'Articles of Wikipedia'}, encoder {encoder}\n\n"
        )
        cut = {each.documents: each.found["blocks"] for each in mine if each.stage == "chunk"}
        if any(blocks != documents for documents, blocks in cut.items()):
            parts.append(
                "".join(
                    f"{documents:,} documents are {blocks:,.0f} blocks. " for documents, blocks in cut.items()
                ).strip()
                + "\n\n"
            )
        parts.append(table_of(mine))
    machines = "; ".join(sorted({f"{each.machine}, {each.date}" for each in measured}))
    loads = [each.load for each in measured]
    beside = f" The load average was {min(loads):g} to {max(loads):g}, one of it the stage." if loads else ""
    return "".join(parts) + HOW + f"\nMeasured on: {machines}.{beside}\n"


def what_holds(measured: Sequence[Measured]) -> Iterator[str]:
    """The first lines: what a million documents take, how each stage grows, and the forecast."""
    drawn = sorted((each for each in measured if each.drawn), key=lambda each: each.documents)
    largest = {each.stage: each for each in drawn if each.stage in GROWING}
    million = sorted(
        ((1e6 * each.seconds / each.documents, each) for each in largest.values()), key=lambda pair: -pair[0]
    )
    shares = [
        f"`{each.stage}` {seconds:,.0f}" + ("" if each.documents == 1e6 else f" (at the rate of {each.documents:,})")
        for seconds, each in million
    ]
    if shares:
        yield f"- **A million documents** take, in CPU seconds of one thread: {', '.join(shares)}."
    for stage in GROWING:
        sizes = [each for each in drawn if each.stage == stage]
        if len(sizes) > 1:
            first, last = sizes[0], sizes[-1]
            exponent = math.log(last.seconds / first.seconds) / math.log(last.documents / first.documents)
            memory = ", ".join(f"{each.mebibytes:,.0f}" for each in sizes)
            yield (
                f"- **`{stage}`**, from {first.documents:,} to {last.documents:,} documents: time grows with the power {exponent:.2f} of their number; "
                f"memory is {memory} MiB."
            )
    ratios = [each.forecast["seconds"] / each.seconds for each in measured if each.seconds >= 1 and each.forecast]
    if ratios:
        yield f"- **Forecast**: {min(ratios):.2f} to {max(ratios):.2f} times what a stage of a second or more took."


def table_of(measured: Sequence[Measured]) -> str:
    """A line for each stage."""
    lines = [
        "| documents | stage | CPU s | forecast | ratio | memory, MiB | forecast | files, MiB | forecast |",
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for each in measured:
        said = each.forecast
        stage = f"`{each.stage}`" if said else each.stage
        cells = [f"{each.documents:,}", f"{stage}, {each.index}" if each.index else stage, f"{each.seconds:,.4g}"]
        cells += [f"{said['seconds']:,.4g}", f"{said['seconds'] / each.seconds:.2f}"] if said else ["", ""]
        cells += [f"{each.mebibytes:,.0f}", f"{said['memory_mebibytes']:,.0f}" if said else ""]
        cells += [f"{each.disk_mebibytes:,.1f}", f"{said['disk_mebibytes']:,.1f}"] if said else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    for each in measured:
        if each.stage == "pretrain":
            lines.append(refresh_text(each))
    return "\n".join(lines) + "\n"


def refresh_text(each: Measured) -> str:
    """What `pretrain` says of its steps and of its index."""
    found, said = each.found, each.forecast
    return (
        f"\n**{each.index}**: `pretrain` used {found['refreshes']:.0f} refreshed indexes in {found['steps']:,.0f} steps. Its index was {found['age']:,.0f} steps old on average, "
        f"and {said['age']:,.0f} in the forecast; a refresh takes {said['refresh_seconds']:,.0f} s there. A step took {1000 * found['seconds_per_step']:.0f} ms of CPU time."
    )


if __name__ == "__main__":
    main()

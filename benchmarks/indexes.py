"""Types of index side by side: build, refresh, memory, search and recall, into docs/results/indexes/measured.json and a page.

    python benchmarks/indexes.py --rows 100000 1000000 --folder /tmp/indexes
    python benchmarks/indexes.py --rows 10000000 --types exact int8 faiss --folder /tmp/indexes

Synthetic vectors around centres. "Refresh" builds an index of the same vectors after each moved a little, with the first index as
the one before, as a refresh during training does. Each part is a process of its own with one thread, so its memory is its own. Times
are CPU times: other work on the machine counts little. `--parts` measures some parts, of an index that `--keep` left in the folder. A
measurement replaces the earlier one of its rows, type and part.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

import matplotlib
import numpy as np
import torch
from bench import processor
from figure import COLORS, STYLE, save
from matplotlib.figure import Figure

from realmctl.artifacts.arrays import ArrayAppender
from realmctl.index.build import build
from realmctl.index.exact import ExactIndex
from realmctl.index.index_type import open_index
from realmctl.index.recall import RecallSample
from realmctl.index.settings import index_settings
from realmctl.index.vectors import ROWS_PER_CHUNK, VECTORS_FILE, open_vectors
from realmctl.log import set_quiet

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results" / "indexes"
DIMENSION, ROWS_PER_CENTRE, SPREAD, DRIFT = 128, 200, 0.6, 0.05
QUERIES, BATCH, DEPTHS = 200, 32, (8, 100)
TYPES = {
    "exact": index_settings()(type="exact"),
    "int8": index_settings()(type="int8"),
    "faiss": index_settings()(type="faiss", factory="IVF4096,PQ64"),
    "hnsw": index_settings()(type="hnsw"),
}
NOT_MEASURED = "not measured"
PARTS = ("build", "search", "refresh")


@dataclass(frozen=True)
class Measured:
    """One part of one type of index over so many rows.

    Attributes:
        found: Numbers by name: `_s` CPU seconds, `_wall_s` wall seconds, `_ms` CPU milliseconds of a query, `_mib` MiB.
        load: Load average of the machine when the part ended; one of it is this process.
    """

    rows: int
    type: str
    part: str
    found: dict[str, float]
    machine: str
    load: float
    date: str


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", type=Path, default=Path("indexes"), help="where vectors and indexes are written")
    parser.add_argument("--keep", action="store_true", help="leave them there")
    parser.add_argument("--results", type=Path, default=RESULTS / "measured.json")
    parser.add_argument("--page", type=Path, default=RESULTS / "report.md")
    parser.add_argument("--page-only", action="store_true", help="write the page of what is measured")
    given = parser.parse_args()
    if given.page_only:
        write_page(read(given.results), given.page)
        return
    works = {"build": measure_build, "search": measure_search, "refresh": measure_refresh}
    for rows in given.rows:
        folder = given.folder / str(rows)
        if not (folder / "true.npy").is_file():
            alone(prepare, folder, rows)
        for kind in given.types:
            for part in given.parts:
                found = alone(works[part], folder, kind, rows)
                load = round(os.getloadavg()[0], 1)
                new = Measured(rows, kind, part, found, processor(), load, date.today().isoformat())
                print(json.dumps(asdict(new)), flush=True)
                keep(new, given.results, given.page)
            if not given.keep:
                shutil.rmtree(folder / kind)
        if not given.keep:
            shutil.rmtree(folder)


def keep(new: Measured, results: Path, page: Path) -> None:
    """Add a measurement to the results, in place of an earlier one of the same, and write the page."""
    kept = read(results)
    same = (new.rows, new.type, new.part)
    kept = [each for each in kept if (each.rows, each.type, each.part) != same] + [new]
    kept.sort(key=lambda each: (each.rows, list(TYPES).index(each.type), PARTS.index(each.part)))
    results.write_text(json.dumps([asdict(each) for each in kept], indent=1) + "\n", encoding="utf-8")
    write_page(kept, page)


def read(results: Path) -> list[Measured]:
    """Return the measurements of a file; none where there is no file."""
    return [Measured(**each) for each in json.loads(results.read_text("utf-8"))] if results.is_file() else []


def alone(work: Callable[..., Any], *given: object) -> Any:
    """Return what `work` returns in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def prepare(folder: Path, rows: int) -> None:
    """Write vectors, queries, and the rows nearest to them."""
    write(folder / "build", rows, 1)
    vectors = open_vectors(folder / "build" / VECTORS_FILE)
    noise = np.random.default_rng(3).standard_normal((QUERIES, DIMENSION), np.float32)
    queries = vectors[:: rows // QUERIES][:QUERIES] + 0.4 * noise
    np.save(folder / "queries.npy", queries)
    np.save(folder / "true.npy", ExactIndex(vectors).search(queries, max(DEPTHS))[1])


def write(folder: Path, rows: int, seed: int) -> None:
    """Write vectors around centres, each moved a little with `seed`: another seed is the same corpus after training."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, moved = np.random.default_rng(0), np.random.default_rng(seed)
    centres = rng.standard_normal((max(10, rows // ROWS_PER_CENTRE), DIMENSION), np.float32)
    file = ArrayAppender(folder / VECTORS_FILE, np.float32, DIMENSION)
    for start in range(0, rows, ROWS_PER_CHUNK):
        count = min(ROWS_PER_CHUNK, rows - start)
        own = centres[rng.integers(len(centres), size=count)]
        own += SPREAD * rng.standard_normal((count, DIMENSION), np.float32)
        file.append(own + DRIFT * moved.standard_normal((count, DIMENSION), np.float32))
    file.close()


def measure_build(folder: Path, kind: str, rows: int) -> dict[str, float]:
    """Build an index."""
    return built(folder, kind, "build", None)


def measure_refresh(folder: Path, kind: str, rows: int) -> dict[str, float]:
    """Build an index of the vectors after they moved, with the first index as the one before."""
    if not (folder / "refresh").is_dir():
        alone(write, folder / "refresh", rows, 2)
    return built(folder, kind, "refresh", folder / kind / "build")


def built(folder: Path, kind: str, part: str, former: Path | None) -> dict[str, float]:
    """Build an index of the vectors of a part, and return what it took."""
    set_quiet(True)
    torch.set_num_threads(1)
    gate = Clock()
    for name in ("__init__", "measure"):  # the recall of an index is measured by these two
        setattr(RecallSample, name, gate.timing(getattr(RecallSample, name)))
    own = folder / kind / part
    own.mkdir(parents=True, exist_ok=True)
    (own / VECTORS_FILE).unlink(missing_ok=True)
    (own / VECTORS_FILE).hardlink_to(folder / part / VECTORS_FILE)
    with Memory() as memory:
        wall, start = time.perf_counter(), time.process_time()
        metrics = build(own, TYPES[kind], former=former)
        cpu_s, wall_s = time.process_time() - start, time.perf_counter() - wall
    sizes = {path.name: path.stat().st_size / 2**20 for path in own.iterdir()}
    return {
        "cpu_s": round(cpu_s, 2),
        "wall_s": round(wall_s, 2),
        "gate_s": round(gate.seconds, 2),
        "own_mib": memory.own,
        "peak_mib": memory.peak,
        "vectors_mib": round(sizes.pop(VECTORS_FILE), 1),
        "files_mib": round(sum(sizes.values()), 1),
    } | {name: metrics[name] for name in ("recall", "recall_k", "ef", "trained_before") if name in metrics}


def measure_search(folder: Path, kind: str, rows: int) -> dict[str, float]:
    """Open an index and search it."""
    set_quiet(True)
    torch.set_num_threads(1)
    queries, true = np.load(folder / "queries.npy"), np.load(folder / "true.npy")
    found = dict[str, float]()
    with Memory() as memory:
        start = time.process_time()
        index = open_index(folder / kind / "build")
        found["open_s"] = round(time.process_time() - start, 3)
        for depth in DEPTHS:
            ids = index.search(queries, depth)[1]  # which also brings the files into the cache
            shares = [len({*a} & {*b}) / depth for a, b in zip(true[:, :depth].tolist(), ids.tolist(), strict=True)]
            found[f"recall@{depth}"] = round(statistics.mean(shares), 4)
            for name, size in (("one", 1), ("batch", BATCH)):
                seconds, walls = [], []
                for first in range(0, BATCH if size == 1 else 5 * BATCH, size):
                    wall, start = time.perf_counter(), time.process_time()
                    index.search(queries[first : first + size], depth)
                    seconds.append((time.process_time() - start) / size)
                    walls.append((time.perf_counter() - wall) / size)
                found[f"{name}@{depth}_ms"] = round(1000 * statistics.median(seconds), 3)
                found[f"{name}@{depth}_wall_ms"] = round(1000 * statistics.median(walls), 3)
    return found | {"own_mib": memory.own, "peak_mib": memory.peak}


class Clock:
    """CPU seconds of the functions that it times, each counted once where they call each other."""

    def __init__(self) -> None:
        self.seconds, self._running = 0.0, False

    def timing(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return `work`, whose time counts."""

        def timed(*given: Any, **named: Any) -> Any:
            if self._running:
                return work(*given, **named)
            start, self._running = time.process_time(), True
            try:
                return work(*given, **named)
            finally:
                self.seconds, self._running = self.seconds + time.process_time() - start, False

        return timed


class Memory:
    """By how many MiB the process grows at its peak: `own` without the pages of mapped files, `peak` with them."""

    def __enter__(self) -> Memory:
        self._start = self._most = self._now()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._watch.join()
        self.own, self.peak = (round(most - start) for most, start in zip(self._most, self._start, strict=True))

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self._most = tuple(max(pair) for pair in zip(self._most, self._now(), strict=True))

    @staticmethod
    def _now() -> tuple[float, ...]:
        lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        return tuple(int(lines[name].split()[0]) / 1024 for name in ("RssAnon", "VmRSS"))


HEAD = """# Types of index

Which type of index finds how much, how fast, and in how much memory? Each type has the same vectors. \
[Choose an index](../../how-to/choose-index.md) says which to take.

<!-- Generated by benchmarks/indexes.py: do not edit. -->
## What holds

"""
TABLE = """
## Every type

| vectors | type | build, s | refresh, s | files beside the vectors, MiB | memory of the build, MiB | memory of a search, MiB | one query, ms | 32 queries, ms each | recall@8 | recall@100 |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""
NOTES = """
## How it was measured

`python benchmarks/indexes.py --rows 100000 1000000 --folder FOLDER` measures this page. The vectors have 128 numbers in float32 and lie around \
centres; a [refresh](../../refresh.md) indexes them again after each moved a little. Each part ran in a process of its own, on one thread. Times are CPU times.

- **Build and refresh** include the recall gate, in brackets. It compares 1,000 queries with exact search, at 8 and at 100 neighbours; `--recall-sample` \
takes fewer. Exact search needs none.
- **Memory** is by how much the process grew: of its own, and in brackets with the pages of mapped files, which the system takes back when it needs them.
- **Queries** ask for the best 8, and after the stroke for the best 100. hnsw and faiss search as wide as the gate asked for ({widths}). \
An inverted file suits vectors around centres; yours may need a wider search.
- **Refresh**: faiss keeps what it trained. The other types keep nothing, so where no refresh was measured it takes what a build takes.
{hnsw}- Lines and cells that are missing were not measured.
"""
HNSW = """- **hnsw**: over 10⁶ vectors a build took 540 s on another machine \
([benchmarks/growth.md](../../../benchmarks/growth.md)), and it grows faster than the vectors: 10⁷ would take more than an hour and a half (extrapolated, not measured).
"""
"""Stands on the page until the build was measured here."""


def searches(measured: list[Measured]) -> dict[str, dict[int, dict[str, float]]]:
    """What a search took, by type and number of vectors."""
    found = {(each.type, each.rows): each.found for each in measured if each.part == "search"}
    by_type = {kind: {rows: found[kind, rows] for of, rows in sorted(found) if of == kind} for kind in TYPES}
    return {kind: of for kind, of in by_type.items() if of}


def holds(measured: list[Measured]) -> list[str]:
    """A line for each type: the time of one query over so many vectors, beside exact search, and the least recall."""
    by_type = searches(measured)
    exact = by_type.get("exact", {})
    lines = []
    for kind, sizes in by_type.items():
        said = listed(f"{each['one@8_ms']:.3g} ms over {rows:,}" for rows, each in sizes.items())
        ratios = [exact[rows]["one@8_ms"] / each["one@8_ms"] for rows, each in sizes.items() if rows in exact]
        beside = [f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}" for ratio in ratios]
        least = min(each["recall@8"] for each in sizes.values())
        at_least = "at least " if len(sizes) > 1 and least < 0.9995 else ""
        lines.append(
            f"- **`{kind}`**: one query takes {said} vectors"
            + (f", {listed(beside)} times as fast as exact search" if kind != "exact" and beside else "")
            + (". It misses nothing." if kind == "exact" else f". Recall@8 is {at_least}{least:.3f}.")
        )
    if exact:
        rows = max(exact)
        one, batch = exact[rows]["one@8_ms"], exact[rows]["batch@8_ms"]
        lines.append(
            f"- **Queries at once**: {BATCH} together cost exact search {batch:.3g} ms each over {rows:,} vectors, in place of {one:.3g}."
        )
    return lines


def listed(words: Iterable[str]) -> str:
    """Words with commas, and `and` before the last."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def growth_figure(measured: list[Measured]) -> Figure:
    """The time of one query, and the memory of a search, over the number of vectors: a line for each type."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 3.2), layout="constrained")
        panels = {"one query, ms": "one@8_ms", "memory of a search, MiB": "peak_mib"}
        for axes, (label, name) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            for kind, sizes in searches(measured).items():
                color = COLORS[list(TYPES).index(kind)]
                axes.plot([*sizes], [each[name] for each in sizes.values()], "o-", color=color, label=kind)
            axes.set(xscale="log", yscale="log", xlabel="vectors", ylabel=label)
            axes.grid(alpha=0.3)
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(TYPES))
    return figure


def write_page(measured: list[Measured], page: Path) -> None:
    """Write the page and its figure."""
    if searches(measured):
        save(growth_figure(measured), page.with_name("growth.svg"))
    page.write_text(page_of(measured), encoding="utf-8")


def page_of(measured: list[Measured]) -> str:
    """The page, with a line for each type over so many vectors."""
    found = {(each.rows, each.type, each.part): each.found for each in measured}
    lines = []
    for rows, kind in sorted(
        {(each.rows, each.type) for each in measured}, key=lambda row: (row[0], [*TYPES].index(row[1]))
    ):
        build, refresh, search = (found.get((rows, kind, part), {}) for part in ("build", "refresh", "search"))
        name = f"`{kind}`" + (f" `{TYPES[kind].factory}`" if TYPES[kind].factory else "")
        cells = [
            f"{rows:,}",
            name,
            _seconds(build),
            _seconds(refresh) if refresh or kind == "faiss" else "as the build",
        ]
        cells += [f"{build['files_mib']:,.0f}" if build else NOT_MEASURED, _memory(build), _memory(search)]
        for asked in ("one", "batch"):
            times = [f"{search[f'{asked}@{depth}_ms']:.3g}" for depth in DEPTHS] if search else [NOT_MEASURED]
            cells.append(" / ".join(times))
        cells += [f"{search[f'recall@{depth}']:.3f}" if search else NOT_MEASURED for depth in DEPTHS]
        lines.append(f"| {' | '.join(cells)} |")
    widths = ", ".join(
        f"{each.type} over {each.rows:,}: {each.found['ef']:.0f}"
        for each in measured
        if each.part == "build" and "ef" in each.found
    )
    machines = "; ".join(sorted({f"{each.machine}, {each.date}" for each in measured}))
    loads = [each.load for each in measured]
    beside = (
        f"Other work ran beside it: the load average was {min(loads):g} to {max(loads):g}."
        if loads and max(loads) >= 2
        else ""
    )
    figure = "\n![Time of one query, and memory of a search, by the number of vectors](growth.svg)\n\nMemory counts the pages of mapped files, which the system takes back when it needs them.\n"
    return (
        HEAD
        + "".join(f"{line}\n" for line in holds(measured))
        + (figure if searches(measured) else "")
        + TABLE
        + "\n".join(lines)
        + "\n"
        + NOTES.replace("{widths}", widths).replace("{hnsw}", "" if (1_000_000, "hnsw", "build") in found else HNSW)
        + f"\nMeasured on: {machines}. {beside}".rstrip()
        + "\n"
    )


def _seconds(part: dict[str, float]) -> str:
    return " ".join([digits(part["cpu_s"]), f"({digits(part['gate_s'])})"]) if part else NOT_MEASURED


def digits(number: float) -> str:
    """Return a number with three digits, or all before the point."""
    return f"{number:.3g}" if number < 999.5 else f"{number:,.0f}"


def _memory(part: dict[str, float]) -> str:
    return f"{part['own_mib']:,.0f} ({part['peak_mib']:,.0f})" if part else NOT_MEASURED


if __name__ == "__main__":
    main()

"""Measure how time and memory of each stage grow with the number of blocks, and fit exponents.

    python benchmarks/growth.py [--blocks 1000 10000 100000] [--vectors 1000000] [--json FILE]

A corpus of words drawn with a fixed seed is chunked into one block a document, tagged, embedded with an untrained encoder of one layer, and indexed. Every
measurement is CPU seconds, because other programs change them little, and the growth of the process's peak memory. `--vectors`
measures the indexes alone, over that many normalised Gaussian vectors around 1,000 centres. One thread, one process.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
from verification import write_corpus

from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.index.build import build
from realmctl.index.index_type import open_index
from realmctl.index.settings import IndexSettings
from realmctl.training import loop
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from stages.tag import Tag

QUERIES, TOP = 256, 8
STEPS = 6
INDEXES: dict[str, dict[str, Any]] = {
    "exact": {"type": "exact"},
    "hnsw": {"type": "hnsw", "shards": 1, "min_recall": 0.0},
    "hnsw, 4 shards": {"type": "hnsw", "shards": 4, "min_recall": 0.0},
}


@dataclass(frozen=True)
class Measured:
    """One measurement: what, over how many blocks, CPU seconds, and MiB by which the peak memory grew."""

    what: str
    blocks: int
    seconds: float
    mebibytes: float


class Notes:
    """The measurements so far, printed and kept in a file."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.found = file, list[Measured]()

    def measure(self, what: str, blocks: int, work: Callable[[], Any], share: float = 1.0) -> Any:
        """Run and record it, with the CPU seconds multiplied by `share`. Return its value."""
        value, seconds, mebibytes = measure(work)
        self.add(what, blocks, seconds * share, mebibytes)
        return value

    def add(self, what: str, blocks: int, seconds: float, mebibytes: float) -> None:
        self.found.append(Measured(what, blocks, seconds, mebibytes))
        print(f"{what:28}{blocks:>10,}{seconds:12.5f} s{mebibytes:10.1f} MiB", flush=True)
        if self.file:
            self.file.write_text(json.dumps([asdict(each) for each in self.found], indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--vectors", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    notes = Notes(options.json)
    with tempfile.TemporaryDirectory() as name:
        start = start_of(Path(name))
        for blocks in options.blocks:
            with tempfile.TemporaryDirectory() as folder:
                stages(Path(folder), blocks, start, notes)
        for rows in options.vectors:
            with tempfile.TemporaryDirectory() as folder:
                vectors_alone(Path(folder), rows, notes)
    print_fits(notes.found)


def start_of(folder: Path) -> dict[str, Artifact]:
    """A vocabulary and an encoder that all sizes share. Making them also warms up everything that is loaded once."""
    blocks = Chunk(
        corpus=(write_corpus(folder / "corpus.jsonl", 500),), tokenizer="train:4000", max_wordpieces=288, workers=1
    ).make(folder / "blocks")
    encoder = MlmInit(blocks=blocks, spans=None, bert="scratch:L1-H64-A2", steps=1, batch_size=4, length=32).make(
        folder / "encoder"
    )
    retriever = IctInit(blocks=blocks, encoder=encoder, steps=1, batch_size=4, precision="fp32").make(
        folder / "retriever"
    )
    Tag(blocks=blocks, workers=1).make(folder / "spans")
    embeddings = Embed(blocks=blocks, retriever=retriever, precision="fp32").make(folder / "embeddings")
    BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0).make(folder / "index")
    return {"blocks": blocks, "encoder": encoder, "retriever": retriever}


def stages(folder: Path, count: int, start: dict[str, Artifact], notes: Notes) -> None:
    """Measure every stage over a corpus of `count` documents of one block."""
    corpus = write_corpus(folder / "corpus.jsonl", count)
    vocabulary, retriever = str(start["encoder"].path), start["retriever"]
    blocks = notes.measure(
        "chunk",
        count,
        lambda: Chunk(corpus=(corpus,), tokenizer=vocabulary, max_wordpieces=288, workers=1).make(folder / "blocks"),
    )
    spans = notes.measure("tag", count, lambda: Tag(blocks=blocks, workers=1).make(folder / "spans"))
    embeddings = notes.measure(
        "embed", count, lambda: Embed(blocks=blocks, retriever=retriever, precision="fp32").make(folder / "embeddings")
    )
    indexes = {}
    for kind, settings in INDEXES.items():
        out = folder / kind.replace(", ", "-").replace(" ", "-")
        indexes[kind] = notes.measure(
            f"build-index {kind}", count, partial(BuildIndex(embeddings=embeddings, **settings).make, out)
        )
        search(kind, indexes[kind].path, count, notes)
    notes.measure("open blocks", count, lambda: [open_artifact(blocks.path) for _ in range(20)], 1 / 20)
    notes.measure("verify blocks", count, lambda: verify(open_artifact(blocks.path)))
    for kind in ("exact", "hnsw"):
        step(kind, folder, count, {**start, "blocks": blocks, "spans": spans, "index": indexes[kind]}, notes)


def step(kind: str, folder: Path, count: int, parts: dict[str, Artifact], notes: Notes) -> None:
    """Measure the steps of `pretrain` after the first, with candidates from this index."""
    run = Pretrain(
        blocks=parts["blocks"],
        spans=parts["spans"],
        retriever=parts["retriever"],
        encoder=parts["encoder"],
        index=parts["index"],
        steps=STEPS,
        batch_size=8,
        warmup=1,
        refresh="never",
        precision="fp32",
    )
    seconds, plain = list[float](), loop._Run._take

    def timed(self: Any, *arguments: Any) -> int:
        taken, used, _ = measure(lambda: plain(self, *arguments))
        seconds.append(used)
        return int(taken)

    loop._Run._take = timed  # type: ignore[method-assign]
    try:
        run.trial()
    finally:
        loop._Run._take = plain  # type: ignore[method-assign]
    notes.add(f"training step, {kind}", count, statistics.median(seconds[1:]), math.nan)


def search(kind: str, folder: Path, count: int, notes: Notes) -> None:
    """Measure searches of one query at a time, after one that loads the index."""
    index = open_index(folder)
    rows = np.random.default_rng(0).integers(0, index.count, QUERIES)
    query_BD = index.vectors(rows) + np.float32(0.02) * np.random.default_rng(1).standard_normal(
        (QUERIES, index.dimension), np.float32
    )
    index.search(query_BD[:1], TOP)
    notes.measure(f"search {kind}", count, lambda: [index.search(query[None], TOP) for query in query_BD], 1 / QUERIES)


def vectors_alone(folder: Path, rows: int, notes: Notes) -> None:
    """Measure the indexes over synthetic vectors."""
    draw = np.random.default_rng(0)
    centre_KD = draw.standard_normal((1000, 128), np.float32)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (rows, 128))
    for begin in range(0, rows, 50_000):
        part = centre_KD[draw.integers(0, 1000, min(50_000, rows - begin))]
        part = part + 0.5 * draw.standard_normal(part.shape, np.float32)
        vectors[begin : begin + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    vectors.flush()
    del vectors
    for kind, settings in INDEXES.items():
        place = folder / kind.replace(", ", "-")
        place.mkdir()
        os.link(folder / "vectors.npy", place / "vectors.npy")
        options = IndexSettings.of(settings)
        notes.measure(f"build-index {kind}", rows, partial(build, place, options))
        search(kind, place, rows, notes)


def measure(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the value, the CPU seconds of this process and its children, and the MiB by which the peak memory grew."""
    gc.collect()
    peak, over = [start := memory()], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            peak.append(max(peak.pop(), memory()))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    begun = cpu_seconds()
    value = work()
    seconds = cpu_seconds() - begun
    over.set()
    watcher.join()
    return value, seconds, max(peak[0], memory()) - start


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def memory() -> float:
    """MiB of this process that are no part of a file: pages of mapped files leave the memory as soon as others need it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024


def print_fits(found: list[Measured]) -> None:
    """Print for each measurement the exponents of its growth: the slope between logarithms, by least squares."""
    print(f"\n{'':28}{'exponent of time':>18}{'exponent of memory':>20}")
    for what in dict.fromkeys(each.what for each in found):
        points = [each for each in found if each.what == what]
        time, peak = (
            slope([(point.blocks, value(point)) for point in points])
            for value in (lambda point: point.seconds, lambda point: point.mebibytes)
        )
        print(f"{what:28}{time:>18}{peak:>20}")


def slope(points: list[tuple[int, float]]) -> str:
    """Slope of log y over log x. Values that are 0 or missing are left out."""
    logs = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    if len(logs) < 2:
        return "-"
    x, y = np.array(logs).T
    return f"{np.polyfit(x, y, 1)[0]:.2f}"


if __name__ == "__main__":
    main()

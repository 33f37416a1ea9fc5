"""CPU seconds and peak memory of whole commands by the number of blocks, each in a process of its own with one thread, as tables.

    python benchmarks/commands.py --blocks 10000 100000 --table 1000000 [--folder DIR]

A corpus of words drawn with a fixed seed, one block a document, is made searchable by an untrained encoder of one layer of width 64, and searched by each method,
alone and by `serve`. `--table` is a Parquet file of that many short texts, each with a drawn vector of 384 numbers: it is taken in, and written out again.
Memory is the most that the process and its children held at once without the pages of mapped files, and in brackets with them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from verification import write_corpus

METHODS = ("dense", "bm25", "hybrid")
WIDTH = 384
ROWS_AT_ONCE = 10_000
THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "RAYON")}


class Taken(NamedTuple):
    """What a command took: CPU seconds, and MiB at its peak without and with the pages of mapped files."""

    seconds: float
    anonymous: float
    resident: float

    def __str__(self) -> str:
        return f"{self.seconds:,.1f} s, {self.anonymous:,.0f} ({self.resident:,.0f}) MiB"


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[int, Taken]]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--blocks", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--table", type=int, nargs="*", default=[1_000_000])
    parser.add_argument("--folder", type=Path, help="where the corpora and artifacts are made for the time being")
    given = parser.parse_args(arguments)
    found: dict[str, dict[int, Taken]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        start = Path(name)
        write_corpus(start / "start.jsonl", 500)
        run("chunk", "start.jsonl", "--tokenizer", "train:4000", "--workers", "1", folder=start)
        drawn = ("ict-init", "--bert", "scratch:L1-H64-A2", "--steps", "0")
        run(*drawn, folder=start)
        run("export", "artifacts/retriever", "encoder", "--form", "sentence-transformers", folder=start)
        run(*drawn, "--projection", str(WIDTH), "--out", "wide", folder=start)
        for count in given.blocks:
            with tempfile.TemporaryDirectory(dir=start) as folder:
                for what, taken in commands(Path(folder), start, count):
                    note(found, what, count, taken)
        for count in given.table:
            with tempfile.TemporaryDirectory(dir=start) as folder:
                for what, taken in table(Path(folder), start, count):
                    note(found, what, count, taken)
    print_table(found)
    return found


def note(found: dict[str, dict[int, Taken]], what: str, count: int, taken: Taken) -> None:
    found.setdefault(what, {})[count] = taken
    print(f"{what:32}{count:>10,}  {taken}", file=sys.stderr, flush=True)


def commands(folder: Path, start: Path, count: int) -> Iterator[tuple[str, Taken]]:
    """Measure the commands of a search over `count` blocks."""
    corpus = write_corpus(folder / "corpus.jsonl", count)
    question = " ".join(json.loads(corpus.read_text(encoding="utf-8").partition("\n")[0])["text"].split()[:8])
    yield "`index-docs`", run("index-docs", corpus, "--encoder", start / "encoder", folder=folder)
    for method in METHODS:
        yield f"`search`, {method}", run("search", question, "--method", method, folder=folder)
    yield (
        "`serve`, 8 questions by each method",
        run("serve", "--port", "0", "--json", folder=folder, then=asking(question)),
    )
    out = ("export", "artifacts/embeddings", "t.parquet", "--form", "parquet", "--blocks", "artifacts/blocks")
    yield "`export --form parquet`", run(*out, folder=folder)


def table(folder: Path, start: Path, count: int) -> Iterator[tuple[str, Taken]]:
    """Measure a table of `count` rows on its way in and out."""
    write_table(folder / "in.parquet", count)
    taken_in = run("import-table", "in.parquet", "--retriever", start / "wide", folder=folder)
    yield f"`import-table`, {WIDTH} numbers", taken_in
    out = ("export", "artifacts/embeddings", "out.parquet", "--form", "parquet", "--blocks", "artifacts/blocks")
    yield f"`export --form parquet`, {WIDTH} numbers", run(*out, folder=folder)
    print(f"out.parquet has {(folder / 'out.parquet').stat().st_size / 1e9:.2f} GB", file=sys.stderr)


def write_table(path: Path, count: int) -> None:
    """Write ids, texts of 24 words and vectors, all drawn with a fixed seed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(0)
    words = np.array(["".join(draw.choice(list("abcdefghijklmnopqrstuvwxyz"), 6)) for _ in range(5000)])
    kinds = pa.schema([("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), WIDTH))])
    with pq.ParquetWriter(path, kinds) as writer:
        for begin in range(0, count, ROWS_AT_ONCE):
            rows = min(ROWS_AT_ONCE, count - begin)
            texts = [" ".join(some) + "." for some in words[draw.integers(0, len(words), (rows, 24))]]
            vectors = pa.FixedSizeListArray.from_arrays(draw.standard_normal(rows * WIDTH, np.float32), WIDTH)
            ids = [f"d{begin + row}" for row in range(rows)]
            writer.write_table(pa.table({"id": ids, "text": texts, "vector": vectors}, schema=kinds))


def asking(question: str) -> Callable[[Any], None]:
    """Ask the server that prints its address as JSON, and end it."""

    def ask(server: subprocess.Popen[str]) -> None:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        for method in METHODS * 8:
            body = json.dumps({"query": question, "method": method}).encode()
            request = urllib.request.Request(
                f"{address}/api/v1/search", body, {"Content-Type": "application/json"}, method="POST"
            )
            with urllib.request.urlopen(request) as reply:
                assert json.load(reply)["hits"]
        server.terminate()

    return ask


def run(*words: object, folder: Path, then: Callable[[Any], None] | None = None) -> Taken:
    """Run a command of realmctl in this folder, and say what it took. Raises SystemExit with what it said where it fails."""
    return run_words([sys.executable, "-P", "-m", "realmctl", *map(str, words)], folder, then)


def run_words(command: Sequence[str], folder: Path, then: Callable[[Any], None] | None = None) -> Taken:
    """Run a program, as `run` does."""
    before = os.times()
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, **THREADS}, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        peaks, over = [0.0, 0.0], threading.Event()
        watcher = threading.Thread(target=watch, args=(process.pid, peaks, over), daemon=True)
        watcher.start()
        try:
            if then:
                then(process)
            process.communicate()
        finally:
            process.kill()
            over.set()
            watcher.join()
        if process.returncode and not then:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}\n{said.read()}")
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return Taken(seconds, *peaks)


def watch(process: int, peaks: list[float], over: threading.Event) -> None:
    """Keep the most memory that the process and its children held, in MiB, until `over`."""
    while not over.wait(0.02):
        now = [memory(each) for each in (process, *children(process))]
        peaks[:] = [max(peak, sum(kind)) for peak, kind in zip(peaks, zip(*now, strict=True), strict=True)]


def children(process: int) -> list[int]:
    """Processes that this one, and those below it, started."""
    try:
        lists = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:  # it has ended
        return []
    own = [int(each) for some in lists for each in some]
    return own + [each for child in own for each in children(child)]


def memory(process: int) -> tuple[float, float]:
    """MiB of a process without and with the pages of mapped files; 0 where it has ended."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0, 0.0
    kept = dict(line.split(":", 1) for line in text.splitlines())
    anonymous, resident = (int(kept.get(name, "0 kB").split()[0]) / 1024 for name in ("RssAnon", "VmRSS"))
    return anonymous, resident


def print_table(found: dict[str, dict[int, Taken]]) -> None:
    """Print the rows as Markdown, a column for each number of blocks."""
    counts = sorted({count for row in found.values() for count in row})
    print("| | " + " | ".join(f"{count:,}" for count in counts) + " |\n|---" + "|---" * len(counts) + "|")
    for what, row in found.items():
        print(f"| {what} | " + " | ".join(str(row.get(count, "")) for count in counts) + " |")


if __name__ == "__main__":
    main()

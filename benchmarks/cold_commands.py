"""CPU seconds of commands in fresh processes, of two checkouts in turn, on one thread, as a table.

python benchmarks/cold_commands.py BEFORE AFTER --rounds 5     # two checkouts; the first round warms up and is not counted
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCKS = 40
TEXT = "Ada number {0} was born in Milton in {1}. She worked for Corvane. The town lies in the north, by the river."
PREPARE = (
    "chunk documents.jsonl --workers 1 --tokenizer train:200",
    "ict-init --bert scratch:L1-H16 --steps 0",
    "embed",
    "build-index --type exact",
    "chunk one.jsonl --workers 1 --tokenizer artifacts/blocks/v1 --out one",
)
ROWS = {
    "`import torch`": "-c|import torch",
    "`import realmctl.models.retriever`": "-c|import realmctl.models.retriever",
    "`search`, dense": "search Milton --method dense",
    "`search`, hybrid": "search Milton --method hybrid",
    "`search`, BM25": "search Milton --method bm25",
    "`embed` of one block": "embed --blocks one --out {out}",
    "`chunk` of one file": "chunk one.jsonl --workers 1 --tokenizer artifacts/blocks/v1 --out {out}",
}


def seconds(checkout: Path, folder: Path, command: str) -> float:
    """Run it and return the CPU seconds, user and system, of the process. Raises SystemExit with what it said when it fails."""
    arguments = command.split("|") if "|" in command else ["-m", "realmctl", *command.split()]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "RAYON")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=folder,
        env={**os.environ, **threads, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"{command} of {checkout} failed: {run.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    sides = [path.resolve() for path in given.checkouts]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            json.dumps({"id": str(n), "title": f"Ada {n}", "text": TEXT.format(n, 1900 + n)}) for n in range(BLOCKS)
        ]
        (folder / "documents.jsonl").write_text("\n".join(lines), encoding="utf-8")
        (folder / "one.jsonl").write_text(lines[0], encoding="utf-8")
        for command in PREPARE:
            seconds(sides[1], folder, command)
        print("| command | before | after | ratio (spread) |\n|---|--:|--:|--:|")
        for place_of_row, (row, command) in enumerate(ROWS.items()):
            rounds = [
                [
                    seconds(side, folder, command.format(out=f"{place_of_row}-{number}-{place}"))
                    for place, side in enumerate(sides)
                ]
                for number in range(given.rounds + 1)
            ][1:]
            before, after = (statistics.median(each) for each in zip(*rounds, strict=True))
            ratios = sorted(one / other for one, other in rounds)
            spread = f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"| {row} | {before:.2f} | {after:.2f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()

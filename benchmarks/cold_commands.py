"""CPU seconds of commands in fresh processes, of two checkouts in turn, on one thread, as a table.

python benchmarks/cold_commands.py BEFORE AFTER --rounds 5     # two checkouts; the first round warms up and is not counted
python benchmarks/cold_commands.py BEFORE AFTER --blocks 25000 # BM25 of many blocks
python benchmarks/cold_commands.py BEFORE AFTER --documents FILE.jsonl --encoder FOLDER     # real text and a published encoder
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
from collections.abc import Sequence
from pathlib import Path

TEXT = "Ada number {0} was born in Milton in {1}. She worked for Corvane. The town lies in the north, by the river."
QUESTION = json.dumps({"question": "Where was Ada number 3 born?", "answers": ["Milton"]}) + "\n"
ROWS = {
    "`import torch`": "-c|import torch",
    "`import realmctl.models.retriever`": "-c|import realmctl.models.retriever",
    "`search`, dense": "search Milton --method dense",
    "`search`, hybrid": "search Milton --method hybrid",
    "`search`, BM25": "search Milton --method bm25",
    "`ask`": "ask Milton",
    "`embed` of one block": "embed --blocks one --out {out}",
    "`chunk` of one file": "chunk one.jsonl --workers 1 --tokenizer artifacts/blocks/v1 --out {out}",
}


def prepared_by(encoder: Path | None) -> Sequence[str]:
    """The commands that make what the measured ones read."""
    first = (
        (
            f"import {encoder.resolve()} --scale 20",
            "chunk documents.jsonl --tokenizer artifacts/retriever/v1 --max-wordpieces 96",
        )
        if encoder
        else ("chunk documents.jsonl --workers 1 --tokenizer train:200", "ict-init --bert scratch:L1-H16 --steps 0")
    )
    return (
        *first,
        "embed",
        "build-index --type exact",
        "chunk one.jsonl --workers 1 --tokenizer artifacts/blocks/v1 --out one",
        "tag --tagger rules --workers 1",
        *(() if encoder else ("mlm-init --bert scratch:L1-H16 --steps 1 --batch-size 2",)),
        f"pretrain {f'--bert {encoder.resolve()} ' if encoder else ''}--steps 1 --batch-size 2 --candidates 2",
        "finetune --questions questions.jsonl --steps 1 --batch-size 2",
    )


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
    parser.add_argument("--blocks", type=int, default=40, help="generated documents, of one block each")
    parser.add_argument("--only", default="", help="rows whose name holds this, such as search")
    parser.add_argument("--documents", type=Path, help="documents in JSON lines, instead of generated ones")
    parser.add_argument(
        "--encoder", type=Path, help="folder of a sentence encoder, instead of a random BERT of one layer"
    )
    given = parser.parse_args()
    sides = [path.resolve() for path in given.checkouts]
    lines = [
        json.dumps({"id": str(n), "title": f"Ada {n}", "text": TEXT.format(n, 1900 + n)}) for n in range(given.blocks)
    ]
    text = given.documents.read_text(encoding="utf-8") if given.documents else "\n".join(lines)
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, side) for side in ("before", "after")]
        for side, folder in zip(sides, folders, strict=True):  # each reads what it made
            folder.mkdir()
            (folder / "documents.jsonl").write_text(text, encoding="utf-8")
            (folder / "questions.jsonl").write_text(QUESTION * 4, encoding="utf-8")
            (folder / "one.jsonl").write_text(lines[0], encoding="utf-8")
            for command in prepared_by(given.encoder):
                seconds(side, folder, command)
        print("| command | before | CPU seconds | ratio (spread) |\n|---|--:|--:|--:|")
        for place_of_row, (row, command) in enumerate(ROWS.items()):
            if given.only not in row:
                continue
            rounds = [
                [
                    seconds(side, folder, command.format(out=f"{place_of_row}-{number}"))
                    for side, folder in zip(sides, folders, strict=True)
                ]
                for number in range(given.rounds + 1)
            ][1:]
            before, after = (statistics.median(each) for each in zip(*rounds, strict=True))
            ratios = sorted(one / other for one, other in rounds)
            spread = f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            print(f"| {row} | {before:.2f} | {after:.2f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()

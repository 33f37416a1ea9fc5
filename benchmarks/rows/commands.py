"""What a command costs that has nothing to do: `--help`, `ls`, and a pipeline of ten stages that are all finished. There is no peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from row import Result, Row, Side, Work

STAGES = 10
PIPELINE = """stages:
""" + "".join(
    f"  blocks-{number}: {{stage: chunk, corpus: [documents.jsonl], tokenizer: train:300, max-wordpieces: {32 + number}}}\n"
    for number in range(STAGES)
)


def realmctl(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "realmctl", *arguments], cwd=folder, env={**os.environ}, check=True, capture_output=True
    )


def prepare(folder: Path, quick: bool) -> str:
    """Finish the pipeline."""
    lines = [
        json.dumps({"id": number, "title": f"Page {number}", "text": "It was here in 1900. " * 9})
        for number in range(20)
    ]
    (folder / "documents.jsonl").write_text("\n".join(lines))
    (folder / "pipeline.yaml").write_text(PIPELINE)
    os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    realmctl(folder, "run", "pipeline.yaml")
    return f"{STAGES} finished stages"


def ours(arguments: tuple[str, ...], folder: Path) -> Work:
    def work() -> Result:
        realmctl(folder, *arguments)
        return np.zeros(1)

    return work


ROWS = tuple(
    Row(
        name=f"command-{name}",
        stage=f"realmctl {' '.join(arguments)}",
        prepare=prepare,
        ours=(Side("realmctl", partial(ours, arguments)),),
        peers=(),
        agree=lambda mine, theirs: "",
    )
    for name, arguments in (("help", ("--help",)), ("ls", ("ls",)), ("finished", ("run", "pipeline.yaml")))
)

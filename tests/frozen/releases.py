"""Artifacts of each kind as a release wrote them, which every later version has to open.

python -m tests.frozen.releases     # writes tests/frozen/releases/VERSION.zip for the version of realmctl, where there is none yet

A file of a release is never written anew: what it holds lies on people's disks.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import zipfile
from pathlib import Path
from unittest.mock import patch

from realmctl.version import __version__
from tests.frozen.frozen import realmctl

FILES = Path(__file__).parent / "releases"
QUESTION = "Where was Ada Lorn born?"
ANSWERED = "answered.json"
"""What the release answered: {"search" or "ask": its JSON}."""
QUESTIONS = "questions.jsonl"
PASSAGES = "passages.json"
ASKED = {
    "search": ("--method", "hybrid", "--top", 3, "--retriever={work}/retriever", "--index={work}/index"),
    "ask": ("--top", 2, "--qa-model={work}/finetune"),
}


def answered(work: Path) -> dict[str, object]:
    """What `search` and `ask` say over the artifacts in the workspace `work`, in fp32 on every processor: two near answers change places in bf16."""
    found = {}
    for command, options in ASKED.items():
        named = [str(option).format(work=work) for option in options]
        with patch("realmctl.models.precision.bf16_is_faster", return_value=False):
            told = realmctl(command, QUESTION, *named, f"--blocks={work}/blocks", "--threads", 1, "--json", "--quiet")
        found[command] = json.loads(told)
    return found


def write(target: Path, folder: Path) -> Path:
    """Make an artifact of each stage in `folder`, and pack them, with two answers, into the zip file `target`."""
    from tests.faults.kills.every_stage import every_stage
    from tests.fixtures.chain import make_chain

    platform.node = lambda: "release"
    os.chdir(folder)  # no manifest names the folder
    work, given = Path("work"), Path("given")
    given.mkdir()
    chain = make_chain(work)
    stages = every_stage(chain, given)
    for name, stage in stages.items():
        stage.make(work / name.replace(", ", "-"))
    (work / PASSAGES).write_bytes((given / PASSAGES).read_bytes())

    (work / ANSWERED).write_text(json.dumps(answered(work), indent=1), encoding="utf-8")
    target.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(path for path in work.rglob("*") if path.is_file() and not path.name.startswith(".")):
            packed.write(path, path.relative_to(work))
    return target


def main() -> int:
    target = FILES / f"{__version__}.zip"
    if target.exists():
        print(f"{target} is there. A file of a release is not written anew.")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        print(write(target, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

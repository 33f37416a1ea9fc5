"""The mission needs no room: in a copy of the project without `extras/` and `lab/` its chain makes the same things, and the core's tests pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("realmctl/extras", "realmctl/lab", "tests/extras", "tests/lab")
CHAIN = ["chunk", "tag", "ict-init", "embed", "build-index", "pretrain", "finetune", "eval-em", "ask", "search"]
PROGRAM = """
import json, sys, tempfile
from pathlib import Path
from tests.frozen.frozen import GOLDEN, answers, commands, differences, languages, made, processor
golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
here = golden["processor"] == processor()
with tempfile.TemporaryDirectory() as folder:
    parts = {
        "languages": languages(Path(folder)),
        "mission": made("mission", Path(folder) / "mission", "scores"),
        "answers": answers(Path(folder), 5),
    }
asked = {kind: {each: golden["answers"][kind][each] for each in found} for kind, found in parts["answers"].items()}
golden = {**golden, "answers": asked}
told = [
    line
    for name, part in parts.items()
    for line in differences({each: golden[name][each] for each in part}, part, here, name)
]
print(json.dumps({"differences": told, "made": sorted(parts["mission"]), **commands()}))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A copy of the project without the rooms."""
    folder = tmp_path_factory.mktemp("core")
    for name in ("realmctl", "stages", "tests", "docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    for room in ROOMS:
        shutil.rmtree(folder / room)
    return folder


def run_in(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_missions_chain_runs_without_rooms_and_makes_the_same_things(core):
    run = run_in(core, "-c", PROGRAM)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["differences"] == [] and "mission/scores" in found["made"]
    assert set(CHAIN) <= set(found["commands"]) and not {"spider-init", "serve"} & set(found["commands"])


def test_an_option_of_a_room_is_not_shown_without_it(core):
    shown = run_in(core, "-m", "realmctl", "pretrain", "--help-all").stdout
    assert "--checkpoint-every" in shown and "--track" not in shown
    refused = run_in(core, "-m", "realmctl", "pretrain", "--track", "tensorboard:runs")
    assert refused.returncode == 2 and "No such option" in refused.stderr


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_tests_of_the_core_pass_without_rooms(core):
    rooms = {path.name for path in (core / "realmctl").iterdir() if (core / "tests" / path.name).is_dir()}
    folders = [f"tests/{name}" for name in sorted(rooms - {"cli"})]  # the application as a whole is the house's
    more = ("tests/stages", "tests/cli/commands")
    run = run_in(core, "-m", "pytest", "-m", "not slow and not house", "-q", "-n", "2", *folders, *more)
    assert run.returncode == 0, run.stdout[-4000:]

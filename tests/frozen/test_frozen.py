"""Hashes, losses, answers and names are those of the golden file, so that no change of structure moves a result unseen.

When a change is meant to move them, say so in CHANGELOG.md and run `python -m tests.frozen --write`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.frozen.frozen import GOLDEN, HERE, commands, differences, languages, mission, processor


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture
def here(golden):
    return golden["processor"] == processor()


def test_names_of_commands_and_stages(golden, here):
    assert not differences(golden["commands"], commands(), here)


def test_blocks_and_spans_of_three_languages(golden, here, tmp_path):
    assert not differences(golden["languages"], languages(tmp_path), here)


def test_twenty_steps_of_the_missions_chain(golden, here, one_thread, tmp_path):
    found = mission(tmp_path, until="model")
    assert len(found["mission/model"]["losses"]) == 20 and "mission/exact" in found
    assert not differences({name: golden["mission"][name] for name in found}, found, here)


@pytest.mark.slow
def test_everything_is_as_it_was():
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.frozen"], cwd=HERE.parents[1], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_what_counts_as_a_difference():
    golden = {"a": {"losses": [1.0, 2.0, 3.0, 4.0], "bits": {"x": "1"}, "files": {"y": "1"}}, "b": [1, "c"]}
    near = {"a": {"losses": [1.0, 2.0, 3.0000001, 4.0], "bits": {"x": "1"}, "files": {"y": "1"}}, "b": [1, "c"]}
    assert not differences(golden, near, here=True)
    far = {"a": {"losses": [1.0005, 2.0, 3.0, 5.0], "bits": {"x": "2"}, "files": {"y": "2"}}, "d": 1}
    assert differences(golden, far, here=False) == [": b is gone", ": d is new", "a: files: y: '1' became '2'"]
    assert len(differences(golden, far, here=True)) == 6

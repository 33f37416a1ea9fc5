"""SIGKILL at every call that changes the store: the same command then ends with the same content, and nothing half is visible."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, verify, version_numbers
from stages.chunk import Chunk
from stages.tag import Tag
from tests.faults.counting import count
from tests.fixtures.faults import faults
from tests.fixtures.small_stages import Child, Model, Plain

Make = Callable[[Path], Artifact]


def die() -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def killed_at(call: int, make: Make, out: Path) -> bool:
    """Run `make` in a child process that is killed at this call. Return whether the call was reached."""
    child = os.fork()
    if child == 0:
        with faults(call, die, lasting=False):
            make(out)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def killed_everywhere(make: Make, folder: Path, step: int = 1) -> int:
    """Kill at every `step`-th call, one run each. Return the number of kills."""
    expected, kills = make(folder / "undisturbed" / "out").content, 0
    while True:
        out = folder / "out"
        if not killed_at(kills * step, make, out):
            return kills
        assert version_numbers(out) in ([], [1])
        made = make(out)
        assert (made.content, made.path.name, verify(made) >= 0) == (expected, "v1", True)
        assert not list(out.glob("*.partial"))
        shutil.rmtree(out)
        kills += 1


def test_kills_at_some_calls(tmp_path):
    kills = killed_everywhere(Plain().make, tmp_path, step=5)
    assert kills > 5
    count("SIGKILL at every fifth store call (one small stage)", kills)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kills_at_every_call_of_small_stages(tmp_path):
    plain = Plain().make(tmp_path / "plain")
    child = Child(plain=plain).make(tmp_path / "child")
    stages = (Plain(), Child(plain=plain), Model(child=child))
    kills = sum(killed_everywhere(stage.make, tmp_path / str(number)) for number, stage in enumerate(stages))
    assert kills > 60
    count("SIGKILL at every store call (three small stages)", kills)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_kills_at_every_call_of_chunk_and_tag(tmp_path):
    (tmp_path / "c.jsonl").write_text(
        "".join(
            f'{{"id": "{n}", "title": "T{n}", "text": "Ada was born in June 190{n}. She met Ben."}}\n' for n in range(5)
        )
    )
    chunk = Chunk(corpus=(tmp_path / "c.jsonl",), tokenizer="train:200", workers=1)
    kills = killed_everywhere(chunk.make, tmp_path / "chunk")
    tag = Tag(blocks=chunk.make(tmp_path / "blocks"), tagger="rules", workers=1)
    kills += killed_everywhere(tag.make, tmp_path / "tag")
    count("SIGKILL at every store call (chunk, tag)", kills)

"""Processes (16 under `make faults`) write to one series while they are stopped, continued and killed: none of what they were told is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify, version_numbers
from realmctl.errors import LockedError
from tests.faults.children import ended, forked
from tests.faults.counting import count, counting, rounds
from tests.fixtures.processes import linux
from tests.fixtures.small_stages import Plain

SEED, WRITERS, TEXTS = 22, 16 if counting() else 6, 3


def write(out: Path, told: Path, writer: int) -> None:
    """Make a version of each text, and note it in `told` when it is made. A killed writer begins again."""
    for text in range(TEXTS):
        while True:
            try:
                made = Plain(text=f"{writer}-{text}").make(out)
                break
            except LockedError:
                time.sleep(0.005)
        with told.open("a") as file:
            file.write(json.dumps([f"{writer}-{text}", made.path.name, made.content]) + "\n")


@linux
@pytest.mark.timeout(3600)
def test_no_version_of_racing_writers_is_lost(tmp_path):
    draw, kills, stops = random.Random(SEED), 0, 0
    for race in range(rounds()):
        killed, stopped = _race(tmp_path / str(race), draw)
        kills, stops = kills + killed, stops + stopped
    count("versions of 16 racing writers", WRITERS * TEXTS * rounds(), kills=kills, stops=stops, seed=SEED)
    assert kills and stops


def _race(folder: Path, draw: random.Random) -> tuple[int, int]:
    folder.mkdir()
    out, kills, stops = folder / "plain", 0, 0

    def start(writer: int) -> int:
        return forked(lambda: write(out, folder / f"told-{writer}", writer), folder / f"log-{writer}")

    running = {start(writer): writer for writer in range(WRITERS)}
    while running:
        time.sleep(draw.uniform(0.001, 0.02))
        process = draw.choice(list(running))
        code = ended(process, within=0)
        if code is not None:
            assert code == 0, (folder / f"log-{running[process]}").read_text()
            del running[process]
        elif draw.random() < 0.5:
            os.kill(process, signal.SIGSTOP)
            time.sleep(draw.uniform(0, 0.01))
            os.kill(process, signal.SIGCONT)
            stops += 1
        elif kills < WRITERS:
            os.kill(process, signal.SIGKILL)
            if ended(process) == -signal.SIGKILL:
                kills += 1
            writer = running.pop(process)
            running[start(writer)] = writer
    check(out, [json.loads(line) for path in folder.glob("told-*") for line in path.read_text().splitlines()])
    return kills, stops


def check(out: Path, told: list[list[str]]) -> None:
    """Every version that a writer was told of is there and whole, and every text has one version."""
    versions = {name: open_artifact(out / name) for name in (f"v{number}" for number in version_numbers(out))}
    for text, name, content in told:
        assert (versions[name].settings["text"], versions[name].content) == (text, content)
    for artifact in versions.values():
        verify(artifact)
    texts = sorted(artifact.settings["text"] for artifact in versions.values())
    assert texts == sorted(f"{writer}-{text}" for writer in range(WRITERS) for text in range(TEXTS))

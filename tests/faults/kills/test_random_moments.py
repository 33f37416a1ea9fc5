"""SIGKILL at random moments of every stage, and of what repairs the damage: the content is that of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, open_artifact, verify, version_numbers
from realmctl.cli.available_stages import available_stages
from realmctl.pipeline import Stage
from tests.faults.children import ended, forked, killed
from tests.faults.counting import count, rounds, sampled
from tests.faults.kills.every_stage import every_stage

SEED = 22
IN_A_ROW = 4
"""Most kills of one run: the second one strikes while the damage of the first is repaired."""


@pytest.fixture(scope="module")
def all_stages(chain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    return every_stage(chain, tmp_path_factory.mktemp("inputs"))


class Killer:
    """Runs one stage again and again in children, and kills them. `seconds` is how long the last whole run took."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.out, self.log = stage, folder / "out", folder / "log"
        self.seconds = 0.0
        self.expected = self.finished().content
        shutil.rmtree(self.out)

    def finished(self) -> Artifact:
        """Run to the end."""
        start = time.monotonic()
        code = ended(forked(lambda: self.stage.make(self.out), self.log))
        assert code == 0, self.log.read_text()
        self.seconds = time.monotonic() - start
        return open_artifact(self.out)

    def kills(self, number: int, draw: random.Random) -> int:
        """Kill about `number` times, at most `IN_A_ROW` times in a run. Returns the number of kills that struck a living run."""
        struck = 0
        while struck < number:
            for _ in range(draw.randint(1, min(IN_A_ROW, number - struck))):
                child = forked(lambda: self.stage.make(self.out), self.log)
                early = ended(child, within=draw.uniform(0, 1.1) * self.seconds)
                assert early in (0, None), self.log.read_text()
                struck += early is None and killed(child)
                assert version_numbers(self.out) in ([], [1])
            self.check(self.finished())
            shutil.rmtree(self.out)
        return struck

    def check(self, made: Artifact) -> None:
        """The content is right, every byte is, and nothing unfinished is left."""
        assert (made.content, made.path.name) == (self.expected, "v1"), self.log.read_text()[-3000:]
        verify(made)
        assert not list(self.out.glob("*.partial"))


def test_every_stage_is_here(all_stages):
    assert {name.partition(",")[0] for name in all_stages} == set(available_stages())


@pytest.mark.timeout(7200)
def test_kills_at_random_moments_of_every_stage(all_stages, tmp_path):
    struck = 0
    for number, (name, stage) in sampled(list(enumerate(all_stages.items())), 4):
        (tmp_path / name).mkdir()
        struck += Killer(stage, tmp_path / name).kills(rounds(), random.Random(SEED + number))
    count("SIGKILL at random moments (all stages)", struck, stages=len(available_stages()), seed=SEED)

"""SIGKILL and signals at random moments of every stage, and of what repairs the damage: the content is that of an undisturbed run."""

from __future__ import annotations

import os
import random
import signal

import pytest

from realmctl.artifacts import version_numbers
from realmctl.cli.available_stages import available_stages
from realmctl.cli.invoke import exit_code_of
from realmctl.execution.signals import install_stop_now
from realmctl.pipeline import Stage
from tests.faults.children import ended, forked, killed
from tests.faults.counting import count, rounds, sampled
from tests.faults.kills.every_stage import every_stage
from tests.faults.kills.runs import Runs

SEED = 22
IN_A_ROW = 4
"""Most kills of one run: the second one strikes while the damage of the first is repaired."""

PATIENCE = 120


@pytest.fixture(scope="module")
def all_stages(chain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    return every_stage(chain, tmp_path_factory.mktemp("inputs"))


def kill(runs: Runs, number: int, draw: random.Random) -> int:
    """Kill about `number` times, at most `IN_A_ROW` times in a run. Returns the number of kills that struck a living run."""
    struck = 0
    while struck < number:
        for _ in range(draw.randint(1, min(IN_A_ROW, number - struck))):
            child = forked(lambda: runs.stage.make(runs.out), runs.log)
            early = ended(child, within=draw.uniform(0, 1.1) * runs.seconds)
            assert early in (0, None), runs.log.read_text()
            struck += early is None and killed(child)
            assert version_numbers(runs.out) in ([], [1])
        runs.check_finished()
    return struck


def interrupt(runs: Runs, number: signal.Signals, draw: random.Random) -> int:
    """Send a signal until a run ends by it as documented. Returns 1."""
    code = {signal.SIGINT: 130}.get(number, 75)

    def told() -> int:
        install_stop_now()
        return exit_code_of(lambda: runs.stage.make(runs.out) and 0)

    while True:
        child = forked(told, runs.log)
        found = ended(child, within=draw.uniform(0, 1) * runs.seconds)
        if found is None:
            os.kill(child, number)
            found = ended(child, within=PATIENCE)
        assert found in (0, code, -number), f"{found}: {runs.log.read_text()[-3000:]}"  # -number: before it had begun
        assert version_numbers(runs.out) in ([], [1])
        runs.check_finished()
        if found == code:
            return 1


def test_every_stage_is_here(all_stages):
    """But for `collect`, which downloads."""
    assert {name.partition(",")[0] for name in all_stages} == set(available_stages()) - {"collect"}


@pytest.mark.timeout(7200)
def test_kills_at_random_moments_of_every_stage(all_stages, tmp_path):
    struck = 0
    for number, (name, stage) in sampled(list(enumerate(all_stages.items())), 9):
        (tmp_path / name).mkdir()
        struck += kill(Runs(stage, tmp_path / name), rounds(), random.Random(SEED + number))
    count("SIGKILL at random moments (all stages)", struck, stages=len(available_stages()), seed=SEED)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_at_random_moments_of_every_stage(all_stages, tmp_path, number):
    """The run ends with the documented exit code and without a traceback, and the next one ends with the same content."""
    struck, draw = 0, random.Random(SEED + number)
    for name, stage in all_stages.items():
        (tmp_path / name).mkdir()
        runs = Runs(stage, tmp_path / name)
        struck += sum(interrupt(runs, number, draw) for _ in range(rounds()))
    count("signals at random moments (all stages)", struck, stages=len(available_stages()), seed=SEED)

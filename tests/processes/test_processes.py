"""REALM's chain in two processes and on two Ray nodes, some of which are killed, equals the chain in one process."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from realmctl.extras.demo.world.make_world import write_world
from realmctl.extras.demo.world.settings import SIZES
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from tests.processes.comparison import METRIC_TOLERANCE, WEIGHT_TOLERANCE
from tests.processes.runs import ComparedRun, compared

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]
CHAIN = Path(__file__).with_name("chain.yaml")


def told(run: ComparedRun) -> str:
    """What a run is, and by how much it differs."""
    who = f"{run.output} in {run.how}, killed: {run.killed or 'nobody'}, against {run.compared_with}"
    if run.difference is None:
        return f"{who}: {run.failure}"
    found = run.difference
    return f"{who}: weights {found.weight:.1g} of {WEIGHT_TOLERANCE}, metrics {found.metric:.1g} of {METRIC_TOLERANCE}; far: {found.where}"


@pytest.fixture(scope="module")
def runs(tmp_path_factory, one_thread) -> list[ComparedRun]:
    pytest.importorskip("ray")
    folder = tmp_path_factory.mktemp("processes")
    write_world(folder / "world", dataclasses.replace(SIZES["demo"], parallel_worlds=0))  # several units of work
    world = {"corpus": str(folder / "world/knowledge"), "questions": str(folder / "world/train.jsonl")}
    return compared(pipeline_file.read(CHAIN, own_stages(), world, folder / "one"), 2, folder)


def test_every_run_equals_that_of_one_process(runs):
    assert {run.stage for run in runs} == {"chunk", "tag", "embed", "mlm-init", "ict-init", "pretrain", "finetune"}
    assert not [told(run) for run in runs if not run.equal]


def test_somebody_was_killed_in_each_run_that_must_have_the_same_bytes(runs):
    assert all(run.killed for run in runs if run.exact)
    assert sum(run.killed.startswith("process 1 after step") for run in runs) == 4
    assert sum(run.killed == "a node at work" for run in runs) == 3
    assert sum("refresher" in run.killed for run in runs) == 1

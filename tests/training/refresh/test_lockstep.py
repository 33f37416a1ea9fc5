"""Lockstep: index k goes into use at a fixed step, whatever dies and however late the index is."""

from __future__ import annotations

import json
import random

import pytest

from realmctl.artifacts import open_artifact
from realmctl.artifacts.hashing import write_sealed
from realmctl.errors import InputError
from realmctl.training.checkpoint import STATE
from realmctl.training.realm import RealmObjective
from realmctl.training.refresh import index_in_use
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.refresh.kinds import LockstepRefresh
from realmctl.training.refresh.protocol import RefreshFolder
from tests.faults.counting import count
from tests.fixtures.chain import Stopped, metrics_of, pretrain
from tests.fixtures.refresh import damage, deliver

EVERY = 2
SETTINGS = {
    "refresh": "lockstep",
    "refresh_device": "elsewhere",
    "steps": 9,
    "refresh_every": EVERY,
    "checkpoint_every": 3,
}


class Fate:
    """Decides by a seed when the refresher delivers and when it dies, and where the trainer dies."""

    def __init__(self, seed: int, folder: RefreshFolder, trainer_deaths: int) -> None:
        self.random, self.folder = random.Random(seed), folder
        self.deaths = {self.random.randrange(1, 60) for _ in range(trainer_deaths)}
        self.moments = 0

    def death(self) -> None:
        """The trainer may die here."""
        self.moments += 1
        if self.moments in self.deaths:
            raise Stopped

    def moment(self, waiting: bool = False) -> None:
        """Something may happen here: in the trainer between two actions, or while it waits."""
        self.death()
        newest = self.folder.snapshots.newest()
        if newest in (0, *self.folder.indexes.steps()) or self.random.random() > (0.7 if waiting else 0.3):
            return
        if self.random.random() < 0.3:  # the refresher is killed: half an index, under its private name
            self.folder.unfinished(newest, "dead", self.moments).mkdir()
            return
        deliver(self.folder, newest)


def disturbed(chain, folder, monkeypatch, seed, trainer_deaths):
    """Run the training to its end, with deaths on both sides. Returns the model and the number of starts."""
    fate = Fate(seed, RefreshFolder(folder / "v1.partial/live"), trainer_deaths)
    plain_draw, plain_offer = RealmObjective.draw, LockstepRefresh.offer

    def draw(objective, step):
        fate.death()  # a delivery in this process would draw the random numbers of the step
        return plain_draw(objective, step)

    def offer(refresh, step, in_use, retriever):
        fate.moment()
        plain_offer(refresh, step, in_use, retriever)
        fate.moment()

    with monkeypatch.context() as patch:
        patch.setattr(RealmObjective, "draw", draw)
        patch.setattr(LockstepRefresh, "offer", offer)
        patch.setattr(index_in_use.time, "sleep", lambda seconds: fate.moment(waiting=True))
        for start in range(1, 20):
            try:
                return pretrain(chain, **SETTINGS).make(folder), start
            except Stopped:
                continue
    raise AssertionError("it never came to an end")


@pytest.fixture(scope="module")
def undisturbed(chain, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        return disturbed(chain, tmp_path_factory.mktemp("lockstep") / "model", patch, 0, 0)[0]


def due(step):
    """Written out: the snapshot of step 2 from step 4 on, that of step 4 from step 6 on, and so on."""
    return max(s for s in range(0, step + 1, EVERY) if s == 0 or s + EVERY <= step)


def test_each_index_goes_into_use_at_its_step(undisturbed):
    assert [line["index_age_steps"] for line in metrics_of(undisturbed)] == [step - due(step) for step in range(9)]
    swaps = [json.loads(line) for line in undisturbed.file("journal.jsonl").read_text().splitlines()]
    assert [(swap["step"], swap["index_step"]) for swap in swaps] == [(4, 2), (6, 4), (8, 6)]
    assert len({swap["index"] for swap in swaps}) == 3
    assert not any("index_wait_seconds" in line for line in metrics_of(undisturbed))  # equal runs, equal metrics


@pytest.mark.parametrize("seed", [1, 2])
def test_deaths_of_either_side_change_no_bit(chain, undisturbed, tmp_path, monkeypatch, seed):
    model, starts = disturbed(chain, tmp_path / "model", monkeypatch, seed, 3)
    assert starts > 1
    assert model.content == undisturbed.content
    count("deaths of the trainer in lockstep (in one process)", starts - 1, seeds="1, 2")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_three_hundred_deaths_change_no_bit(chain, undisturbed, tmp_path, monkeypatch):
    deaths, seed = 0, 1000
    while deaths < 300:
        model, starts = disturbed(chain, tmp_path / f"model{seed}", monkeypatch, seed, 8)
        assert model.content == undisturbed.content, f"seed {seed}"
        deaths, seed = deaths + starts - 1, seed + 1
    count("deaths of the trainer in lockstep (in one process), long", deaths, seeds=f"1000 to {seed - 1}")


@pytest.fixture
def lockstep(started):
    found = started("lockstep")
    found.begin(0, 0)
    return found


def test_a_snapshot_waits_for_the_index_before_it(lockstep, live, retriever):
    for step in range(5):
        lockstep.offer(step, 0, retriever)
        assert lockstep.take(step, 0) is None
    assert live.snapshots.steps() == [2] and lockstep.too_old(4, 0) and not lockstep.too_old(3, 0)
    deliver(live, 2)
    assert lockstep.take(4, 0)[0] == 2 and not lockstep.too_old(4, 2)
    lockstep.offer(4, 2, retriever)
    assert live.snapshots.steps() == [2, 4]


def test_an_index_that_is_early_is_not_used_early(lockstep, live, retriever):
    lockstep.offer(2, 0, retriever)
    deliver(live, 2)
    assert lockstep.take(3, 0) is None
    assert lockstep.take(4, 0)[0] == 2


def test_a_lost_index_that_was_in_use_is_built_by_the_trainer(started, lockstep, live, retriever):
    lockstep.offer(2, 0, retriever)
    content = deliver(live, 2).content
    lockstep.take(4, 0)
    lockstep.offer(4, 2, retriever)
    live.indexes.at(2).rename(live.path / "lost")
    again = started("lockstep")
    again.begin(4, 0)
    assert again.take(4, 0)[1].content == content


def test_a_checkpoint_needs_the_snapshot_whose_index_is_awaited(chain, out, started, live, retriever):
    lockstep = started("lockstep")
    current = IndexInUse(chain.index, "cpu", lockstep)
    for step in range(4):
        current.renew(step, retriever)
    state = json.loads(json.dumps(current.state()))
    assert state["awaited"] == [2, open_artifact(live.snapshots.at(2)).content]
    (out.scratch("checkpoints") / "step-00000004").mkdir()
    write_sealed(out.scratch("checkpoints") / "step-00000004" / STATE, {"objective": {"index": state}})
    assert lockstep.checkpointed() == {0, 2}
    IndexInUse(chain.index, "cpu", started("lockstep")).restore(state)
    with pytest.raises(InputError, match="step 2"):
        IndexInUse(chain.index, "cpu", started("lockstep")).restore({**state, "awaited": [2, "0" * 64]})
    damage(live.snapshots.at(2) / "block/model.safetensors")
    with pytest.raises(InputError, match="step 2"):
        IndexInUse(chain.index, "cpu", started("lockstep")).restore(state)


def test_a_damaged_snapshot_ends_the_wait(lockstep, live, retriever):
    lockstep.offer(2, 0, retriever)
    live.snapshots.set_aside(2, "A test.")
    lockstep.offer(4, 0, retriever)
    with pytest.raises(InputError, match="step-00000002"):
        lockstep.take(4, 0)

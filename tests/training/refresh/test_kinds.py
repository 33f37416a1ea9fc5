"""Inline and background refresh: which index goes into use when, what is kept, and what damage costs. For lockstep see its own file."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Origin, open_artifact, require_descent, writing
from realmctl.errors import ConfigError, InputError
from realmctl.training.refresh import index_maker
from realmctl.training.refresh.kinds import Refresh, refresh_of
from realmctl.training.refresh.refresher import Refresher
from tests.fixtures.chain import pretrain
from tests.fixtures.refresh import damage, deliver, nudge


def test_never_is_no_refresh(chain, out):
    assert refresh_of(pretrain(chain, refresh="never"), out) is None


def test_inline_makes_the_index_of_a_step_at_that_step(started, live, retriever, chain):
    inline, in_use = started("inline"), 0
    inline.begin(0, 0)
    for step in range(5):
        inline.offer(step, in_use, retriever)
        found = inline.take(step, in_use)
        assert (found is not None) == (step in (2, 4))
        if found:
            in_use, index = found
            assert in_use == step
            require_descent(index, chain.blocks, open_artifact(live.snapshots.at(step)))
        nudge(retriever)
    assert inline.take(4, in_use) is None
    assert live.indexes.steps() == live.snapshots.steps() == [2, 4]


def test_the_needed_indexes_and_the_newest_are_kept(started, live, retriever, monkeypatch):
    inline, checkpoints = started("inline"), {2}
    monkeypatch.setattr(inline, "checkpointed", lambda: checkpoints)
    inline.begin(0, 0)
    for step in (2, 4, 6, 8, 10):
        inline.offer(step, step - 2, retriever)
        assert inline.take(step, step - 2)[0] == step
        assert live.held() == {2, step}
    assert live.indexes.steps() == [2, 8, 10]
    checkpoints.clear()
    checkpoints.add(8)
    inline.offer(12, 10, retriever)
    inline.take(12, 10)
    assert live.indexes.steps() == [8, 10, 12]
    assert live.snapshots.steps() == [8, 10, 12]  # that of a needed index, from which it can be built again


def test_half_an_index_is_never_seen(started, live, retriever, monkeypatch):
    trainer = started("background")
    trainer.begin(0, 0)
    trainer.offer(2, 0, retriever)
    seen, plain = [], index_maker.build_index

    def build(folder, *arguments, **options):
        seen.append((trainer.take(2, 0), live.indexes.steps(), folder.name))
        return plain(folder, *arguments, **options)

    monkeypatch.setattr(index_maker, "build_index", build)
    deliver(live, 2)
    assert seen == [(None, [], "step-00000002.partial")]
    assert trainer.take(2, 0)[0] == 2


def test_an_index_of_another_snapshot_of_that_step_does_not_count(started, live, retriever):
    """A refresher elsewhere may be at work for a trainer that was killed, and deliver to the one that went on."""
    started("background").offer(4, 0, retriever)
    late = open_artifact(live.snapshots.at(4)).content
    trainer = started("background")
    trainer.begin(2, 0)
    with writing(live.indexes.at(4), Origin("index", "refresh", 1, {}, {}, {"retriever": late})):
        pass
    nudge(retriever)
    trainer.offer(4, 0, retriever)
    assert trainer.take(4, 0) is None
    assert Refresher(live, "cpu").refresh_newest()
    assert trainer.take(4, 0)[0] == 4


def test_begin_forgets_the_steps_that_are_taken_again(started, live, retriever):
    inline = started("inline")
    inline.begin(0, 0)
    for step in (2, 4, 6):
        inline.offer(step, step - 2, retriever)
        inline.take(step, step - 2)
    started("inline").begin(4, 4)
    assert live.indexes.steps() == live.snapshots.steps() == [4]


def test_a_damaged_index_is_set_aside_and_built_again(started, live, retriever, capsys):
    trainer = started("background")
    trainer.begin(0, 0)
    trainer.offer(2, 0, retriever)
    damage(deliver(live, 2).file("vectors.npy"))
    assert trainer.take(2, 0) is None
    assert "vectors.npy is damaged" in capsys.readouterr().err
    assert (live.path / "quarantine/step-00000002-1/vectors.npy").is_file()
    assert Refresher(live, "cpu").refresh_newest()  # the refresher sees that it is missing
    assert trainer.take(2, 0)[0] == 2


@pytest.mark.parametrize(("kind", "ages"), [("inline", []), ("background", [4, 5, 6, 7])])
def test_only_an_index_that_another_process_builds_becomes_too_old(started, kind, ages):
    trainer = started(kind, max_index_age=3)
    assert not any(trainer.too_old(10 + age, 10) for age in range(8))  # nothing is in the making
    trainer.taken[12] = "the snapshot of step 12"
    assert [age for age in range(8) if trainer.too_old(10 + age, 10)] == ages


def test_a_process_that_follows_opens_what_it_is_told_or_says_who_lacks_what(out, started, live, retriever):
    trainer, follower = started("inline"), Refresh(out)
    trainer.begin(0, 0)
    trainer.offer(2, 0, retriever)
    index = trainer.take(2, 0)[1]
    assert follower.index(2, index.content).content == index.content
    assert follower.snapshot(2).content == index.lineage["retriever"]
    with pytest.raises(InputError, match="step 4"):
        follower.index(4, "")


@pytest.mark.parametrize(
    "values",
    [
        {"max_index_age": 2, "refresh_every": 3},
        {"max_index_age": -1},
        {"refresh_every": 0},
    ],
)
def test_settings_that_do_not_go_together_are_refused(chain, values):
    with pytest.raises(ConfigError, match=next(iter(values)).replace("_", "-")):
        pretrain(chain, **values).check()

"""The protocol between trainer and refresher: who writes what, when it counts, and what is kept."""

from __future__ import annotations

import json
import threading

import pytest

from realmctl.artifacts import Origin, open_artifact, require_descent, verify, writing
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.execution.signals import StopRequested
from realmctl.training.refresh import current_index, refresher
from realmctl.training.refresh.background import ExternalRefresh
from realmctl.training.refresh.current_index import CurrentIndex
from realmctl.training.refresh.index_maker import IndexMaker
from realmctl.training.refresh.journal import Journal
from realmctl.training.refresh.refresh import InlineRefresh, NoRefresh
from realmctl.training.refresh.refresh_folder import at_step, prune, steps_in
from tests.fixtures.chain import metrics_of, pretrain
from tests.fixtures.refresh import deliver, nudge


def test_never_refreshes(retriever):
    never = NoRefresh()
    never.begin(0)
    never.offer(2, retriever)
    assert never.newest() is None and not never.too_old(10**9, 0)
    with pytest.raises(InputError, match="never refreshes"):
        never.at(2, "")
    with pytest.raises(InputError, match="never refreshes"):
        never.snapshot(2)


def test_inline_makes_the_index_of_a_step_at_that_step(shared, live, retriever, chain):
    inline = InlineRefresh(*shared, "cpu")
    inline.begin(0)
    for step in range(5):
        inline.offer(step, retriever)
        found = inline.newest()
        assert (found is not None) == (step in (2, 4))
        if found:
            number, index = found
            assert number == step
            require_descent(index, chain.blocks, open_artifact(at_step(live.snapshots, step)))
        nudge(retriever)
    assert inline.newest() is None  # handed out already
    assert steps_in(live.indexes) == steps_in(live.snapshots) == [2, 4]


def test_the_held_indexes_and_the_newest_are_kept(shared, live, retriever):
    checkpoints = [2]
    inline = InlineRefresh(*shared[:-1], lambda: checkpoints, "cpu")
    inline.begin(0)
    for step in (2, 4, 6, 8, 10):
        inline.offer(step, retriever)
        inline.newest()
        inline.hold(step)
    assert steps_in(live.indexes) == [2, 8, 10]
    checkpoints[:] = [8]
    inline.hold(10)
    inline.offer(12, retriever)
    inline.newest()
    assert steps_in(live.indexes) == [8, 10, 12]
    assert steps_in(live.snapshots) == [8, 10, 12]  # that of a held index, from which it can be built again


def test_prune_keeps_what_is_asked_and_touches_nothing_unfinished(tmp_path, chain):
    for step in (1, 2, 3, 4):
        at_step(tmp_path, step).mkdir()
        (at_step(tmp_path, step) / "manifest.json").touch()
    (tmp_path / "step-00000009.partial").mkdir()
    prune(tmp_path, 1, held=[2])
    assert steps_in(tmp_path) == [2, 4]
    assert (tmp_path / "step-00000009.partial").is_dir()


def test_a_live_folder_that_goes_away_while_it_is_listed_holds_nothing(tmp_path, monkeypatch):
    plain = type(tmp_path).iterdir

    def too_late(folder):
        folder.rmdir()
        return plain(folder)

    monkeypatch.setattr(type(tmp_path), "iterdir", too_late)
    assert steps_in(tmp_path) == []


def test_half_an_index_is_never_seen(shared, live, retriever, monkeypatch):
    elsewhere = ExternalRefresh(*shared, 10)
    elsewhere.begin(0)
    elsewhere.offer(2, retriever)
    seen = []
    plain = IndexMaker.make.__globals__["build_index"]

    def build(folder, *arguments, **options):
        seen.append((elsewhere.newest(), steps_in(live.indexes), folder.name))
        return plain(folder, *arguments, **options)

    monkeypatch.setitem(IndexMaker.make.__globals__, "build_index", build)
    deliver(live, 2)
    assert seen == [(None, [], "step-00000002.partial")]
    assert elsewhere.newest()[0] == 2


def test_background_takes_the_newest_snapshot_and_drops_missed_ones(shared, live, retriever):
    elsewhere = ExternalRefresh(*shared, 10)
    elsewhere.begin(0)
    for step in (2, 4, 6):
        elsewhere.offer(step, retriever)
        nudge(retriever)
    maker, heart = IndexMaker(live.request(), "cpu"), refresher.Heartbeat(live, live.request().token)
    assert refresher._refresh_newest(live, maker, heart)
    assert steps_in(live.indexes) == [6]
    assert not refresher._refresh_newest(live, maker, heart)  # it has its index
    step, index = elsewhere.newest()
    assert step == 6 and index.lineage["retriever"] == open_artifact(at_step(live.snapshots, 6)).content


def test_an_index_of_another_snapshot_of_that_step_does_not_count(shared, live, retriever):
    """A refresher elsewhere may be at work for a trainer that was killed, and deliver to the one that went on."""
    ExternalRefresh(*shared, 10).offer(4, retriever)
    late = open_artifact(at_step(live.snapshots, 4)).content
    trainer = ExternalRefresh(*shared, 10)
    trainer.begin(2)
    with writing(at_step(live.indexes, 4), Origin("index", "refresh", 1, {}, {}, {"retriever": late})):
        pass
    nudge(retriever)
    trainer.offer(4, retriever)
    assert trainer.newest() is None
    assert refresher._refreshed(
        live, IndexMaker(live.request(), "cpu"), 4, refresher.Heartbeat(live, live.request().token)
    )
    assert trainer.newest()[0] == 4


def test_begin_forgets_the_steps_that_are_taken_again(shared, live, retriever):
    inline = InlineRefresh(*shared, "cpu")
    inline.begin(0)
    for step in (2, 4, 6):
        inline.offer(step, retriever)
        inline.newest()
    InlineRefresh(*shared, "cpu").begin(4)
    assert steps_in(live.indexes) == [4] and steps_in(live.snapshots) == [4]


def test_a_damaged_index_is_set_aside_and_built_again(shared, live, retriever, capsys):
    elsewhere = ExternalRefresh(*shared, 10)
    elsewhere.begin(0)
    elsewhere.offer(2, retriever)
    vectors = deliver(live, 2).file("vectors.npy")
    vectors.chmod(0o644)
    data = bytearray(vectors.read_bytes())
    data[-1] ^= 1
    vectors.write_bytes(data)
    assert elsewhere.newest() is None
    assert "vectors.npy is damaged" in capsys.readouterr().err
    assert (live.path / "quarantine/step-00000002-1/vectors.npy").is_file()
    maker, heart = IndexMaker(live.request(), "cpu"), refresher.Heartbeat(live, live.request().token)
    assert refresher._refreshed(live, maker, 2, heart)  # the refresher sees that it is missing
    assert elsewhere.newest()[0] == 2


def test_the_current_index_is_swapped_between_steps_and_its_age_is_told(chain, shared, live, retriever):
    current = CurrentIndex(chain.index, InlineRefresh(*shared, "cpu"), "cpu")
    ages = []
    for step in range(6):
        before = current.index
        ages.append(current.renew(step, retriever)["index_age_steps"])
        assert (current.index is not before) == (step in (2, 4))
    assert ages == [0, 1, 0, 1, 0, 1]
    index = open_artifact(at_step(live.indexes, 4))
    state = current.state()
    assert (state["index_step"], state["index"]) == (4, index.content) and live.held() == {4}
    assert [(swap["step"], swap["index_step"]) for swap in state["swaps"]] == [(2, 2), (4, 4)]


def test_restore_opens_the_index_of_the_checkpoint(chain, shared, live, retriever):
    current = CurrentIndex(chain.index, InlineRefresh(*shared, "cpu"), "cpu")
    for step in range(5):
        current.renew(step, retriever)
    again = CurrentIndex(chain.index, InlineRefresh(*shared, "cpu"), "cpu")
    index = open_artifact(at_step(live.indexes, 2))
    again.restore({**current.state(), "index_step": 2, "index": index.content})
    assert again.step == 2
    with pytest.raises(InputError):
        again.restore({**current.state(), "index_step": 8, "index": "gone"})


def test_training_waits_for_an_index_that_is_too_old(chain, shared, live, retriever, capsys):
    current = CurrentIndex(chain.index, ExternalRefresh(*shared, 3), "cpu")
    ages = [current.renew(step, retriever)["index_age_steps"] for step in range(4)]
    assert ages == [0, 1, 2, 3]
    thread = threading.Timer(0.4, lambda: deliver(live, 4))
    thread.start()
    told = current.renew(4, retriever)
    thread.join()
    assert told["index_age_steps"] == 0 and told["index_wait_seconds"] > 0.3
    assert "step 4: the index is 4 steps old, waiting" in capsys.readouterr().err


def test_training_may_fail_at_the_age_bound(chain, shared, retriever):
    current = CurrentIndex(chain.index, ExternalRefresh(*shared, 3), "cpu", when_stale="fail")
    for step in range(4):
        current.renew(step, retriever)
    with pytest.raises(ResourceError, match="step 4: the index is 4 steps old, and --when-stale is fail"):
        current.renew(4, retriever)


def test_training_may_go_on_beyond_the_age_bound(chain, shared, live, retriever, capsys):
    current = CurrentIndex(chain.index, ExternalRefresh(*shared, 3), "cpu", when_stale="continue")
    assert [current.renew(step, retriever)["index_age_steps"] for step in range(7)] == [*range(7)]
    assert capsys.readouterr().err.count("training continues with it") == 1
    deliver(live, 6)
    assert current.renew(7, retriever)["index_age_steps"] == 1
    for step in range(8, 11):
        current.renew(step, retriever)
    assert capsys.readouterr().err.count("step 10: the index is 4 steps old; training continues with it") == 1


def test_every_swap_is_in_the_journal_before_the_index_is_used(chain, shared, live, retriever, tmp_path, monkeypatch):
    path, seen = tmp_path / "journal.jsonl", []
    path.write_text("what an earlier attempt left\n")
    journal = Journal(path)
    current = CurrentIndex(chain.index, InlineRefresh(*shared, "cpu"), "cpu", journal=journal)
    plain = CurrentIndex._use

    def use(self, step, index):
        seen.append((step, index.content, json.loads(path.read_text().splitlines()[-1])))
        plain(self, step, index)

    with monkeypatch.context() as patch:
        patch.setattr(CurrentIndex, "_use", use)
        for step in range(5):
            current.renew(step, retriever)
            nudge(retriever)
    assert [step for step, _, _ in seen] == [2, 4]
    assert all(line == {"step": step, "index_step": step, "index": content} for step, content, line in seen)
    state = json.loads(json.dumps(current.state()))
    current.renew(5, retriever)
    path.write_text("damaged")
    again = CurrentIndex(chain.index, InlineRefresh(*shared, "cpu"), "cpu", journal=Journal(path))
    again.restore(state)
    again.renew(5, retriever)
    assert [json.loads(line) for line in path.read_text().splitlines()] == state["swaps"]


def test_a_wait_ends_when_asked_to_stop(chain, shared, retriever, monkeypatch):
    current = CurrentIndex(chain.index, ExternalRefresh(*shared, 0), "cpu")
    monkeypatch.setattr(current_index, "asked_to_stop", lambda: True)
    with pytest.raises(StopRequested):
        current.renew(1, retriever)


@pytest.mark.parametrize(
    "values", [{"max_index_age": 2, "refresh_every": 3}, {"max_index_age": -1}, {"micro_batch": -1}]
)
def test_settings_that_would_wait_for_ever_are_refused(chain, values):
    with pytest.raises(ConfigError):
        pretrain(chain, **values).check()


def test_the_run_logs_the_age_and_ends_with_an_index_of_its_own(chain, tmp_path):
    model = pretrain(chain, steps=5, refresh_every=2).make(tmp_path / "model")
    assert [line["index_age_steps"] for line in metrics_of(model)] == [0, 1, 0, 1, 0]
    require_descent(model.part("index"), chain.blocks, model.part("retriever"))
    verify(model)
    assert model.part("retriever").content != chain.retriever.content
    assert not list(model.path.glob("live*")) and not (model.path / ".scratch").exists()


def test_never_keeps_the_first_index_to_the_end(chain, tmp_path):
    model = pretrain(chain, steps=3, refresh="never").make(tmp_path / "model")
    assert [line["index_age_steps"] for line in metrics_of(model)] == [0, 1, 2]
    require_descent(model.part("index"), model.part("retriever"))

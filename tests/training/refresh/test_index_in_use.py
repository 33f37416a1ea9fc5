"""What training sees of a refresh: the swap between two steps, the age, the wait, the journal, and the checkpoint."""

from __future__ import annotations

import json
import threading
import time

import pytest

from realmctl.artifacts import open_artifact, require_descent, verify
from realmctl.errors import InputError
from realmctl.execution.signals import StopRequested
from realmctl.index.index_type import open_index
from realmctl.training.refresh import index_in_use
from realmctl.training.refresh.index_in_use import IndexInUse
from tests.fixtures.chain import metrics_of, pretrain
from tests.fixtures.refresh import deliver, nudge


def test_without_a_refresh_it_only_ages(chain, retriever):
    current = IndexInUse(chain.index, "cpu")
    assert [current.renew(step, retriever) for step in (0, 7)] == [{"index_age_steps": 0}, {"index_age_steps": 7}]


def test_the_index_is_swapped_between_steps_and_its_age_is_told(chain, started, live, retriever):
    current = IndexInUse(chain.index, "cpu", started("inline"))
    ages = []
    for step in range(6):
        before = current.index
        ages.append(current.renew(step, retriever)["index_age_steps"])
        assert (current.index is not before) == (step in (2, 4))
    assert ages == [0, 1, 0, 1, 0, 1] and current.refreshes == 2
    index, state = open_artifact(live.indexes.at(4)), current.state()
    assert (state["index_step"], state["index"]) == (4, index.content) and live.held() == {4}
    assert [(swap["step"], swap["index_step"]) for swap in state["swaps"]] == [(2, 2), (4, 4)]


def test_restore_opens_the_index_of_the_checkpoint(chain, started, live, retriever):
    current = IndexInUse(chain.index, "cpu", started("inline"))
    states = []
    for step in range(5):
        current.renew(step, retriever)
        states.append(json.loads(json.dumps(current.state())))
    again = IndexInUse(chain.index, "cpu", started("inline"))
    again.restore(states[3])
    assert again.step == 2 and again.state() == states[3]
    with pytest.raises(InputError):
        again.restore({**states[4], "index_step": 8})


def test_a_run_does_not_go_on_with_another_snapshot_than_the_checkpoint_names(chain, started, live, retriever):
    refresh = started("lockstep")
    current = IndexInUse(chain.index, "cpu", refresh)
    current.renew(2, retriever)
    state = current.state()
    assert state["awaited"][0] == 2
    again = IndexInUse(chain.index, "cpu", refresh)
    again.restore(state)
    with pytest.raises(InputError, match="step 2"):
        again.restore({**state, "awaited": (2, "0" * 64)})


def test_training_waits_for_an_index_that_is_too_old(chain, started, live, retriever, capsys):
    current = IndexInUse(chain.index, "cpu", started("background", max_index_age=3))
    assert [current.renew(step, retriever) for step in range(4)] == [{"index_age_steps": age} for age in range(4)]

    def deliver_late():
        while not live.snapshots.has(4):
            time.sleep(0.01)
        time.sleep(0.4)
        deliver(live, 4)

    thread = threading.Thread(target=deliver_late, daemon=True)
    thread.start()
    told = current.renew(4, retriever)
    thread.join()
    assert told["index_age_steps"] == 0 and told["index_wait_seconds"] > 0.3
    assert "4 steps old" in capsys.readouterr().err


def test_a_wait_ends_when_asked_to_stop(chain, started, retriever, monkeypatch):
    current = IndexInUse(chain.index, "cpu", started("background", max_index_age=1))
    monkeypatch.setattr(index_in_use, "asked_to_stop", lambda: True)
    assert current.renew(1, retriever) == {"index_age_steps": 1}  # no wait
    with pytest.raises(StopRequested):
        current.renew(2, retriever)


def test_every_swap_is_in_the_journal_before_the_index_is_used(chain, started, retriever, tmp_path):
    path, seen = tmp_path / "journal.jsonl", []
    path.write_text("what an earlier attempt left\n")

    def opener(folder, device):
        seen.append((open_artifact(folder).content, path.read_text().splitlines()))
        return open_index(folder, device)

    current = IndexInUse(chain.index, "cpu", started("inline"), opener=opener, journal=path)
    for step in range(5):
        current.renew(step, retriever)
        nudge(retriever)
    swaps = [
        {"step": step, "index_step": step, "index": content}
        for step, (content, _) in zip((2, 4), seen[1:], strict=True)
    ]
    assert [[json.loads(line) for line in lines] for _, lines in seen[1:]] == [swaps[:1], swaps]
    state = json.loads(json.dumps(current.state()))
    path.write_text("damaged")
    again = IndexInUse(chain.index, "cpu", started("inline"), journal=path)
    again.restore(state)
    again.renew(5, retriever)
    assert [json.loads(line) for line in path.read_text().splitlines()] == state["swaps"] == swaps


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
    assert not model.has("journal.jsonl")

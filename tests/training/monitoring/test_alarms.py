"""Alarms: on series written by hand, and in real runs that are made to collapse, or are not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.errors import ConfigError, QualityError
from realmctl.training.monitoring import alarms, candidate_watch
from realmctl.training.monitoring.alarms import REFRESHES, WINDOW, AlarmRule, Alarms, rules
from tests.fixtures.chain import Stopped, make_index, metrics_of, pretrain, stop_at
from tests.fixtures.collapse import CopyingEncoder, WordRetriever

STEPS = 1000


def observed(watcher, metric, values, first=1):
    """{step: alarms} of a series, one value a step."""
    found = ((step, watcher.observe({"step": step, metric: value})) for step, value in enumerate(values, first))
    return {step: names for step, names in found if names}


def of_run(refresh_every=25, chance=0.0):
    return Alarms(rules(STEPS, refresh_every, chance))


def test_a_null_document_that_takes_all_is_one_episode_until_it_recovers(capsys):
    watcher = of_run()
    series = [0.3] * 200 + [1.0] * 300 + [0.85] * 100 + [1.0] * 100 + [0.2] * 100 + [0.95] * 200
    found = observed(watcher, "null_share", series)
    first, second = found
    assert 200 < first <= 300 and 800 < second <= 900  # at 0.85 it is not over yet
    assert watcher.counts["null_saturated"] == 2 and sum(watcher.counts.values()) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and said[0].startswith(f"warning: pretrain: step {first}: the null document has 90%")


@pytest.mark.parametrize(("steps", "step"), [(9, None), (10, 10), (40, 10), (60, 15), (400, 100), (4000, 100)])
def test_a_short_run_is_judged_by_a_quarter_of_its_steps(steps, step):
    found = observed(Alarms(rules(steps, None, 0.0)), "null_share", [0.987] * steps)
    assert found == ({step: ["null_saturated"]} if step else {})


def test_utility_about_zero_counts_after_the_first_tenth():
    assert observed(of_run(), "retrieval_utility", [0.0] * 198) == {}
    assert observed(of_run(), "retrieval_utility", [0.0] * 200) == {199: ["no_utility"]}
    assert list(observed(of_run(), "retrieval_utility", [-0.5] * 300)) == [199]  # worse than nothing is no better
    assert observed(of_run(), "retrieval_utility", [0.0] * 99 + [0.5, -0.35] * 400) == {}


def test_a_hub_is_judged_by_what_chance_gives():
    assert list(observed(of_run(), "hub_share", [0.55] * 300)) == [WINDOW]
    assert observed(of_run(chance=0.2), "hub_share", [0.55] * 300) == {}
    assert list(observed(of_run(chance=0.2), "hub_share", [0.61] * 300)) == [WINDOW]
    assert observed(of_run(), "hub_share", [0.3] * 300) == {}


def test_refreshes_that_change_nothing_three_times_in_a_row():
    assert observed(of_run(), "candidates_changed", [0.0] * (REFRESHES - 1) + [0.05, 0.0, 0.0]) == {}
    assert observed(of_run(), "candidates_changed", [0.3, 0.0, 0.0, 0.0, 0.0]) == {4: ["frozen_candidates"]}
    assert observed(of_run(), "candidates_changed", [0.0] * 9, first=STEPS - 40) == {}  # the rate is next to nothing
    assert observed(of_run(refresh_every=None), "candidates_changed", [0.0] * 9) == {}


def test_an_index_that_stays_four_periods():
    ages = [step % 75 for step in range(300)] + list(range(200))
    assert observed(of_run(), "index_age_steps", ages) == {401: ["stale_index"]}
    assert observed(of_run(refresh_every=None), "index_age_steps", range(900)) == {}


@pytest.mark.parametrize(
    ("name", "metric", "near", "beyond", "still", "over"),
    [
        ("null_saturated", "null_share", 0.89, 0.91, 0.81, 0.79),
        ("no_utility", "retrieval_utility", 0.051, 0.049, 0.099, 0.101),
        ("hub_block", "hub_share", 0.49, 0.51, 0.46, 0.44),
        ("recall_lost", "recall@5", 0.51, 0.49, 0.59, 0.61),
        ("frozen_candidates", "candidates_changed", 0.0021, 0.0019, 0.0099, 0.0101),
        ("stale_index", "index_age_steps", 99, 100, 100, 99),
    ],
)
def test_an_alarm_begins_and_ends_at_the_thresholds_of_the_page(name, metric, near, beyond, still, over):
    """The first value is that of the start, which the recall is a share of."""
    for ends, between, episodes in ((near, near, 0), (beyond, still, 1), (beyond, over, 2)):
        series = [1.0] + [over] * 250 + [ends] * 150 + [between] * 150 + [ends] * 150
        assert [*observed(of_run(), metric, series).values()] == [[name]] * episodes


quarters = st.integers(0, 4).map(lambda number: number / 4)
"""Means of these are often a threshold exactly."""


@given(
    st.lists(st.floats(0, 1) | quarters, max_size=60),
    st.integers(1, 8),
    st.floats(0, 1) | quarters,
    st.floats(0, 0.3) | quarters,
    st.booleans(),
    st.data(),
)
def test_against_the_definition_and_across_a_checkpoint(values, window, line, gap, above, data):
    over = line - gap if above else line + gap
    rule = AlarmRule("it", "x", line, over, window, range(10**6), "{mean}")
    expected, on = [], False
    for step in range(window - 1, len(values)):
        mean = sum(values[step - window + 1 : step + 1]) / window
        beyond, still = (mean >= line, mean > over) if over < line else (mean <= line, mean < over)
        if (beyond and not on) or (on and still):
            expected += [] if on else [step]
            on = True
        else:
            on = False
    cut = data.draw(st.integers(0, len(values)))
    before, after = Alarms([rule]), Alarms([rule])
    found = list(observed(before, "x", values[:cut], 0))
    after.restore(json.loads(json.dumps(before.state())))
    found += list(observed(after, "x", values[cut:], cut))
    assert found == expected and after.counts == {"it": len(expected)}


# Real runs, with windows that a test has time for.


def ring_early(patch):
    patch.setattr(alarms, "WINDOW", 25)
    patch.setattr(candidate_watch, "HUB_QUERIES", 60)


@pytest.fixture(autouse=True)
def early(monkeypatch, request):
    if "healthy" in request.fixturenames:
        ring_early(monkeypatch)


@pytest.fixture(scope="module")
def healthy(chain):
    """A chain whose retriever finds sentences by their words, and whose reader copies what it reads."""
    return with_models(chain, "healthy")


@pytest.fixture(scope="module")
def blind(healthy):
    """The same with a retriever that sees nothing of a query."""
    return with_models(healthy, "blind", sees="nothing")


@pytest.fixture(scope="module")
def blind_model(blind, tmp_path_factory):
    """What becomes of it."""
    with pytest.MonkeyPatch.context() as patch:
        ring_early(patch)
        return run(blind, tmp_path_factory.mktemp("blind"))


def with_models(chain, name, *, attends=8.0, sees="words"):
    folder = chain.folder / name
    retriever = WordRetriever(blocks=chain.blocks, sees=sees).make(folder / "retriever")
    encoder = CopyingEncoder(blocks=chain.blocks, attends=attends).make(folder / "encoder")
    return replace(chain, retriever=retriever, encoder=encoder, index=make_index(folder, chain.blocks, retriever))


def run(chain, folder, **values):
    settings = {"steps": 50, "lr": 3e-5, "warmup": 5, "optimizer": "adamw", "refresh_every": 10, "candidates": 3}
    settings["checkpoint_every"] = 1000
    return pretrain(chain, **{**settings, "exclude_own": "nothing", **values}).make(folder / "model")


def raised(model):
    """What it counted, held against what it logged."""
    logged = [name for line in metrics_of(model) for name in line.get("alarms", [])]
    counts = model.metrics["alarms"]
    assert counts == {name: logged.count(name) for name in counts} and set(logged) <= set(counts)
    return {name for name, count in counts.items() if count}


def test_a_healthy_run_raises_none(healthy, tmp_path, capsys):
    model = run(healthy, tmp_path)
    assert raised(model) == set() and "Alarm" not in capsys.readouterr().err
    lines = metrics_of(model)
    assert [line["step"] for line in lines if "candidates_changed" in line] == [11, 21, 31, 41]
    assert "hub_share" not in lines[13] and 0 < lines[14]["hub_share"] < 0.5


def test_a_reader_that_does_not_look_at_blocks_is_reported_before_the_first_step(chain, tmp_path, capsys):
    blind = with_models(chain, "not-reading", attends=0.0)
    model = run(blind, tmp_path, steps=1)
    first = metrics_of(model)[0]
    assert first["alarms"] == ["reader_at_chance"] and first["gain_auc_above_chance"] <= 0 < first["any_positive"]
    warned = next(line for line in capsys.readouterr().err.splitlines() if "reader_at_chance" in line)
    assert warned.startswith("warning: pretrain: step 0: ") and "mlm-init --spans" in warned
    assert raised(model) == {"reader_at_chance"}


def test_candidates_that_never_hold_the_answer():
    watcher = of_run()
    assert watcher.observe({"step": 0, "any_positive": 0.0}) == ["nothing_told"]
    assert watcher.observe({"step": 0, "any_positive": 0.1, "gain_auc_above_chance": 0.1}) == []


def test_a_retriever_that_does_not_move(healthy, tmp_path, capsys):
    model = run(healthy, tmp_path, lr=1e-12, steps=30, refresh_every=5)
    assert "frozen_candidates" in raised(model)
    assert capsys.readouterr().err.count("(alarm frozen_candidates)") == 1


def test_a_refresher_that_never_comes(healthy, tmp_path):
    model = run(
        healthy, tmp_path, refresh="background", refresh_device="elsewhere", refresh_every=2, max_index_age=99, steps=9
    )
    assert raised(model) == {"stale_index"}


@pytest.mark.slow
def test_a_retriever_that_is_blind_to_queries(blind_model):
    assert "hub_block" in raised(blind_model)


def test_a_reader_that_does_not_look(healthy, tmp_path):
    assert "no_utility" in raised(run(with_models(healthy, "idle", attends=0.0), tmp_path, steps=30))


def test_a_null_document_that_every_query_likes_best(healthy, tmp_path):
    """At a rate that leaves it so; at the rate of the others a few steps cure it."""
    null = with_models(healthy, "null", sees="null")
    assert "null_saturated" in raised(run(null, tmp_path, lr=1e-12, steps=30))
    assert "null_saturated" not in raised(run(null, tmp_path / "learning"))


@pytest.mark.slow
def test_alarms_outlive_an_interruption(blind, blind_model, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 46)
        with pytest.raises(Stopped):
            run(blind, tmp_path, checkpoint_every=45)
    again = run(blind, tmp_path, checkpoint_every=45)
    assert again.content == blind_model.content and again.metrics["alarms"] == blind_model.metrics["alarms"]
    assert "hub_block" in raised(again)


def test_a_run_too_short_for_a_refresh_is_told_so(healthy, tmp_path, capsys):
    run(healthy, tmp_path, steps=2, refresh_every=2)
    assert "--refresh-every 2, --steps 2: the index is not refreshed while training" in capsys.readouterr().err


def test_recall_is_judged_by_its_start():
    good, lost = [0.4] * 20 + [0.15] * 30, [0.4] * 20 + [0.15] * 300
    assert observed(of_run(), "recall@5", good) == {}  # a dip while the rate warms up
    assert observed(of_run(), "recall@5", lost) == {STEPS // 4 + 2: ["recall_lost"]}
    assert observed(of_run(), "recall@5", [0.4] * 20 + [0.21] * 400) == {}
    assert observed(of_run(), "recall@5", [0.0] * 400) == {}  # nothing was lost
    assert (
        observed(of_run(), "recall@5", [0.1] + [0.3] * 300 + [0.1] * 100) == {}
    )  # that of the start, and not of the best
    before, after = of_run(), of_run()
    observed(before, "recall@5", lost[:200])
    after.restore(json.loads(json.dumps(before.state())))
    assert observed(after, "recall@5", lost[200:], 201) == {STEPS // 4 + 2: ["recall_lost"]}


def test_a_run_stops_at_an_alarm_and_goes_on_without_it(blind, blind_model, tmp_path):
    """The line with the alarm is the last; the same command stops again; without --stop-on the run is that of no stop."""
    (first,) = [line["step"] for line in metrics_of(blind_model) if "hub_block" in line.get("alarms", [])]
    for _ in range(2):
        with pytest.raises(QualityError, match=rf"step {first}.*hub_block.*9\d%"):
            run(blind, tmp_path, stop_on="no_utility,hub_block")
    [partial] = (tmp_path / "model").glob("*.partial")
    assert len((partial / "metrics.jsonl").read_text().splitlines()) == first
    assert run(blind, tmp_path, stop_on=("stale_index",)).content == blind_model.content


def test_the_exit_code_of_a_stop_is_that_of_a_quality_gate():
    assert QualityError("").exit_code == 6


def test_recall_lost_needs_questions(healthy, tmp_path):
    with pytest.raises(ConfigError, match="--recall-questions"):
        run(healthy, tmp_path, stop_on=("recall_lost",))


@pytest.mark.parametrize(("every", "refreshes"), [(2, 2), (5, 0)])
def test_refreshes_are_counted(healthy, tmp_path, capsys, every, refreshes):
    """Steps 0 to 4 are taken, so a snapshot of step 5 is of no use."""
    made = run(healthy, tmp_path, steps=5, refresh_every=every)
    assert made.metrics["refreshes"] == refreshes and f"refreshes {refreshes}" in capsys.readouterr().err


def test_a_refresh_that_came_too_late_is_reported(healthy, tmp_path, capsys, monkeypatch):
    from realmctl.training.refresh.kinds import InlineRefresh

    monkeypatch.setattr(InlineRefresh, "take", lambda self, step, in_use: None)
    assert run(healthy, tmp_path, steps=5, refresh_every=2).metrics["refreshes"] == 0
    assert "no refreshed index was used, though --refresh inline asks for one" in capsys.readouterr().err

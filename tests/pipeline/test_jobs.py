"""`run --jobs`: what can overlap does, what must wait waits, and nothing is left behind by a failure or a signal."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
import yaml

from realmctl.artifacts import open_artifact
from realmctl.errors import InputError, RealmctlError, ResourceError
from realmctl.pipeline.pipeline import Pipeline
from realmctl.pipeline.pipeline_file import read
from tests.fixtures.jobs import STAGES, alive, command, environment
from tests.fixtures.waiting import wait_until


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    Path("place").mkdir()


def pipeline(**steps: dict) -> Pipeline:
    """Each step by its name; `stage` is act unless it is said."""
    entries = {name: {"stage": "act", "place": "place", "name": name, **step} for name, step in steps.items()}
    Path("p.yaml").write_text(yaml.safe_dump({"workspace": "w", "stages": entries}, sort_keys=False))
    return read(Path("p.yaml"), STAGES, {}, None)


def meeting(*others: str, **values: object) -> dict:
    return {"waits_for": list(others), **values}


def test_independent_stages_overlap_and_dependent_ones_wait():
    """Each of the two waits until the other has begun: one after the other they would never end."""
    plan = pipeline(last={"after": "one", "also_after": "two"}, one=meeting("two"), two=meeting("one"))
    made = plan.make(plan.steps, jobs=2)
    times = {name: artifact.metrics for name, artifact in made.items()}
    assert max(times["one"]["begun"], times["two"]["begun"]) < min(times["one"]["ended"], times["two"]["ended"])
    assert times["last"]["begun"] > max(times["one"]["ended"], times["two"]["ended"])
    assert made["last"].manifest.inputs == {"after": made["one"].content, "also_after": made["two"].content}


def test_no_more_run_than_there_are_jobs():
    plan = pipeline(**{name: {} for name in "abcdef"})
    spans = [(a.metrics["begun"], a.metrics["ended"]) for a in plan.make(plan.steps, jobs=2).values()]
    assert max(sum(begun <= at < ended for begun, ended in spans) for at, _ in spans) <= 2


@pytest.mark.parametrize(("wanted", "got"), [(None, "4"), ("3", "3")])
def test_stages_divide_the_cores_unless_told_otherwise(wanted, got, monkeypatch):
    monkeypatch.setattr("realmctl.pipeline.jobs.free_cores", lambda: 9)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wanted:
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    plan = pipeline(one={}, two={})
    assert {made.metrics["threads"] for made in plan.make(plan.steps, jobs=2).values()} == {got}


@pytest.mark.parametrize(("wanted", "alone", "shared"), [(None, "9", "4"), ("3", "3", "3")])
def test_a_stage_that_runs_alone_gets_all_cores(wanted, alone, shared, monkeypatch):
    monkeypatch.setattr("realmctl.pipeline.jobs.free_cores", lambda: 9)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wanted:
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    plan = pipeline(
        first={}, left={"after": "first"}, right={"after": "first"}, last={"after": "left", "also_after": "right"}
    )
    threads = {name: made.metrics["threads"] for name, made in plan.make(plan.steps, jobs=2).items()}
    assert threads == {"first": alone, "left": shared, "right": shared, "last": alone}


def test_a_stage_may_start_after_others_that_it_does_not_read(monkeypatch):
    monkeypatch.setattr("realmctl.pipeline.jobs.free_cores", lambda: 9)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    plan = pipeline(large={"starts_after": ["left", "right"]}, left={}, right={})
    made = {name: artifact.metrics for name, artifact in plan.make(plan.steps, jobs=2).items()}
    assert made["large"]["begun"] > max(made["left"]["ended"], made["right"]["ended"])
    assert {name: metrics["threads"] for name, metrics in made.items()} == {"large": "9", "left": "4", "right": "4"}


def test_results_keep_the_order_of_the_file_and_are_made_once(capsys):
    plan = pipeline(slow={"waits_for": ["fast"], "outlives": ["fast"]}, fast={}, child={"after": "slow"})
    names = [step.name for step in plan.steps]
    made = plan.make(plan.steps, jobs=2)
    assert list(made) == names and made["slow"].metrics["ended"] > made["fast"].metrics["ended"]
    capsys.readouterr()
    again = plan.make(plan.steps, jobs=2)
    assert {name: a.content for name, a in again.items()} == {name: a.content for name, a in made.items()}
    assert capsys.readouterr().err.count("nothing to do") == 3
    assert not Path("w/slow/v2").exists()


def test_one_job_and_several_make_the_same():
    steps = {name: {"after": parent} if parent else {} for name, parent in (("a", ""), ("b", "a"), ("c", "a"))}
    plan = pipeline(**steps)
    one = plan.make(plan.steps, jobs=1)
    two = read(Path("p.yaml"), STAGES, {}, Path("other")).make(plan.steps, jobs=2)
    assert {name: a.recipe for name, a in one.items()} == {name: a.recipe for name, a in two.items()} and list(
        one
    ) == list(two)


def test_a_child_makes_one_stage_after_another_and_none_is_left():
    plan = pipeline(**{name: {} for name in "abcdef"})
    processes = {str(artifact.metrics["process"]) for artifact in plan.make(plan.steps, jobs=2).values()}
    assert len(processes) == 2 and not any(Path("/proc", process).exists() for process in processes)


def test_after_a_failure_its_child_is_gone_too():
    plan = pipeline(bad={"then": "fail"}, good={})
    with pytest.raises(InputError):
        plan.make(plan.steps, jobs=2)
    assert not any(alive(Path("place", name)) for name in ("bad", "good"))


def test_a_failure_lets_the_running_ones_end_and_starts_no_other(capfd):
    slow = {"waits_for": ["bad"], "outlives": ["bad"]}
    plan = pipeline(bad=meeting("slow", then="fail"), slow=slow, later={"after": "slow"}, child={"after": "bad"})
    with pytest.raises(InputError, match=r"bad \(jobs\): "):
        plan.make(plan.steps, jobs=2)
    said = capfd.readouterr().err
    assert "waiting for the running stages (slow)" in said and "[slow] jobs: made w/slow/v1" in said
    assert open_artifact("w/slow").metrics["ended"]
    assert {path.name for path in Path("w").rglob("*") if path.is_dir()} == {"bad", "slow", "v1"}


@pytest.mark.parametrize(
    ("then", "error", "said"),
    [
        ("break", RealmctlError, "bad: .*code 1"),
        ("die", ResourceError, "bad: .*signal 9"),
    ],
)
def test_a_bug_and_a_kill_are_named(capfd, then, error, said):
    plan = pipeline(bad={"then": then}, other={"after": "bad"})
    with pytest.raises(error, match=said) as raised:
        plan.make(plan.steps, jobs=2)
    assert type(raised.value) is error
    assert ("RuntimeError: a bug" in capfd.readouterr().err) == (then == "break")


def test_the_command_exits_with_the_failing_stages_code():
    pipeline(good={}, bad={"then": "fail"})
    run = command("run", "p.yaml", "--jobs", 2)
    out, err = run.communicate()
    assert (run.returncode, out) == (3, "") and "error: bad (jobs): bad fails as it was told" in err
    pipeline(good={}, bad={})
    run = command("run", "p.yaml", "-j", 2, "--json", "-q")
    out, err = run.communicate()
    assert (run.returncode, err) == (0, "") and list(json.loads(out)["made"]) == ["good", "bad"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGKILL, -9)])
def test_a_signal_reaches_the_children_and_leaves_nothing_half(number, code):
    pipeline(plain={"then": "hang"}, kept={"stage": "resumable", "then": "hang"})
    run = command("run", "p.yaml", "--jobs", 2)
    wait_until(lambda: all(Path("place", name).exists() for name in ("plain", "kept")))
    run.send_signal(number)
    out, err = run.communicate()
    assert (run.returncode, out) == (code, "") and "Traceback" not in err
    wait_until(lambda: not any(alive(Path("place", name)) for name in ("plain", "kept")))
    assert {path.name for path in Path("w/plain").iterdir()} == {".lock"}
    assert Path("w/kept/v1.partial/.scratch/progress/half").exists()
    plan = read(Path("p.yaml"), STAGES, {}, None)
    assert plan.make(plan.until("kept"), jobs=2)["kept"].metrics == {"resumed": 1}


def test_dry_runs_and_until_are_as_ever():
    pipeline(one={}, two={"after": "one"}, three={"after": "two"})
    run = command("run", "p.yaml", "--jobs", 2, "--dry-run")
    assert run.communicate()[0].count("to make") == 3 and not Path("w").exists()
    run = command("run", "p.yaml", "--jobs", 2, "--until", "two", "-q")
    assert run.communicate()[0].splitlines() == ["w/one/v1", "w/two/v1"]

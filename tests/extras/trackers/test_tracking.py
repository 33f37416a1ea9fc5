"""Trackers: what TensorBoard's own reader finds in the event files is what metrics.jsonl has; stand-ins
with the signatures and rules of the other trackers get the same."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from realmctl.errors import ConfigError, ResourceError
from realmctl.training.loop import train
from realmctl.training.objective import Observer
from realmctl.training.settings.base import TrainSettings
from tests.fixtures.chain import pretrain
from tests.fixtures.parabola import Breaks, Parabola, lines, writer

pytest.importorskip("tensorboard")


def scalars(folder):
    """{metric: {step: value}} that TensorBoard shows."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    return {name: {event.step: event.value for event in found.Scalars(name)} for name in found.Tags()["scalars"]}


def logged(folder):
    found = {}
    for line in lines(folder):
        for name, value in line.items():
            if name not in ("step", "alarms"):
                found.setdefault(name, {})[line["step"]] = pytest.approx(value, rel=1e-6)
    return found


def test_the_curves_are_the_records(tmp_path):
    settings = TrainSettings(steps=5, lr=0.1, warmup=0, track=f"tensorboard:{tmp_path / 'runs'}")
    train(Parabola(), settings, writer(tmp_path / "v3.partial"), "toy")
    found = scalars(tmp_path / "runs/toy/v3")
    assert found == logged(tmp_path / "v3.partial") and set(found) == {"loss", "hits", "lr", "grad_norm"}


class Measured(Observer):
    def at_end(self, step):
        return {"quality": step / 2}


def test_what_is_measured_at_the_end_is_a_record_too(tmp_path):
    settings = TrainSettings(steps=5, lr=0.1, warmup=0, track=f"tensorboard:{tmp_path / 'runs'}")
    train(Parabola(), settings, writer(tmp_path / "v3.partial"), "toy", [Measured()])
    found = scalars(tmp_path / "runs/toy/v3")
    assert found == logged(tmp_path / "v3.partial")
    assert found["quality"] == {5: 2.5}


def test_all_records_of_a_pretraining_are_shown(chain, tmp_path):
    """Also those behind the last step: cloze recall of its weights, and recall with the index that is published."""
    runs = tmp_path / "runs"
    made = pretrain(chain, cloze_recall=11, recall_questions=chain.questions, track=f"tensorboard:{runs}").make(
        tmp_path / "model"
    )
    assert scalars(runs / "pretrain/v1") == logged(made.path)
    assert [sorted({"loss", "cloze_rr", "recall@1"} & line.keys()) for line in lines(made.path)[-2:]] == [
        ["cloze_rr"],
        ["recall@1"],
    ]


@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_run_that_continues_has_each_step_once(tmp_path, from_the_start):
    folder, runs = tmp_path / "v1.partial", tmp_path / "runs"
    settings = TrainSettings(steps=6, lr=0.1, warmup=0, checkpoint_every=2, track=f"tensorboard:{runs}")
    first = settings if from_the_start else replace(settings, track=None)
    with pytest.raises(ZeroDivisionError):
        train(Breaks(), first, writer(folder), "toy")
    train(Parabola(), settings, writer(folder), "toy")
    assert scalars(runs / "toy/v1") == logged(folder)


def test_alarms_are_shown_as_text(tmp_path):
    settings = TrainSettings(steps=3, lr=0.1, warmup=0, track=f"tensorboard:{tmp_path / 'runs'}")
    train(Parabola(), settings, writer(tmp_path / "v1.partial"), "toy", [Alarmed()])
    [file] = (tmp_path / "runs/toy/v1").iterdir()
    assert b"hub_block" in file.read_bytes() and "alarms" not in scalars(tmp_path / "runs/toy/v1")


def test_without_the_package_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[tensorboard\]"):
        train(
            Parabola(), TrainSettings(steps=1, lr=1.0, track=f"tensorboard:{tmp_path}"), writer(tmp_path / "v1"), "toy"
        )
    assert not list((tmp_path / "v1").iterdir())


class Alarmed(Observer):
    def after_step(self, line):
        return {"alarms": ["hub_block"]} if line["step"] == 2 else {}


@pytest.fixture
def wandb(monkeypatch):
    """wandb 0.28, as wandb/sdk/wandb_init.py and wandb_run.py have it: signatures, ids, and steps that must rise within a run."""

    class Fake(SimpleNamespace):
        def init(
            self, entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None, config=None,
            config_exclude_keys=None, config_include_keys=None, allow_val_change=None, group=None, job_type=None, mode=None,
            force=None, reinit=None, resume=None, resume_from=None, fork_from=None, save_code=None, tensorboard=None,
            sync_tensorboard=None, monitor_gym=None, settings=None,
        ):  # fmt: skip
            print("wandb: Tracking run")
            assert (
                mode is None and os.environ["WANDB_MODE"] == "offline" and resume in ("allow", "never", "must", "auto")
            )
            assert id and not set(id) & set(":;,#?/'")
            self.runs.setdefault((project, id), {"names": [], "config": config, "history": {}, "exit_codes": []})
            self.run = self.runs[project, id]
            self.run["names"].append(name)

        def log(self, data, step=None, commit=None):
            if step >= max(self.run["history"], default=0):  # or else a warning, and the data are ignored
                self.run["history"].setdefault(step, {}).update(data)

        def finish(self, exit_code=None, quiet=None):
            self.run["exit_codes"].append(exit_code)

    return installed(monkeypatch, "wandb", Fake(runs={}))


@pytest.fixture
def trackio(monkeypatch):
    """trackio 0.43, as trackio/__init__.py has it: a run is found by its name, the latest of several."""

    class Fake(SimpleNamespace):
        def init(
            self, project, name=None, group=None, space_id=None, server_url=None, space_storage=None, dataset_id=None,
            bucket_id=None, config=None, resume="never", settings=None, private=None, embed=True, auto_log_gpu=None,
            gpu_log_interval=10.0, auto_log_cpu=None, cpu_log_interval=10.0, webhook_url=None, webhook_min_level=None,
        ):  # fmt: skip
            print("* Trackio project initialized")
            former = [run for run in self.runs.values() if (run["project"], run["names"][0]) == (project, name)]
            if resume == "allow" and former:
                self.run = former[-1]
            else:
                self.run = {"project": project, "names": [name], "config": config, "history": {}, "exit_codes": []}
                self.runs[len(self.runs)] = self.run

        def log(self, metrics, step=None):
            self.run["history"].setdefault(step, {}).update(metrics)

        def finish(self):
            self.run["exit_codes"].append(None)

    return installed(monkeypatch, "trackio", Fake(runs={}))


@pytest.fixture
def mlflow(monkeypatch):
    """MLflow 3, as mlflow/tracking/fluent.py and utils/validation.py have it: ids, statuses, names of metrics, one active run."""

    class Fake(SimpleNamespace):
        def set_tracking_uri(self, uri):
            self.uri = uri

        def set_experiment(self, experiment_name=None, experiment_id=None):
            self.experiment = experiment_name

        def start_run(
            self, run_id=None, experiment_id=None, run_name=None, nested=False, parent_run_id=None, tags=None,
            description=None, log_system_metrics=None,
        ):  # fmt: skip
            print("start_run")
            assert self.active is None
            if run_id is None:
                run_id = f"{len(self.runs):032x}"
                self.runs[run_id] = {"names": [run_name], "config": {}, "history": {}, "tags": {}}
            elif run_id not in self.runs:
                raise RuntimeError(f"Run '{run_id}' not found")  # an MlflowException
            self.active = self.runs[run_id]
            self.active["status"] = "RUNNING"
            return SimpleNamespace(info=SimpleNamespace(run_id=run_id))

        def log_params(self, params, synchronous=None, run_id=None):
            assert all(self.active["config"].setdefault(name, value) == value for name, value in params.items())

        def log_metrics(self, metrics, step=None, synchronous=None, run_id=None, timestamp=None):
            if bad := [name for name in metrics if not re.fullmatch(r"[/\w.\- ]*", name)]:
                raise RuntimeError(f"Invalid value {bad[0]!r} for parameter 'name'")  # an MlflowException
            self.active["history"].setdefault(step, {}).update(metrics)

        def set_tag(self, key, value, synchronous=None):
            self.active["tags"][key] = value

        def end_run(self, status="FINISHED"):
            self.active["status"], self.active = status, None

    return installed(monkeypatch, "mlflow", Fake(runs={}, active=None))


def installed(monkeypatch, name, fake):
    monkeypatch.setattr(
        os, "environ", {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
    )
    monkeypatch.setitem(sys.modules, name, fake)
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: object())
    return fake


TRACKERS = ["wandb", "trackio", "mlflow"]


def of(name, **options):
    return TrainSettings(
        **{"steps": 6, "lr": 0.1, "warmup": 0, "checkpoint_every": 2, "track": f"{name}:mine"} | options
    )


def records(folder):
    found = {}
    for line in lines(folder):
        values = {name: value for name, value in line.items() if name not in ("step", "alarms")}
        found.setdefault(line["step"], {}).update(values)
    return found


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_gets_every_record_and_the_settings(tmp_path, request, capsys, name):
    fake, out = request.getfixturevalue(name), writer(tmp_path / "v1.partial")
    train(Parabola(), of(name), out, "toy", [Alarmed()])
    later = {"step": 6, "recall": 0.5}
    with of(name).curves("toy", out) as tracker:
        tracker.begin(6, out.file("metrics.jsonl"))
        tracker.add(later)
    out.file("metrics.jsonl").open("a").write(json.dumps(later) + "\n")
    [run] = fake.runs.values()
    assert set(run["names"]) == {"toy/v1"} and run["config"] == out.origin.settings
    alarms = [values.pop("alarms") for values in run["history"].values() if "alarms" in values]
    assert run["history"] == records(out.path)
    assert (alarms or [*run["tags"].values()]) == ["hub_block"]
    assert run.get("status") == "FINISHED" or run["exit_codes"] in ([0, 0], [None, None])
    assert not capsys.readouterr().out


@pytest.mark.parametrize("name", TRACKERS)
@pytest.mark.parametrize("from_the_start", [True, False])
def test_a_training_that_continues_goes_on_with_its_run(tmp_path, request, name, from_the_start):
    """It breaks in step 4, after the checkpoint of step 2; a tracker that comes later gets the records before."""
    fake, out = request.getfixturevalue(name), writer(tmp_path / "v1.partial")
    with pytest.raises(ZeroDivisionError):
        train(Breaks(), of(name) if from_the_start else of(name, track=None), out, "toy")
    for run in fake.runs.values():
        assert run.get("status") == "FAILED" or run["exit_codes"] in ([1], [None])
    train(Parabola(), of(name), out, "toy")
    [run] = fake.runs.values()
    assert run["history"] == records(out.path) and set(run["names"]) == {"toy/v1"}
    assert run.get("status") == "FINISHED" or run["exit_codes"][-1] in (0, None)


@pytest.mark.parametrize("name", TRACKERS)
def test_versions_of_one_name_in_two_workspaces_are_two_runs(tmp_path, request, name):
    fake = request.getfixturevalue(name)
    for workspace in "ab":
        (tmp_path / workspace).mkdir()
        train(Parabola(), of(name), writer(tmp_path / workspace / "v1.partial"), "toy")
    assert [run["names"] for run in fake.runs.values()] == [["toy/v1"]] * 2


def test_another_store_gets_a_run_with_all_records(tmp_path, mlflow):
    out = writer(tmp_path / "v1.partial")
    with pytest.raises(ZeroDivisionError):
        train(Breaks(), of("mlflow"), out, "toy")
    mlflow.runs.clear()
    train(Parabola(), of("mlflow", track="mlflow:other"), out, "toy")
    [run] = mlflow.runs.values()
    assert run["history"] == records(out.path) and mlflow.uri == "other"


def test_the_run_of_a_sweep_is_the_one_that_its_agent_names(tmp_path, wandb):
    os.environ["WANDB_RUN_ID"] = "sweep-7"
    train(Parabola(), of("wandb"), writer(tmp_path / "v1.partial"), "toy")
    assert [*wandb.runs] == [("mine", "sweep-7")]


def test_mlflow_gets_names_that_it_takes(tmp_path, mlflow):
    train(Parabola(), of("mlflow"), writer(tmp_path / "v1.partial"), "toy", [Recalls()])
    [run] = mlflow.runs.values()
    assert run["history"][2]["recall_5"] == 0.5 and run["status"] == "FINISHED"


class Recalls(Observer):
    def after_step(self, line):
        return {"recall@5": 0.5}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_that_fails_does_not_end_the_training(tmp_path, request, capsys, monkeypatch, name):
    fake, out = request.getfixturevalue(name), writer(tmp_path / "v1.partial")
    monkeypatch.setattr(fake, "log_metrics" if name == "mlflow" else "log", lambda *given, **named: 1 / 0)
    train(Parabola(), of(name), out, "toy")
    assert len(lines(out.path)) == 6 and capsys.readouterr().err.count("--track") == 1


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_that_opens_no_run_is_a_setting_to_change(tmp_path, request, monkeypatch, name):
    fake = request.getfixturevalue(name)
    monkeypatch.setattr(fake, "start_run" if name == "mlflow" else "init", lambda *given, **named: 1 / 0)
    with pytest.raises(ConfigError, match=f"{name}:mine"):
        train(Parabola(), of(name), writer(tmp_path / "v1.partial"), "toy")

"""Exit codes: each one that is documented, provoked through the real command, with one paragraph that says why."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from realmctl import errors
from realmctl.artifacts import series
from realmctl.pipeline import Stage, setting
from tests.fixtures.messages import one_paragraph
from tests.fixtures.small_stages import Plain, Steps
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
REALMCTL = [sys.executable, "-P", "-m", "realmctl"]

pytestmark = pytest.mark.usefixtures("here")


def child(*arguments: object, **kwargs: object) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*REALMCTL, *map(str, arguments)], **{**pipes, **kwargs})  # type: ignore[call-overload, no-any-return]


def test_the_codes_of_the_page_of_the_help_and_of_the_errors_are_the_same(realmctl):
    page = (ROOT / "docs/reference/exit-codes.md").read_text()
    listed = " ".join(realmctl("--help")[1].split()).partition("Exit codes: ")[2]
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert documented == [int(code) for code in re.findall(r"(?:^|; )(\d+) ", listed)]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")]
    raised = {kind.exit_code for kind in kinds}
    assert raised < set(documented) and set(documented) - raised == {0, 130, 141}


def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path):
    """The module in the place of typer stands for one of hundreds: it presses Ctrl-C, and goes on like one that takes long."""
    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), 2)\ntime.sleep(60)")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    run = subprocess.run([*REALMCTL, "ls"], env=environment, capture_output=True, text=True, timeout=50)
    assert run.returncode == 130 and "interrupted" in one_paragraph(run.stderr)


USAGE = [
    (["nothing"], "No such command 'nothing'"),
    (["plain", "--txt", "x"], "No such option"),
    (["plain", "--limit", "many"], "Invalid value for '--limit'"),
    (["plain", "--kind-of", "medium"], "Invalid value for '--kind-of'"),
    (["plain", "--out", ""], "a path cannot be empty"),
    (["child", "--plain", ""], "a path cannot be empty"),
    (["plain", "--out", "a\nb"], "cannot be printed"),
    (["plain", "--rate", "nan"], "--rate: nan is not a finite number"),
    (["plain", "--out", "/proc/x"], "/proc/x cannot be made"),
    (["plain", "-w", " "], "a path cannot be empty"),
    (["show"], "Missing argument"),
    (["run", "p.yaml", "--var", "x"], "Write name=value"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_usage_errors_exit_2_in_one_paragraph(small, arguments, message):
    code, out, err = small(*arguments)
    assert (code, out) == (2, "") and message in one_paragraph(err)


def test_missing_and_damaged_inputs_exit_3(realmctl, corpus):
    assert "no-such.xml" in one_paragraph(realmctl("chunk", "no-such.xml")[2])
    assert realmctl("chunk", "no-such.xml")[0] == realmctl("ls", "none")[0] == realmctl("show", "none")[0] == 3
    code, _, err = realmctl("tag")
    assert code == 3 and "--blocks" in err and "has no finished version" in one_paragraph(err)
    path = Plain().make("plain").file("text.txt")
    path.chmod(0o644)
    path.write_text("jello")
    code, _, err = realmctl("verify", "plain")
    assert code == 3 and "text.txt is damaged" in one_paragraph(err)


def test_artifacts_that_do_not_fit_exit_4(realmctl):
    Plain().make("plain")
    code, _, err = realmctl("tag", "--blocks", "plain")
    assert code == 4 and "--blocks plain/v1 is of kind plain, but blocks is needed" in one_paragraph(err)


def test_a_full_disk_exits_5_and_leaves_nothing(corpus):
    limited = f"ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 exec {' '.join(REALMCTL)} chunk {corpus} --tokenizer train:200 --workers 1 -q"
    run = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert run.returncode == 5 and "File too large" in one_paragraph(run.stderr) and run.stdout == ""
    assert {path.name for path in Path("artifacts/blocks").iterdir()} == {".lock"}


class Vectors(Stage):
    """Random embeddings."""

    makes = "embeddings"
    dtype: Literal["float32"] = setting("Number format.", default="float32")

    def run(self, out):
        np.save(out.file("embeddings.npy"), np.random.default_rng(0).normal(size=(400, 16)).astype(self.dtype))
        return {"rows": 400, "dimension": 16}


def test_a_failed_quality_gate_exits_6_and_publishes_nothing(realmctl):
    Vectors().make("artifacts/embeddings")
    weak = ("--type", "hnsw", "--m", 2, "--ef-construction", 2, "--ef", 1, "--min-recall", 1.0)
    code, out, err = realmctl("build-index", "-q", *weak)
    assert (code, out) == (6, "") and one_paragraph(err)
    assert {path.name for path in Path("artifacts/index").iterdir()} == {".lock"}


def test_a_held_series_exits_7(small):
    with series.locked(Path("artifacts/plain")):
        code, out, err = small("plain", "-q")
    assert (code, out) == (7, "") and f"(process {os.getpid()})" in one_paragraph(err)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_signals_exit_as_documented_and_leave_nothing(tmp_path, number, code):
    spool = tmp_path / "spool"
    spool.mkdir()
    run = child("chunk", "-", env={**os.environ, "TMPDIR": str(spool)})
    assert run.stderr is not None and b"reading standard input" in run.stderr.readline()
    wait_until(lambda: list(spool.iterdir()))
    run.send_signal(number)
    out, err = run.communicate()
    assert (run.returncode, out) == (code, b"") and "Run the same command again" in one_paragraph(err.decode())
    assert not list(spool.iterdir()) and not Path("artifacts").exists()


def test_an_interrupted_resumable_stage_goes_on(small, monkeypatch):
    monkeypatch.setattr("realmctl.artifacts.unfinished.BRIEF_SECONDS", 0)
    with pytest.raises(RuntimeError):
        Steps(stop_before=3).make("artifacts/steps")
    code, _, err = small("steps", "--steps", 9, "-q")
    assert code == 4 and "steps: 4 there, 9 here" in one_paragraph(err)
    assert json.loads(small("steps", "--json")[1])["metrics"] == {"taken": 1}


def test_a_bug_keeps_its_traceback_without_locals(tmp_path):
    code = (
        "from realmctl.artifacts import catalogue\nfrom realmctl.cli import app\n"
        "def broken(folder):\n"
        "    secret = 'hidden value'\n"
        "    raise KeyError('bug')\n"
        "catalogue.listing = broken\n"
        "app.main(['ls'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1 and "Traceback" in run.stderr and "KeyError: 'bug'" in run.stderr
    assert "hidden value" not in run.stderr.replace("secret = 'hidden value'", "")


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    for n in range(3):
        Plain(text=f"{n}").make("w/plain")
    command = " ".join([*REALMCTL, "ls", "w"])
    run = subprocess.run(["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert run.stderr == "" and run.returncode in (0, 141)


@pytest.mark.parametrize(
    ("command", "maker"),
    [("tag", "chunk"), ("pretrain", "chunk"), ("build-index", "embed"), ("eval-em --questions q.jsonl", "finetune")],
)
def test_a_missing_input_names_the_command_that_makes_it(realmctl, tmp_path, command, maker):
    Path("q.jsonl").write_text('{"question": "Who?", "answer": ["Ada"]}\n')
    code, _, err = realmctl(*command.split(), "--workspace", tmp_path / "empty")
    assert code == 3 and f"`realmctl {maker}`" in one_paragraph(err)

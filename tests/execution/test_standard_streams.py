"""stdin, stdout and stderr that are closed, full, or whose reader went away: through the real command in a shell."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from realmctl import log
from realmctl.artifacts import open_artifact, verify
from realmctl.cli import app
from realmctl.cli.invoke import exit_code_of
from tests.faults.children import ended, forked
from tests.fixtures.small_stages import Plain

ROOT = Path(__file__).resolve().parents[2]
REALMCTL = f"{sys.executable} -P -m realmctl"
PIPED = "; exit ${PIPESTATUS[0]}"


def shell(command: str) -> tuple[int, str, str]:
    """Run a bash command in which `realmctl` is the real one, and return exit code, stdout and stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        ["bash", "-c", command.replace("realmctl", REALMCTL)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
    )
    assert "Traceback" not in run.stderr and "Exception ignored" not in run.stderr, run.stderr
    return run.returncode, run.stdout, run.stderr


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("command", ["ls w", pytest.param("--help", marks=pytest.mark.slow)])
def test_a_reader_of_stdout_that_goes_away(command):
    Plain().make("w/plain")
    assert shell(f"realmctl {command} | true {PIPED}")[0] == 141


@pytest.mark.slow
def test_a_reader_that_takes_one_line_of_many():
    assert shell(f"realmctl chunk --help | head -1 {PIPED}")[0] == 141


@pytest.mark.parametrize(
    "command", ["ls w --json", *(pytest.param(one, marks=pytest.mark.slow) for one in ("--help", "--version"))]
)
def test_stdout_that_is_closed_or_full(command):
    Plain().make("w/plain")
    assert shell(f"realmctl {command} >&-") == (0, "", "")
    code, _, err = shell(f"realmctl {command} > /dev/full")
    assert code == 5 and err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    "to", ["2>/dev/full", *(pytest.param(one, marks=pytest.mark.slow) for one in ("2>&-", "2> >(true)"))]
)
def test_messages_that_cannot_be_written_change_nothing(corpus, to):
    chunk = f"realmctl chunk {corpus} --tokenizer train:100"
    assert shell(f"{chunk} -w w {to}")[:2] == (0, "w/blocks/v1\n")
    verify(open_artifact("w/blocks"))
    assert shell(f"realmctl ls nowhere {to}")[0] == 3


def test_all_three_closed(corpus):
    """The next file that is opened must not get the number of stdout, or what is printed would be written into it."""
    assert shell(f"realmctl chunk {corpus} --tokenizer train:100 -w w <&- >&- 2>&-")[0] == 0
    verify(open_artifact("w/blocks"))


@pytest.mark.parametrize("open_ends", [os.pipe, os.openpty])
def test_a_training_whose_messages_nobody_reads_any_more(chain, tmp_path, one_thread, open_ends):
    """It prints a line at each step, or draws a bar on a terminal. The reader leaves after the first bytes."""
    reader, writer = open_ends()

    def train():
        os.dup2(writer, 2)
        os.close(reader)
        os.close(writer)
        sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # noqa: SIM115
        log.SECONDS_BETWEEN_LINES = 0.0
        options = (
            f"mlm-init --blocks {chain.blocks.path} -w w --bert scratch:L1-H16 --batch-size 2 --length 16 --steps 9"
        )
        try:
            app.main(options.split())
        except SystemExit as end:
            return int(end.code or 0)

    child = forked(train, tmp_path / "log")
    os.close(writer)
    assert os.read(reader, 1)
    os.close(reader)
    assert ended(child, within=120) == 0, (tmp_path / "log").read_text()
    assert open_artifact("w/encoder").metrics["steps"] == 9


@pytest.mark.slow
def test_jobs_whose_messages_nobody_reads(corpus):
    Path("p.yaml").write_text(
        f"workspace: w\nstages:\n  a: {{stage: chunk, corpus: [{corpus}], tokenizer: 'train:100'}}\n"
        f"  b: {{stage: chunk, corpus: [{corpus}], tokenizer: 'train:101'}}\n"
    )
    assert shell("realmctl run p.yaml --jobs 2 2> >(head -1 > /dev/null)")[:2] == (0, "w/a/v1\nw/b/v1\n")


def test_a_working_folder_that_was_deleted():
    for command, code in (("ls", 3), ("--help", 0)):
        found, _, err = shell(f"mkdir gone; cd gone; rmdir ../gone; realmctl {command}")
        assert found == code and err.count("\n") == (code != 0)


def test_what_a_terminal_obeys_is_escaped(corpus):
    """A title that clears the screen, an id that sets the title of the window, a name that turns the writing around."""
    shell(f"realmctl chunk {corpus} --tokenizer train:100 -w w")
    Path("e.jsonl").write_text('{"op": "remove", "id": "\\u001b]0;x\\u0007", "a\\u009bb\\u202e": 1}\n')
    for edits in ('{"op": "remove", "id": "\\u001b[2J\\u009b\\u202e"}', '{"op": "add", "\\u001b[2J\\u202e": 1}'):
        Path("e.jsonl").write_text(edits)
        code, out, err = shell("realmctl revise w/blocks -w w --edits e.jsonl")
        assert code == 3 and "\\x1b[2J" in err and not set("\x1b\x9b\u202e") & set(out + err)


def fail_at_a_pipe() -> None:
    raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize(("is_read", "code"), [(True, 5), (False, 141)])
def test_a_broken_pipe_to_another_process_is_not_that_of_stdout(monkeypatch, capsys, is_read, code):
    """Where stdout has a reader, the command did not do what it should, and says so."""
    reads, writes = os.pipe()
    if not is_read:
        os.close(reads)
    with os.fdopen(writes, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert exit_code_of(fail_at_a_pipe) == code
    told = capsys.readouterr().err
    assert told.startswith("error: Broken pipe. A process that this command needs has ended") if is_read else not told

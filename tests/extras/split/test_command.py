"""`realmctl split`: files in, one answer out, the exit code that was promised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl import log
from realmctl.cli import app

REFERENCES = '{"question": "who", "answer": ["Ada"]}\n{"question": "where", "answer": ["Caf\u00e9"]}\n'
PREDICTIONS = '{"question": "where", "prediction": "Cafe\u0301"}\n'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    Path("r.jsonl").write_text(REFERENCES)
    Path("p.jsonl").write_text(PREDICTIONS)
    yield
    log.set_quiet(False)


@pytest.fixture
def realmctl(capsys):
    """The real command, in this process."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            app.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def test_split(realmctl):
    code, out, _ = realmctl("split", "r.jsonl", "--train", "t", "--dev", "d")
    assert (code, out) == (0, "2 train, 0 dev\n")
    assert Path("t").read_text() == REFERENCES and Path("d").read_text() == ""
    counts = json.loads(
        realmctl("split", "r.jsonl", "--train", "t", "--dev", "d", "--max-answer-tokens", 5, "--json")[1]
    )
    assert counts == {"schema_version": 1, "train": 2, "dev": 0, "dropped_answers": 0, "dropped_questions": 0}


def test_a_split_that_cannot_be(realmctl):
    assert realmctl("split", "r.jsonl", "--train", "r.jsonl", "--dev", "d")[0] == 2
    assert realmctl("split", "r.jsonl", "--train", "t")[0] == 2
    assert realmctl("split", "p.jsonl", "--train", "t", "--dev", "d")[0] == 3
    assert realmctl("split", "r.jsonl", "--train", "t", "--dev", "d", "--max-answer-tokens", 0)[0] == 2
    assert not Path("t").exists()

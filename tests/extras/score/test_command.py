"""`realmctl score`: files in, one answer out, the exit code that was promised."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from realmctl import log
from realmctl.cli import app
from realmctl.pipeline import Stage
from tests.fixtures.small_stages import Plain

REFERENCES = '{"question": "who", "answer": ["Ada"]}\n{"question": "where", "answer": ["Caf\u00e9"]}\n'
PREDICTIONS = '{"question": "where", "prediction": "Cafe\u0301"}\n'


class Scores(Stage):
    """A scores artifact."""

    makes = "scores"

    def run(self, out):
        out.file("predictions.jsonl").write_text(PREDICTIONS)
        return {}


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


def test_scores_for_people(realmctl):
    code, out, err = realmctl("score", "p.jsonl", "r.jsonl", "--all-scorers")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "2 questions, 1 without a prediction",
        "orqa          0.5000 (1/2)",
        "squad         0.0000 (0/2)",
        "dpr           0.0000 (0/2)",
        "F1 by orqa    0.5000",
        "",
        "1 questions on which they disagree",
        "'where'",
        "  'Cafe\u0301' for ['Caf\u00e9']: orqa match, squad no match, dpr no match",
    ]


def test_scores_for_programs(realmctl):
    code, out, _ = realmctl("score", "p.jsonl", "r.jsonl", "--scorer", "squad", "--json")
    value = json.loads(out)
    assert code == 0 and value["schema_version"] == 1 and "disagreements" not in value
    assert (value["em"], value["scorer"], value["em_orqa"], value["missing"]) == (0, "squad", 0.5, 1)
    listed = json.loads(realmctl("score", "p.jsonl", "r.jsonl", "--all-scorers", "--json")[1])["disagreements"]
    assert [entry["question"] for entry in listed] == ["where"]


def test_a_scores_artifact_is_its_predictions(realmctl):
    Scores().make("scores")
    Plain().make("plain")
    from_file = realmctl("score", "p.jsonl", "r.jsonl")
    assert realmctl("score", "scores", "r.jsonl") == realmctl("score", "scores/v1", "r.jsonl") == from_file
    assert realmctl("score", "plain", "r.jsonl")[0] == 4
    Path("empty").mkdir()
    assert realmctl("score", "empty", "r.jsonl")[0] == 3


def test_predictions_from_standard_input(realmctl, monkeypatch):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(PREDICTIONS.encode())))
    assert realmctl("score", "-", "r.jsonl", "-q")[:2] == realmctl("score", "p.jsonl", "r.jsonl")[:2]


def test_bad_input_exits_3_and_a_bad_choice_2(realmctl):
    Path("bad.jsonl").write_text(PREDICTIONS + '{"question": "who"}\n')
    code, out, err = realmctl("score", "bad.jsonl", "r.jsonl")
    assert (code, out) == (3, "") and "bad.jsonl:2: " in err and err.count("\n") == 1
    assert realmctl("score", "none", "r.jsonl")[0] == realmctl("score", "p.jsonl", "none")[0] == 3
    assert realmctl("score", "p.jsonl", "r.jsonl", "--scorer", "regex-match")[0] == 2
    assert realmctl("score", "p.jsonl", "r.jsonl", "--scorer", "f1")[0] == 2


def test_regex_answers_and_another_field(realmctl):
    Path("r.jsonl").write_text('{"question": "where", "answer": ["x"], "more": ["C.fe"]}\n')
    options = ("--regex-answers", "--answer-field", "more", "--json")
    assert json.loads(realmctl("score", "p.jsonl", "r.jsonl", *options)[1])["em_regex-match"] == 1


def test_neither_torch_nor_an_artifact_is_needed(tmp_path):
    code = (
        "import sys; from realmctl.cli import app\n"
        "try: app.main(['score', 'p.jsonl', 'r.jsonl'])\n"
        "finally: print('HEAVY', *sorted({'torch', 'transformers', 'spacy', 'tokenizers'} & set(sys.modules)))"
    )
    root = Path(app.__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(root)}, cwd=tmp_path
    )
    assert run.stdout.startswith("2 questions") and run.stdout.endswith("HEAVY\n"), run.stderr

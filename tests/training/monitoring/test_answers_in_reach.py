"""The warning about answers that no retrieved block holds: from series, and in a run on questions of another corpus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from realmctl.training.monitoring.answers_in_reach import AnswersInReach
from realmctl.training.settings.finetune import FinetuneSettings
from tests.fixtures.chain import finetune


def warned(capsys, beam, reader, batch_size=8, steps=100):
    """The step after which the warning came, and its text."""
    settings = FinetuneSettings(
        blocks=Path("blocks"), questions=Path("q"), batch_size=batch_size, steps=steps, retriever_beam=50, reader_beam=5
    )
    watch = AnswersInReach(settings, SimpleNamespace(learnt=dict))
    found = {}
    for step in range(1, steps + 1):
        watch.after_step({"step": step, "answer_in_beam": beam, "answer_in_reader": reader})
        if said := capsys.readouterr().err:
            found[step] = said
    return found


def test_it_warns_once_after_64_questions(capsys):
    [(step, said)] = warned(capsys, 0.01, 0.0).items()
    assert step == 8 and "1.0% of the first 64 questions have an answer in the 50 blocks that are retrieved" in said
    [(step, said)] = warned(capsys, 0.5, 0.0, batch_size=10).items()
    assert step == 7 and "0.0% of the first 70 questions have an answer in the 5 blocks that are read" in said
    assert list(warned(capsys, 0.0, 0.0, steps=3)) == [3]
    assert warned(capsys, 0.5, 0.02) == {}


@pytest.mark.parametrize("dev", [False, True])
def test_questions_of_another_corpus(chain, tmp_path, capsys, dev):
    questions = tmp_path / "q.jsonl"
    questions.write_text("".join(json.dumps({"question": f"Who {n}?", "answer": ["Zyx Q"]}) + "\n" for n in range(9)))
    own = {"dev": chain.questions} if dev else {}
    finetune(replace(chain, questions=questions), steps=2, **own).make(tmp_path / "qa")
    assert capsys.readouterr().err.count("so there is almost nothing to learn") == 1
    finetune(chain, steps=2, **own).make(tmp_path / "qa2")
    assert "almost nothing to learn" not in capsys.readouterr().err

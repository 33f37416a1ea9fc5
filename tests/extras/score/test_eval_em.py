"""`score` says of the predictions of `eval-em` what `eval-em` says."""

from __future__ import annotations

import json

from realmctl.extras.score.predictions import score
from realmctl.questions.questions import read_questions
from realmctl.retrieval.answering.qa_model import QaModel
from stages.eval_em import EvalEm


def test_questions_with_one_text_count_by_their_ids_wherever_they_are_scored(qa_model, chain, tmp_path):
    """Two people of one name: the model's answer is right for the first question, and not for the second."""
    asked = read_questions(chain.questions)[0].question
    answer = QaModel.open(qa_model, blocks=chain.blocks).ask(asked).best.text
    records = [{"id": name, "question": asked, "answer": [text]} for name, text in (("a", answer), ("b", "no town"))]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=tmp_path / "q.jsonl").make(tmp_path / "scores")
    scored, _ = score(made.file("predictions.jsonl"), tmp_path / "q.jsonl")
    named = {name for name in scored if name.startswith(("em", "f1", "questions"))}
    assert scored["em"] == 0.5 and {name: scored[name] for name in named} == {
        name: made.metrics[name] for name in named
    }

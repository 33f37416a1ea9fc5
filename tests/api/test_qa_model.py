"""A loaded qa-model: its answers against `ask`'s, whichever blocks it reads."""

from __future__ import annotations

import json

import numpy as np
import pytest

import realmctl
from realmctl.api.qa_model import QuestionAnswers
from realmctl.errors import ConfigError, InputError
from realmctl.retrieval.answering.asking import ask

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(params=["qa_model", "bm25_model"])
def artifact(request):
    return request.getfixturevalue(request.param)


def test_answers_are_those_of_ask(chain, artifact):
    answers = realmctl.load(artifact).answer(QUESTION, top=3)
    told = ask(QUESTION, artifact.path, chain.blocks.path, 3)["answers"]
    assert len(answers) == len(told) == 3 and answers.best is answers[0]
    for answer, expected in zip(answers, told, strict=True):
        assert (answer.text, answer.score) == (expected["answer"], pytest.approx(expected["score"]))
        evidence = answer.evidence
        assert evidence.hit.text[evidence.start : evidence.end] == answer.text
        assert (evidence.start, evidence.end) == (expected["start"], expected["end"])
        assert (evidence.hit.id, evidence.hit.title) == (expected["block"], expected["title"])
        assert evidence.hit.probability == pytest.approx(expected["probability_of_block"])


def test_a_batch_answers_each_question_in_order(chain, artifact):
    qa = realmctl.load(artifact, precision="fp32")
    questions = [json.loads(line)["question"] for line in chain.questions.read_text().splitlines()]
    batch = qa.answer_batch(questions, top=2)
    assert len(questions) > 16 and [answers.question for answers in batch] == questions
    for question, answers in zip(questions, batch, strict=True):
        alone = qa.answer(question, top=2)
        assert [answer.score for answer in answers] == pytest.approx([answer.score for answer in alone], abs=1e-3)
        assert answers.best.text == alone.best.text
    assert qa.answer_batch([]) == []


def test_search_of_a_qa_model(artifact):
    qa = realmctl.load(artifact)
    scores, rows = qa.search_batch([QUESTION], k=3)
    hits = qa.search(QUESTION, k=3)
    assert [hit.row for hit in hits] == rows[0].tolist() and np.all(np.diff(scores[0]) <= 0)
    assert sum(hit.probability for hit in hits) == pytest.approx(1)


def test_a_closed_book_model_answers_without_evidence(chain, closed_book_model):
    qa = realmctl.load(closed_book_model)
    answers = qa.answer(QUESTION, top=2)
    told = ask(QUESTION, closed_book_model.path, chain.blocks.path, 2)["answers"]
    assert [answer.text for answer in answers] == [found["answer"] for found in told]
    assert all(answer.evidence is None for answer in answers) and len(qa.blocks) == 40
    with pytest.raises(ConfigError, match="retrieves no blocks"):
        qa.search(QUESTION)
    with pytest.raises(ConfigError, match="retrieves no blocks"):
        qa.search_batch([QUESTION])


@pytest.mark.parametrize(("question", "top"), [("", 3), (" ", 3), ("Who?", 0)])
def test_what_answer_refuses(qa_model, question, top):
    with pytest.raises(ConfigError):
        realmctl.load(qa_model).answer(question, top)


def test_no_answer_has_no_best():
    answers = QuestionAnswers("Who?", ())
    assert not answers and list(answers) == []
    with pytest.raises(InputError, match=r"no answer to 'Who\?'"):
        answers.best  # noqa: B018

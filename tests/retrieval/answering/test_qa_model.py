"""A loaded qa-model answers whichever blocks it reads, and says what it is in qa-model.json."""

from __future__ import annotations

import json

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import Origin, writing
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.retrieval.answering.qa_model import AnsweredQuestion
from tests.fixtures.chain import baseline

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(scope="session")
def bm25_model(chain):
    return baseline(chain, "bm25").make(chain.folder / "bm25-model")


@pytest.fixture(params=["qa_model", "bm25_model"])
def artifact(request):
    return request.getfixturevalue(request.param)


def test_an_answer_is_the_text_at_its_place(artifact):
    qa = realmctl.load_qa_model(artifact)
    found = qa.ask(QUESTION, top=3)
    assert len(found.answers) == 3 and found.best is found.answers[0] and len(found.hits) == qa.answerer.reader_beam
    for answer in found.answers:
        assert answer.hit in found.hits and answer.hit.block.text[answer.start : answer.end] == answer.text


def test_a_batch_answers_each_question_in_order(chain, artifact):
    qa = realmctl.load_qa_model(artifact, precision="fp32")
    questions = [json.loads(line)["question"] for line in chain.questions.read_text().splitlines()]
    batch = qa.answer(questions, top=2)
    assert len(questions) > 16 and [answered.question for answered in batch] == questions
    for question, answered in zip(questions, batch, strict=True):
        alone = qa.ask(question, top=2)
        assert [answer.score for answer in answered.answers] == pytest.approx(
            [answer.score for answer in alone.answers], abs=1e-3
        )
        assert answered.best.text == alone.best.text
    assert qa.answer([]) == []


def test_search_of_a_qa_model(artifact):
    qa = realmctl.load_qa_model(artifact)
    scores, rows = qa.search_batch([QUESTION], k=3)
    hits = qa.search(QUESTION, k=3)
    assert [hit.row for hit in hits] == rows[0].tolist() and np.all(np.diff(scores[0]) <= 0)
    assert sum(hit.probability for hit in hits) == pytest.approx(1)


def test_a_closed_book_model_answers_without_evidence(chain):
    made = baseline(chain, "none").make(chain.folder / "closed-book-model")
    qa = realmctl.load_qa_model(made)
    found = qa.ask(QUESTION, top=2)
    assert len(found.answers) == 2 and all(answer.hit is None for answer in found.answers) and not found.hits
    assert len(qa.blocks) == 40
    with pytest.raises(ConfigError, match="--retrieval none"):
        qa.search(QUESTION)
    with pytest.raises(ConfigError, match="--retrieval none"):
        qa.search_batch([QUESTION])


@pytest.mark.parametrize(("question", "top"), [("", 3), (" ", 3), ("Who?", 0)])
def test_what_ask_refuses(qa_model, question, top):
    with pytest.raises(ConfigError):
        realmctl.load_qa_model(qa_model).ask(question, top)


def test_no_answer_has_no_best():
    with pytest.raises(InputError, match=r"Who\?"):
        AnsweredQuestion("Who?", ()).best  # noqa: B018


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"searcher": "grep"}, ConfigError, "'grep'.*dense, bm25"),
        ({"answerer": "oracle"}, ConfigError, "'oracle'.*extractive, closed-book"),
        ({"searcher": None}, InputError, "searcher"),
        ({"span_width": "4"}, InputError, "span_width"),
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(chain, qa_model, tmp_path, change, error, named):
    made = qa_model.manifest
    origin = Origin(made.kind, made.stage, 2, made.settings, made.inputs, made.lineage)
    with writing(tmp_path / "changed", origin) as out:
        described = json.loads(qa_model.file("qa-model.json").read_text())
        out.file("qa-model.json").write_text(json.dumps({**described, **change}))
        for name in made.parts:
            out.adopt(name, qa_model.part(name))
    with pytest.raises(error, match=named):
        realmctl.load_qa_model(tmp_path / "changed", blocks=chain.blocks)


def test_artifacts_of_other_kinds_are_refused(chain, qa_model):
    with pytest.raises(MismatchError, match="qa-model"):
        realmctl.load_qa_model(chain.index, blocks=chain.blocks)
    with pytest.raises(MismatchError, match="blocks"):
        realmctl.load_qa_model(qa_model, blocks=chain.spans)

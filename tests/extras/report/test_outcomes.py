"""Where questions fail: against the scores' own numbers, and step by step by hand."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts.records import Records
from realmctl.errors import InputError
from realmctl.extras.report.funnel import funnel_of, retrieval_depths
from realmctl.extras.report.outcomes import QuestionOutcome, RetrievalDepths, read_outcomes
from realmctl.questions.answers import exact_match, has_answer
from realmctl.questions.questions import Question
from stages.eval_em import EvalEm
from stages.finetune import Finetune
from tests.extras.report.conftest import WrittenScores


def passed(funnel):
    return {step.label: step.passed for step in funnel.steps}


def outcome(rank=None, in_corpus=True, right=False, retrieved=100, read=5):
    return QuestionOutcome(Question("", "?", ("x",)), "y", retrieved, rank, in_corpus, read, 1, False, right)


@pytest.mark.parametrize(
    ("one", "failure"),
    [
        (outcome(in_corpus=False), "corpus"),
        (outcome(), "far"),
        (outcome(in_corpus=None), "far"),
        (outcome(rank=101, retrieved=200), "far"),
        (outcome(rank=100), "near"),
        (outcome(rank=6), "near"),
        (outcome(rank=5), "read"),
        (outcome(rank=5, right=True), "right"),
        (outcome(right=True), "right"),
        (outcome(rank=5, right=None), "found"),
    ],
)
def test_the_first_failure(one, failure):
    assert RetrievalDepths(100, 5).label(one) == failure


def test_depths_are_what_was_retrieved_and_read():
    assert retrieval_depths([outcome(retrieved=300)]) == RetrievalDepths(100, 5)
    assert retrieval_depths([outcome(retrieved=12, read=3), outcome(retrieved=12, read=2)]) == RetrievalDepths(12, 3)
    assert retrieval_depths([outcome(read=None)]) == RetrievalDepths(100, 5)
    assert retrieval_depths([outcome(retrieved=2, read=None)]) == RetrievalDepths(2, 2)
    assert retrieval_depths([outcome(retrieved=0, read=None)]) == RetrievalDepths(0, 0)


def test_the_funnel_agrees_with_the_scores_and_the_blocks(scores, chain):
    funnel, total = funnel_of(read_outcomes(scores, chain.blocks)), 21
    texts = [record["text"] for record in Records(chain.blocks.file("blocks.jsonl.zst"))]
    entries = json.loads(scores.file("retrieved.json").read_text())
    predictions = [json.loads(line)["prediction"] for line in scores.file("predictions.jsonl").read_text().splitlines()]
    in_corpus = [any(has_answer(text, entry["answers"], "tokens") for text in texts) for entry in entries]
    found = [[context["has_answer"] for context in entry["ctxs"]] for entry in entries]
    right = [exact_match(text, entry["answers"]) for text, entry in zip(predictions, entries, strict=True)]
    assert not all(in_corpus) and sum(in_corpus) == 20
    steps = passed(funnel)
    assert steps["answer in the corpus"] == 20
    assert steps["in the top 12"] == sum(map(any, found))
    assert steps["in the top 3"] == sum(any(best[:3]) for best in found)
    assert steps["exact match"] == sum(right) == round(scores.metrics["em"] * total)
    chosen = [json.loads(line)["rank"] for line in scores.file("evidence.jsonl").read_text().splitlines()]
    assert steps["read from a block that holds an answer"] == sum(
        best[rank - 1] for best, rank in zip(found, chosen, strict=True)
    )
    assert funnel.counts["corpus"] == 1 and sum(funnel.counts.values()) == total
    assert sum(step.lost for step in funnel.steps) == total - sum(right)


def test_without_blocks_the_corpus_is_not_guessed(scores, chain):
    known, unknown = (funnel_of(read_outcomes(scores, blocks)) for blocks in (chain.blocks, None))
    assert passed(unknown) == {**passed(known), "answer in the corpus": None}
    assert "corpus" not in unknown.counts and unknown.counts["far"] == known.counts.get("far", 0) + 1
    assert any("--blocks" in note for note in unknown.notes) and not any("--blocks" in note for note in known.notes)


def test_a_retriever_alone(chain, tmp_path):
    made = EvalEm(
        retriever=chain.retriever, index=chain.index, blocks=chain.blocks, questions=chain.questions, hits=8
    ).make(tmp_path)
    funnel = funnel_of(read_outcomes(made, chain.blocks))
    steps = passed(funnel)
    assert list(steps) == ["answer in the corpus", "in the top 8", "in the top 5"]
    assert steps["in the top 5"] == round(made.metrics["recall@5"] * 20) == funnel.counts.get("found", 0)


def written(tmp_path, numbers, **files):
    texts = {
        f"{name}.jsonl" if name != "retrieved" else "retrieved.json": "\n".join(map(json.dumps, lines)) + "\n"
        for name, lines in files.items()
    }
    return WrittenScores(files=json.dumps(texts), numbers=json.dumps(numbers)).make(tmp_path / "scores")


def test_closed_book_scores(tmp_path):
    """Nothing retrieved: right or wrong is all there is."""
    predictions = [{"question": "Who?", "prediction": "The Ada"}, {"question": "Where?", "prediction": "Rome"}]
    scores = written(
        tmp_path,
        {"scorer": "orqa", "em": 0.5},
        predictions=predictions,
        evidence=[{"answers": ["ada"], "read": 0}, {"answers": ["Paris"], "read": 0}],
    )
    funnel = funnel_of(read_outcomes(scores, None))
    assert passed(funnel) == {"exact match": 1} and funnel.counts == {"right": 1, "wrong": 1}
    assert any("Nothing was retrieved" in note for note in funnel.notes)
    assert funnel_of(read_outcomes(written(tmp_path, {"scorer": "orqa"}, predictions=predictions), None)).questions == 0


@pytest.mark.parametrize("retrieval", ["bm25", "none"])
def test_baselines(chain, tmp_path, retrieval):
    """The files of a baseline are those of any other; one without documents has right and wrong alone."""
    parts = {"encoder": chain.encoder, "blocks": chain.blocks, "questions": chain.questions}
    tuned = Finetune(
        **parts, retrieval=retrieval, steps=2, batch_size=4, retriever_beam=10, reader_beam=3, reader_length=40
    )
    made = EvalEm(
        qa_model=tuned.make(tmp_path / "qa-model"), blocks=chain.blocks, questions=chain.questions, hits=8
    ).make(tmp_path / "scores")
    funnel = funnel_of(read_outcomes(made, chain.blocks))
    assert funnel.questions == sum(funnel.counts.values()) == 20
    assert passed(funnel)["exact match"] == round(made.metrics["em"] * 20)
    if retrieval == "none":
        assert list(passed(funnel)) == ["exact match"]
    else:
        assert (
            passed(funnel)["in the top 8"] >= round(made.metrics["recall@5"] * 20) > 0 == funnel.counts.get("corpus", 0)
        )


def test_scores_of_before_evidence_was_written(tmp_path):
    context = {"id": "1", "title": "t", "text": "Ada", "score": 1.0, "has_answer": True, "has_answer_substring": True}
    entries = [{"question": "Who?", "answers": ["Ada"], "ctxs": [context] * 7}]
    scores = written(
        tmp_path, {"scorer": "dpr"}, retrieved=entries, predictions=[{"question": "Who?", "prediction": "Ben"}]
    )
    funnel = funnel_of(read_outcomes(scores, None))
    assert list(passed(funnel)) == ["answer in the corpus", "in the top 7", "in the top 5", "exact match"]
    assert passed(funnel)["answer in the corpus"] == 1 and funnel.counts == {"read": 1}
    assert any("do not record which block was read" in note for note in funnel.notes)


def test_damaged_scores_are_named(tmp_path):
    scores = written(tmp_path, {}, retrieved=["not an entry"])
    with pytest.raises(InputError, match=r"retrieved\.json:1"):
        read_outcomes(scores, None)
    other = written(
        tmp_path,
        {"scorer": "orqa"},
        retrieved=[{"question": "Who?", "answers": ["Ada"], "ctxs": []}],
        predictions=[{"question": "Where?", "prediction": "Rome"}],
    )
    with pytest.raises(InputError, match=r"'Where\?'"):
        read_outcomes(other, None)

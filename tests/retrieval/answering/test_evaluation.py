"""Scores, and the files that others read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from realmctl.errors import ConfigError
from realmctl.questions.answers import exact_match, has_answer
from realmctl.questions.questions import read_questions
from realmctl.retrieval.answering import extractive
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.search.dense import DenseSearcher
from stages.eval_em import EvalEm


@pytest.fixture(scope="module")
def scores(qa_model, chain):
    return EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions, hits=20, batch_size=3).make(
        chain.folder / "scores"
    )


def retrieved(scores):
    return json.loads(scores.file("retrieved.json").read_text())


def test_recall_is_that_of_the_retrieved_blocks(scores, qa_model, chain):
    answerer = QaModel.open(qa_model, blocks=chain.blocks).answerer.searcher
    questions = read_questions(chain.questions)
    hits = answerer.search(answerer.tokens([question.question for question in questions]), 20)
    for depth in (1, 5, 20):
        for name, how in (("recall", "tokens"), ("substring_recall", "substring")):
            found = [
                any(has_answer(answerer.corpus.block(hit.row).text, question.answers, how) for hit in best[:depth])
                for question, best in zip(questions, hits, strict=True)
            ]
            assert scores.metrics[f"{name}@{depth}"] == pytest.approx(sum(found) / 20)
    assert "recall@100" not in scores.metrics  # only 20 were retrieved


def test_retrieved_evidence_is_dprs_json(scores, chain):
    entries = retrieved(scores)
    assert [entry["question"] for entry in entries] == [
        question.question for question in read_questions(chain.questions)
    ]
    for entry in entries:
        assert set(entry) == {"question", "answers", "ctxs"} and len(entry["ctxs"]) == 20
        assert [ctx["score"] for ctx in entry["ctxs"]] == sorted((ctx["score"] for ctx in entry["ctxs"]), reverse=True)
        for ctx in entry["ctxs"]:
            assert set(ctx) == {"id", "title", "text", "score", "has_answer", "has_answer_substring"}
            assert ctx["has_answer"] == has_answer(ctx["text"], entry["answers"], "tokens")


def test_predictions_are_what_orqas_evaluator_reads(scores, chain):
    questions = {question.question: question for question in read_questions(chain.questions)}
    lines = [json.loads(line) for line in scores.file("predictions.jsonl").read_text().splitlines()]
    assert len(lines) == 20 and all({"question", "prediction"} <= {*line} for line in lines)
    for scorer in ("orqa", "squad", "dpr"):
        right = [exact_match(line["prediction"], questions[line["question"]].answers, scorer) for line in lines]
        assert scores.metrics[f"em_{scorer}"] == pytest.approx(sum(right) / 20)
    assert scores.metrics["em"] == scores.metrics["em_orqa"] and scores.metrics["scorer"] == "orqa"
    assert json.loads(scores.file("scores.json").read_text()) == scores.metrics


def test_evidence_says_what_the_prediction_is_cut_from(scores):
    lines = [
        [json.loads(line) for line in scores.file(f"{name}.jsonl").read_text().splitlines()]
        for name in ("predictions", "evidence")
    ]
    assert [len(each) for each in lines] == [20, 20]
    for predicted, evidence, entry in zip(*lines, retrieved(scores), strict=True):
        assert evidence["answers"] == entry["answers"] and 1 <= evidence["rank"] <= evidence["read"] == 3
        text = entry["ctxs"][evidence["rank"] - 1]["text"]
        assert text[evidence["start"] : evidence["end"]] == predicted["prediction"]


def test_disagreements_are_listed(qa_model, chain, tmp_path, monkeypatch):
    """With accents composed in the answers and decomposed in the predictions only ORQA's scorer, by NFD, says yes."""
    path = tmp_path / "questions.jsonl"
    lines = [{"question": "Where?", "answer": ["Caf\u00e9", "Inn"]}, {"question": "Who?", "answer": ["Ada"]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    answer = ExtractiveAnswerer.answer

    def decomposed(self, *arguments):
        return [[replace(best, text="Cafe\u0301") for best in each] for each in answer(self, *arguments)]

    monkeypatch.setattr(ExtractiveAnswerer, "answer", decomposed)
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=path, hits=5).make(tmp_path / "scores")
    assert (made.metrics["em_orqa"], made.metrics["em_squad"]) == (0.5, 0)
    assert [json.loads(line) for line in made.file("disagreements.jsonl").read_text().splitlines()] == [
        {
            "question": "Where?",
            "prediction": "Cafe\u0301",
            "answers": ["Caf\u00e9", "Inn"],
            "verdicts": {"orqa": "match", "squad": "no match", "dpr": "no match"},
        }
    ]


def test_questions_with_one_text_count_by_their_ids(qa_model, chain, tmp_path):
    """Two people of one name: the model's answer is right for the first question, and not for the second."""
    asked = read_questions(chain.questions)[0].question
    answer = QaModel.open(qa_model, blocks=chain.blocks).ask(asked).best.text
    records = [{"id": name, "question": asked, "answer": [text]} for name, text in (("a", answer), ("b", "no town"))]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=tmp_path / "q.jsonl").make(tmp_path / "scores")
    assert made.metrics["em"] == 0.5 and made.metrics["questions"] == 2


def test_the_batch_size_changes_nothing(scores, qa_model, chain, tmp_path):
    again = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions, hits=20, batch_size=20).make(
        tmp_path
    )
    assert again.recipe == scores.recipe
    assert again.metrics == scores.metrics
    assert [[ctx["id"] for ctx in entry["ctxs"]] for entry in retrieved(again)] == [
        [ctx["id"] for ctx in entry["ctxs"]] for entry in retrieved(scores)
    ]


def test_a_retriever_alone(chain, tmp_path):
    made = EvalEm(
        retriever=chain.retriever, index=chain.index, blocks=chain.blocks, questions=chain.questions, hits=5
    ).make(tmp_path)
    assert made.metrics["questions"] == 20 and "em" not in made.metrics
    assert {"recall@1", "recall@5"} <= set(made.metrics)
    assert not any(made.has(f"{name}.jsonl") for name in ("predictions", "evidence", "disagreements"))


def test_regular_expressions(qa_model, chain, tmp_path):
    path = tmp_path / "trec.jsonl"
    lines = [
        {"question": "Where?", "answer": ["Vel.ord", "("]},
        {"question": "Who?", "answer": ["."]},
        {"question": "Why?", "answer": ["(a+)+$"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    values = {"qa_model": qa_model, "blocks": chain.blocks, "questions": path, "hits": 5}
    made = EvalEm(**values, regex_answers=True).make(tmp_path / "scores")
    assert made.metrics["scorer"] == "regex-match" and {"em_regex-match", "em_regex-search"} <= set(made.metrics)
    assert made.metrics["em"] >= 1 / 3 - 1e-6 and made.metrics["recall@5"] >= 1 / 3 - 1e-6
    assert not any("substring" in name or "orqa" in name for name in made.metrics)
    with pytest.raises(ConfigError, match="--scorer squad"):
        EvalEm(**values, regex_answers=True, scorer="squad").make(tmp_path / "bad")
    with pytest.raises(ConfigError, match="--scorer regex-match"):
        EvalEm(**{**values, "questions": chain.questions}, scorer="regex-match").make(tmp_path / "bad")
    assert not list(tmp_path.glob("bad/v*"))


def test_a_chosen_scorer_is_the_headline(qa_model, chain, tmp_path):
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions, scorer="dpr", hits=5).make(
        tmp_path
    )
    assert made.metrics["scorer"] == "dpr" and made.metrics["em"] == made.metrics["em_dpr"]


def test_a_record_is_read_once(scores, qa_model, chain, monkeypatch):
    """A record costs a frame of a thousand; a hundred hits a question would make an evaluation take days."""
    from realmctl.artifacts.records import Records

    read = []
    plain = Records.__getitem__
    monkeypatch.setattr(Records, "__getitem__", lambda records, row: read.append(row) or plain(records, row))
    searcher = DenseSearcher(chain.retriever, chain.index, chain.blocks, "cpu", "fp32")
    for rows in ([5, 3, 9], [9, 3], [3]):
        searcher.corpus.blocks(rows)
    assert read == [3, 5, 9]


def test_the_official_text_of_an_answer_is_what_is_scored(scores, qa_model, chain, tmp_path, monkeypatch):
    def text_of(text, start, end, pieces, wordpiece):
        assert wordpiece.ids(text[start:end]).tolist() == [wordpiece.vocabulary[piece] for piece in pieces]
        return f"<{text[start:end]}>"

    monkeypatch.setattr(extractive, "official_answer_text", text_of)
    values = {"qa_model": qa_model, "blocks": chain.blocks, "questions": chain.questions, "hits": 20}
    made = EvalEm(**values, official="answer-text").make(tmp_path / "scores")
    cut, official = ([line["prediction"] for line in lines_of(one)] for one in (scores, made))
    assert official == [f"<{text}>" for text in cut]


def lines_of(scores):
    return [json.loads(line) for line in scores.file("predictions.jsonl").read_text().splitlines()]


def test_provenance_recall_counts_blocks_of_the_named_documents(qa_model, chain, tmp_path, capsys):
    """The oracle: the document of the best block is named for every second question, and no document for the others."""
    searcher = QaModel.open(qa_model, blocks=chain.blocks).answerer.searcher
    questions = [question.question for question in read_questions(chain.questions)]
    best = [searcher.corpus.block(hits[0].row).document for hits in searcher.search(searcher.tokens(questions), 1)]
    records = [
        {"input": text, "output": [{"answer": "x", "provenance": [{"wikipedia_id": page if n % 2 else "none"}]}]}
        for n, (text, page) in enumerate(zip(questions, best, strict=True))
    ]
    (tmp_path / "kilt.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=tmp_path / "kilt.jsonl", hits=1).make(
        tmp_path / "scores"
    )
    assert made.metrics["provenance_recall@1"] == 0.5
    known = len({page for n, page in enumerate(best) if n % 2})
    assert f"1 of {known + 1} documents that the questions name are not in" in capsys.readouterr().err


def test_each_share_is_of_the_questions_that_ask_for_it(qa_model, chain, tmp_path, capsys):
    """Half of the questions name a document, and half of the answers are regular expressions, of which no text is looked for."""
    searcher = QaModel.open(qa_model, blocks=chain.blocks).answerer.searcher
    questions = [question.question for question in read_questions(chain.questions)]
    best = [searcher.corpus.block(hits[0].row) for hits in searcher.search(searcher.tokens(questions), 1)]

    def measured(name: str, named: bool) -> dict:
        records = [
            {"question": text, "answer": block.title, "is_regex": n % 2 == 1}
            if n % 4
            else {
                "input": text,
                "output": [{"answer": block.title, "provenance": [{"wikipedia_id": block.document if named else "x"}]}],
            }
            for n, (text, block) in enumerate(zip(questions, best, strict=True))
        ]
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
        made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=tmp_path / name, hits=1).make(
            tmp_path / "scores"
        )
        return made.metrics

    found = measured("named", True)
    assert found["provenance_recall@1"] == 1.0
    plain = [block.title in block.text for n, block in enumerate(best) if n % 2 == 0]
    assert found["substring_recall@1"] == round(sum(plain) / len(plain), 6)
    assert "ids" not in capsys.readouterr().err
    assert measured("unnamed", False)["provenance_recall@1"] == 0
    assert "'x'" in capsys.readouterr().err

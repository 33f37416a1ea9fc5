"""No known positive of a question is its negative: other lines of its text or id, copies, and twins of a mined question."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import torch

from realmctl.artifacts import tokenizer_folder
from realmctl.corpus.document import Document
from realmctl.extras.ir.labelled import LabelledQuestion, read_labelled
from realmctl.extras.ir.rank import Rank
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.lab.dpr.objective import LabelledObjective, usable_questions
from realmctl.lab.dpr.settings import DprSettings
from realmctl.models.inputs import Collator
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.blocks import make_blocks
from tests.fixtures.retriever import fresh_retriever


def of(question: str, *positives: str, negatives=(), id="") -> LabelledQuestion:
    good, bad = (
        tuple(Document("", title, text) for title, text in some)
        for some in ([("", text) for text in positives], negatives)
    )
    return LabelledQuestion(question, good, bad, id)


def objective_of(chain, questions, hard_negatives=0):
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    usable = usable_questions(questions, words, hard_negatives, Counter())
    settings = DprSettings(passages=Path("passages.json"), hard_negatives=hard_negatives, batch_size=len(usable))
    return LabelledObjective(fresh_retriever(chain.blocks, dropout=0.0).train(), Collator.of(words), usable, settings)


def test_two_lines_with_one_anchor_have_no_loss(chain):
    """Alone in the batch, each finds its own passage among no others: ln 1 = 0. As negatives of each other they would stay at about ln 2."""
    twins = [of("Where is Velford?", "It is here."), of("where is  velford?", "It is there.")]
    [part] = (objective := objective_of(chain, twins)).draw(0)
    assert float(objective.loss(part)[0].detach()) == pytest.approx(0, abs=1e-6)
    by_id = [of("Where is Velford?", "It is here.", id="q"), of("In which land is Velford?", "It is there.", id="q")]
    [part] = (objective := objective_of(chain, by_id)).draw(0)
    assert float(objective.loss(part)[0].detach()) == pytest.approx(0, abs=1e-6)


def test_the_loss_is_a_softmax_over_what_is_no_answer(chain):
    questions = [
        of("Where is Velford?", "It is here.", "It is there."),
        of("Where is Velford?", "It is yonder."),
        of("Who is Ada?", "Ada was born here."),
        of("Who is Ben?", "It is there."),
    ]
    objective = objective_of(chain, questions)
    [part] = objective.draw(0)
    numbers = objective.order.batch(0).tolist()
    with torch.no_grad():
        score_BC = objective.retriever.embed_queries(part.queries) @ objective.retriever.embed_blocks(part.blocks).T
        loss = float(objective.loss(part)[0])
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    drawn = [words.tokenizer.decode(example.blocks[0][1].tolist()) for example in part.examples]
    answers = {0: {"it is here.", "it is there.", "it is yonder."}, 2: {"ada was born here."}, 3: {"it is there."}}
    answers[1] = answers[0]
    expected = 0.0
    for row, number in enumerate(numbers):
        others = [at for at, text in enumerate(drawn) if at == row or text not in answers[number]]
        expected += float(torch.logsumexp(score_BC[row, others], 0) - score_BC[row, row])
    assert len(drawn) == 4 and loss == pytest.approx(expected / 4, rel=1e-5)


def test_hard_negatives_that_another_line_calls_positive_are_left_out(chain):
    questions = [
        of(
            "Where is Velford?", "It is here.", negatives=[("", "It is there."), ("Copy", "It is there."), ("", "Ada.")]
        ),
        of("Where is Velford?", "It is there.", negatives=[("", "It is here.")]),
    ]
    words, dropped = Tokenizer.load(tokenizer_folder(chain.blocks)), Counter()
    [found] = usable_questions(questions, words, 1, dropped)
    assert [words.tokenizer.decode(body.tolist()) for _, body in found.negatives] == ["ada."]
    assert dropped == {"whose hard negatives are all known to answer it": 1}


def test_ids_of_questions_are_read(tmp_path):
    passages = {"positive_passages": [{"docid": "1", "title": "", "text": "a"}], "negative_passages": []}
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps({"query_id": 7, "query": "who?", **passages}) + "\n")
    assert [question.id for question in read_labelled(file)] == ["7"]


def test_twins_and_copies_of_what_was_not_found_are_not_mined(tmp_path):
    bodies = [f"Passage {n} tells of town {n}." for n in range(6)]
    blocks = make_blocks(tmp_path / "blocks", {"T": [[body] for body in [*bodies, bodies[0]]]})
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels"
    queries.write_text(
        "".join(
            json.dumps({"id": name, "question": text}) + "\n"
            for name, text in (("q", "town 0 passage"), ("r", "Town 0  passage"))
        )
    )
    qrels.write_text("q 0 0-0 1\nr 0 0-3 1\n")
    ranking = Rank(queries=queries, blocks=blocks, method="bm25", top=7).make(tmp_path / "ranking")
    run = ranking.file("run.trec").read_text()
    mined = MineNegatives(ranking=ranking, blocks=blocks, qrels=qrels, negatives=7).make(tmp_path / "mined")
    for record in map(json.loads, mined.file("train.jsonl").read_text().splitlines()):
        assert not {bodies[0], bodies[3]} & {passage["text"] for passage in record["negative_passages"]}
    assert "q Q0 0-6 " in run and "q Q0 0-3 " in run, "they were found, and could have been mined"

"""DPR's contrast: the loss against plain tensors, what is drawn, and the stage on questions that can be learnt."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from realmctl.artifacts import tokenizer_folder
from realmctl.corpus.document import Document
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.ir.labelled import LabelledQuestion
from realmctl.lab.dpr.dpr_finetune import DprFinetune
from realmctl.lab.dpr.objective import LabelledObjective, usable_questions
from realmctl.lab.dpr.settings import DprSettings
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import TOWNS, metrics_of
from tests.fixtures.retriever import fresh_retriever, make_retriever

QUESTIONS = [
    LabelledQuestion(
        f"Where is {town}?",
        (Document("", town, f"{town} is here."), Document("", town, f"{town} is there.")),
        tuple(Document("", other, f"{other} is not {town}.") for other in TOWNS if other != town),
    )
    for town in TOWNS
]


def objective_of(chain, *, hard_negatives=2, batch_size=5, chunk=0, dropout=0.0, questions=QUESTIONS):
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    usable = usable_questions(questions, words, hard_negatives, Counter())
    settings = DprSettings(
        passages=Path("passages.json"),
        hard_negatives=hard_negatives,
        batch_size=batch_size,
        micro_batch=chunk,
    )
    retriever = fresh_retriever(chain.blocks, dropout=dropout).train()
    return LabelledObjective(retriever, Collator.of(words), usable, settings)


def text_of(chain, ids):
    return Tokenizer.load(tokenizer_folder(chain.blocks)).tokenizer.decode(ids.tolist())


def test_the_loss_is_a_softmax_over_all_passages_of_the_batch(chain):
    objective = objective_of(chain)
    [chunk] = objective.draw(0)
    embed, collator = objective.retriever, objective.collator
    passages = [passage for example in chunk.examples for passage in example.blocks]
    with torch.no_grad():
        loss, sums = objective.loss(chunk)
        passage_CD = torch.stack(
            [embed.embed_blocks(collator.block([t], [b], embed.block_length))[0] for t, b in passages]
        )
        expected, right = 0.0, 0
        for number, example in enumerate(chunk.examples):
            score_C = passage_CD @ embed.embed_queries(collator.query([example.query], embed.query_length))[0]
            expected += float(torch.log(score_C.exp().sum()) - score_C[3 * number])
            right += int(score_C.argmax()) == 3 * number
    assert len(passages) == 15 and loss.item() == pytest.approx(expected / 5, rel=1e-5)
    assert sums["accuracy"] == (pytest.approx(right), 5)


def test_chunks_of_the_gradient_cache_give_the_gradient_of_the_whole_batch(chain):
    whole, cached = objective_of(chain), objective_of(chain, chunk=2)
    for objective in (whole, cached):
        for part in objective.draw(3):
            objective.loss(part)[0].backward()
    for mine, theirs in zip(cached.retriever.parameters(), whole.retriever.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-6, rtol=1e-4)


def test_positives_and_hard_negatives_are_drawn_from_those_of_the_question(chain):
    objective = objective_of(chain, hard_negatives=3)
    drawn = Counter()
    for step in range(40):
        for example in objective.examples(step):
            town = text_of(chain, example.query).removeprefix("where is ").split()[0]
            positive, *negatives = [text_of(chain, body) for _, body in example.blocks]
            assert positive in (f"{town} is here.", f"{town} is there.")
            assert len({*negatives}) == 3 and all(text.endswith(f"is not {town}.") for text in negatives)
            drawn.update([positive, *negatives])
    assert len(drawn) == 7 * 2 + 7 * 6
    few = objective_of(chain, hard_negatives=9)
    assert {len(example.blocks) for example in few.examples(0)} == {10}


def test_a_draw_depends_on_the_step_alone(chain):
    def bodies(objective, step):
        return [[body.tolist() for _, body in example.blocks] for example in objective.examples(step)]

    first, second = objective_of(chain), objective_of(chain)
    second.examples(1)
    assert bodies(first, 7) == bodies(second, 7) != bodies(first, 8)


def test_questions_without_the_passages_they_need_are_counted(chain):
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    questions = [*QUESTIONS, LabelledQuestion("a?", (), ()), LabelledQuestion("b?", (Document("", "", "b"),), ())]
    dropped = Counter()
    assert len(usable_questions(questions, words, 1, dropped)) == 7
    assert dropped == {"without a positive passage": 1, "without a hard negative": 1}
    without = usable_questions(questions, words, 0, Counter())
    assert len(without) == 8 and not any(question.negatives for question in without)
    with pytest.raises(InputError, match="1 question"):
        objective_of(chain, questions=QUESTIONS[:1])


def training_file(path):
    """DPR's layout: the passage of a town names it, and a hard negative names another."""
    records = [
        {
            "question": question.question,
            "positive_ctxs": [{"title": passage.title, "text": passage.text} for passage in question.positives],
            "hard_negative_ctxs": [{"title": passage.title, "text": passage.text} for passage in question.negatives],
        }
        for question in QUESTIONS
    ]
    path.write_text(json.dumps(records))
    return path


def test_the_stage_continues_a_retriever_and_learns(chain, tmp_path):
    start = make_retriever(tmp_path / "start", chain.blocks, dropout=0.0)
    stage = DprFinetune(
        retriever=start,
        passages=training_file(tmp_path / "train.json"),
        hard_negatives=0,
        steps=40,
        batch_size=7,
        lr=1e-2,
        warmup=5,
    )
    made = stage.make(tmp_path / "retriever")
    before, after = Retriever.load(start.path), Retriever.load(made.path)
    assert (after.projection, after.block_length, after.towers) == (before.projection, before.block_length, "shared")
    assert made.metrics["questions"] == 7 and made.has("tokenizer/tokenizer.json")
    lines = metrics_of(made)
    assert np.mean([line["loss"] for line in lines[-8:]]) < 0.85 * np.mean([line["loss"] for line in lines[:8]])


@pytest.mark.parametrize(
    ("name", "value"), [("hard_negatives", -1), ("hard_negatives", 33), ("batch_size", 1), ("steps", 0)]
)
def test_settings_that_cannot_work_are_refused(chain, tmp_path, name, value):
    path = training_file(tmp_path / "train.json")
    with pytest.raises(ConfigError, match="--" + name.replace("_", "-")):
        DprFinetune(retriever=chain.retriever, passages=path, **{name: value}).make(tmp_path / "retriever")


def test_a_retriever_must_be_named_and_have_a_block_tower(chain, tmp_path):
    path = training_file(tmp_path / "train.json")
    with pytest.raises(ConfigError, match="needs --retriever"):
        DprFinetune(passages=path).make(tmp_path / "retriever")
    query_only = make_retriever(tmp_path / "query-only", chain.blocks, towers="query-only")
    with pytest.raises(MismatchError):
        DprFinetune(retriever=query_only, passages=path).make(tmp_path / "retriever")

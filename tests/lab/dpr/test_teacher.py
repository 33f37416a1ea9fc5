"""Learning from a teacher's scores, beside closed forms and sentence-transformers' losses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from realmctl.artifacts import tokenizer_folder
from realmctl.corpus.document import Document
from realmctl.errors import ConfigError, InputError
from realmctl.extras.ir.labelled import LabelledQuestion, read_labelled
from realmctl.extras.ir.ranking.judged import with_texts
from realmctl.lab.dpr.dpr_finetune import DprFinetune
from realmctl.lab.dpr.objective import LabelledObjective, teachers_loss, usable_questions
from realmctl.lab.dpr.settings import DprSettings
from realmctl.models.inputs import Collator
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import TOWNS, metrics_of
from tests.fixtures.retriever import fresh_retriever

RANDOM = np.random.default_rng(0)
QUESTIONS = [
    LabelledQuestion(
        f"Where is {town}?",
        (Document("", town, f"{town} is here."), Document("", town, f"{town} is there.")),
        tuple(Document("", other, f"{other} is not {town}.") for other in TOWNS if other != town),
        scores=tuple(RANDOM.normal(size=2 + len(TOWNS) - 1).tolist()),
    )
    for town in TOWNS
]


def objective_of(chain, loss, micro_batch=0, temperature=1.0):
    words = Tokenizer.load(tokenizer_folder(chain.blocks))
    settings = DprSettings(
        passages=Path("p"),
        loss=loss,
        hard_negatives=3,
        batch_size=5,
        micro_batch=micro_batch,
        teacher_temperature=temperature,
    )
    usable = usable_questions(QUESTIONS, words, 3, Counter(), taught=True)
    return LabelledObjective(fresh_retriever(chain.blocks, dropout=0.0).train(), Collator.of(words), usable, settings)


def test_closed_forms():
    score, teacher = torch.tensor([[3.0, 1.0, 0.0], [0.0, 2.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, -1.0]])
    margins = [(2 - 1) ** 2, (3 - 1) ** 2, (-2 - 1) ** 2, (0 - 2) ** 2]
    assert float(teachers_loss(score, teacher, "margin-mse")) == pytest.approx(sum(margins) / 4)
    expected = 0.0
    for own, told in zip(score.numpy(), teacher.numpy(), strict=True):
        p, q = np.exp(told) / np.exp(told).sum(), np.exp(own) / np.exp(own).sum()
        expected += float((p * np.log(p / q)).sum())
    assert float(teachers_loss(score, teacher, "kl")) == pytest.approx(expected / 2, rel=1e-6)
    assert float(teachers_loss(teacher, teacher, "kl")) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize(("loss", "temperature"), [("margin-mse", 1.0), ("kl", 1.0), ("kl", 0.5)])
def test_losses_are_those_of_sentence_transformers(chain, loss, temperature):
    losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    objective = objective_of(chain, loss, temperature=temperature)
    [part] = objective.draw(0)
    with torch.no_grad():
        query_BD = objective.retriever.embed_queries(part.queries)
        block_BKD = objective.retriever.embed_blocks(part.blocks).view(5, 4, -1)
        ours, _ = objective.loss(part)
    teacher_BK = torch.tensor([example.scores for example in part.examples])
    words, known = Tokenizer.load(tokenizer_folder(chain.blocks)), {}
    for question in QUESTIONS:
        for passage, score in zip((*question.positives, *question.negatives), question.scores, strict=True):
            known[passage.text.lower()] = score
    for example in part.examples:
        assert example.scores == pytest.approx(
            [known[words.tokenizer.decode(body.tolist())] for _, body in example.blocks]
        )
    kind = losses.MarginMSELoss if loss == "margin-mse" else losses.DistillKLDivLoss
    options = {} if loss == "margin-mse" else {"student_temperature": 1.0, "teacher_temperature": temperature}
    theirs = kind(torch.nn.Identity(), **options)
    expected = theirs.compute_loss_from_embeddings([query_BD, *block_BKD.unbind(1)], teacher_BK)
    assert float(ours) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("loss", ["margin-mse", "kl"])
def test_chunks_of_the_gradient_cache_give_the_gradient_of_the_whole_batch(chain, loss):
    whole, cached = objective_of(chain, loss), objective_of(chain, loss, micro_batch=2)
    for objective in (whole, cached):
        for part in objective.draw(3):
            objective.loss(part)[0].backward()
    for mine, theirs in zip(cached.retriever.parameters(), whole.retriever.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-5, rtol=1e-3)


def test_scores_stay_with_their_passages_when_texts_are_missing(tmp_path):
    file, corpus = tmp_path / "t.jsonl", tmp_path / "corpus.jsonl"
    record = {
        "query": "who?",
        "positive_passages": [{"docid": "gone", "score": 9}, {"docid": "a", "score": 3}],
        "negative_passages": [
            {"title": "", "text": " ", "score": 1},
            {"title": "", "text": "b", "score": True},
            {"text": "c", "score": 2},
        ],
    }
    file.write_text(json.dumps(record) + "\n")
    corpus.write_text(json.dumps({"_id": "a", "title": "", "text": "The first."}) + "\n")
    [found] = with_texts(read_labelled(file), (corpus,))
    assert [one.text for one in (*found.positives, *found.negatives)] == ["The first.", "b", "c"]
    assert found.scores == (3.0, None, 2.0)
    file.write_text(
        json.dumps({"query": "who?", "pos": ["a"], "neg": ["b", "c"], "pos_scores": [1.5], "neg_scores": [0.5]}) + "\n"
    )
    assert [question.scores for question in read_labelled(file)] == [(1.5, 0.5, None)]


def test_what_says_nothing_is_refused_and_what_is_missing_is_named(realmctl, chain, tmp_path):
    rows = [
        {
            "query": f"Question {n}?",
            "positive_passages": [{"docid": "a", "text": "One."}],
            "negative_passages": [{"docid": "b", "text": "Two."}],
        }
        for n in range(3)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({**row, "query_id": str(n)}) + "\n" for n, row in enumerate(rows)))
    given = ("dpr-finetune", "--retriever", chain.retriever.path, "--passages", path, "--steps", 1, "--batch-size", 2)
    code, _, err = realmctl(*given, "--teacher-temperature", 0.5)
    assert code == 2 and "--teacher-temperature" in err and "--loss" in err, err
    for loss in ("kl", "margin-mse"):
        code, _, err = realmctl(*given, "--loss", loss)
        assert code == 3 and "0 question(s) can be used" in err and "mine-negatives --cross-encoder" in err, err
        assert "--hard-negatives 0" not in err and "contrast" not in err


def test_a_student_learns_the_teachers_order(chain, tmp_path):
    """Each town has a passage that the teacher likes more than the labelled one; the student comes to like it more too."""
    records = [
        {
            "query": f"Where is {town}?",
            "positive_passages": [{"title": "", "text": f"{town} is near.", "score": 0.0}],
            "negative_passages": [
                {"title": "", "text": f"{town} is far.", "score": 4.0},
                {"title": "", "text": f"{other} is far.", "score": -4.0},
            ],
        }
        for town, other in zip(TOWNS, TOWNS[1:] + TOWNS[:1], strict=True)
    ]
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    given = {
        "retriever": chain.retriever,
        "passages": file,
        "hard_negatives": 2,
        "batch_size": 7,
        "lr": 1e-2,
        "warmup": 2,
    }
    made = DprFinetune(loss="kl", steps=200, **given).make(tmp_path / "retriever")
    losses = [line["loss"] for line in metrics_of(made) if "loss" in line]
    assert (
        sum(losses[-5:]) < 0.7 * sum(losses[:5]) and made.metrics["accuracy"] < 0.2
    )  # of a step alone it is noise, another one on each processor
    with pytest.raises(ConfigError, match="--hard-negatives 0"):
        DprFinetune(loss="kl", **{**given, "hard_negatives": 0}).make(tmp_path / "other")
    file.write_text("".join(json.dumps({**record, "negative_passages": [{"text": "x"}]}) + "\n" for record in records))
    with pytest.raises(InputError, match="0 question"):
        DprFinetune(loss="margin-mse", **given).make(tmp_path / "other")

"""Closed-book fine-tuning against transformers' own model, and that it learns by heart."""

from __future__ import annotations

import json

import pytest
import torch

from realmctl.errors import ConfigError
from realmctl.models.reader import Reader
from realmctl.questions.questions import Question
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.closed_book import ClosedBookObjective
from realmctl.training.settings.finetune import FinetuneSettings
from realmctl.training.starts.encoder import starting_bert
from stages.eval_em import EvalEm
from tests.fixtures.chain import baseline, metrics_of
from tests.fixtures.transformers_bert import as_transformers

QUESTIONS = [
    Question("1", "Where was Ada Lorn born?", ("Velford", "Stonebridge Harrow")),
    Question("2", "Who?", ("Ben",)),
    Question("3", "Which firm did Ben Mott work for?", ("Brightwell", "Corvane Delmont Fenwick")),
]


def objective_of(chain, questions, *, batch_size=3, micro_batch=0, width=6):
    reader = Reader.from_masked_lm(starting_bert(chain.encoder, None, chain.blocks, 0))
    settings = FinetuneSettings(
        blocks=chain.blocks,
        questions=chain.questions,
        batch_size=batch_size,
        micro_batch=micro_batch,
        reader_length=40,
        span_width=width,
    )
    objective = ClosedBookObjective(reader, Tokenizer.load(chain.blocks.path), questions, settings)
    reader.eval()
    return objective


@pytest.mark.parametrize("micro_batch", [0, 1, 2])
def test_the_loss_is_the_mean_likelihood_of_the_drawn_answers(chain, micro_batch):
    objective = objective_of(chain, QUESTIONS, micro_batch=micro_batch)
    words, mlm = Tokenizer.load(chain.blocks.path), as_transformers(objective.reader.mlm)
    for step in range(3):
        parts = objective.draw(step)
        total, seen = 0.0, set()
        for batch, _ in parts:
            for row, ids in enumerate(batch.packed.ids_BL.tolist()):
                answer = batch.target_BM[row][batch.hidden_BM[row]].tolist()
                question = [token for token in ids if token not in (words.cls, words.sep, words.pad, words.mask)]
                whole = [words.cls, *question, *[words.mask] * len(answer), words.sep]
                assert whole == ids[: len(whole)]
                log_prob = mlm(torch.tensor([whole])).logits[0, -1 - len(answer) : -1].log_softmax(-1)
                total -= float(log_prob.gather(1, torch.tensor(answer)[:, None]).detach().mean()) / 3
                seen.add((tuple(question), tuple(answer)))
        possible = {
            (tuple(words.ids(question.question).tolist()), tuple(words.ids(answer).tolist()))
            for question in QUESTIONS
            for answer in question.answers
        }
        assert len(seen) == 3 and seen <= possible
        assert sum(float(objective.loss(part)[0].detach()) for part in parts) == pytest.approx(total, rel=1e-4)


def test_a_step_draws_the_same_again_and_other_answers_in_time(chain):
    objective = objective_of(chain, QUESTIONS[:1], batch_size=1, width=20)
    drawn = [objective.draw(step)[0][0].target_BM.tolist() for step in range(12)]
    assert drawn == [objective.draw(step)[0][0].target_BM.tolist() for step in range(12)]
    assert len({str(targets) for targets in drawn}) == 2


def test_what_cannot_be_learnt_is_left_out(chain, capsys):
    regex = Question("r", "When?", ("19[0-9]+",), is_regex=True)
    long = Question("l", "What?", ("The family was poor and the work began in Ashby",))
    objective = objective_of(chain, [*QUESTIONS, regex, long])
    assert len(objective.answers) == 3 and "2 of 5 questions left out" in capsys.readouterr().err
    with pytest.raises(ConfigError):
        objective_of(chain, [regex, long])


def test_it_learns_by_heart(chain, tmp_path):
    path = tmp_path / "questions.jsonl"
    asked = [{"question": question.question, "answer": [question.answers[0]]} for question in QUESTIONS]
    path.write_text("\n".join(map(json.dumps, asked)))
    settings = {"questions": path, "batch_size": 3, "optimizer": "adamw", "span_width": 6}
    made = baseline(chain, "none", steps=120, **settings).make(tmp_path / "qa")
    lines = metrics_of(made)
    assert lines[-1]["answer_probability"] > 0.9 > 0.1 > lines[0]["answer_probability"]
    scores = EvalEm(qa_model=made, blocks=chain.blocks, questions=path).make(tmp_path / "scores")
    assert scores.metrics["em"] == 1.0

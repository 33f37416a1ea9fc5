"""A run to report on: a model, and scores whose questions fail at every step there is."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import Artifact
from realmctl.pipeline import Stage, reads, setting
from stages.eval_em import EvalEm
from tests.fixtures.chain import Chain, finetune, pretrain


class WrittenScores(Stage):
    """Scores written by hand: {file: text}."""

    makes = "scores"
    blocks: Artifact | None = reads("blocks", help="Blocks.", optional=True, default=None)
    files: str = setting("Files, as JSON.")
    numbers: str = setting("Metrics, as JSON.")

    def run(self, out):
        for name, text in json.loads(self.files).items():
            out.file(name).write_text(text, encoding="utf-8")
        return json.loads(self.numbers)


@pytest.fixture(scope="session")
def model(chain: Chain) -> Artifact:
    """Pre-trained a little, with two refreshes."""
    return pretrain(chain, steps=7).make(chain.folder / "report" / "model")


@pytest.fixture(scope="session")
def scores(chain: Chain, model: Artifact) -> Artifact:
    """The chain's questions, and one whose answer is in no block."""
    questions = chain.folder / "report" / "questions.jsonl"
    nowhere = json.dumps({"question": "Where is it?", "answer": ["Nowhere at all"]})
    questions.write_text(chain.questions.read_text() + nowhere + "\n")
    qa_model = finetune(chain, model, steps=3).make(chain.folder / "report" / "qa-model")
    return EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=questions, hits=12).make(
        chain.folder / "report" / "scores"
    )

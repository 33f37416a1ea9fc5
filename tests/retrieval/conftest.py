"""A model and a qa-model of the small chain, for all tests here."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Artifact
from tests.fixtures.chain import Chain, finetune, pretrain


@pytest.fixture(scope="session")
def model(chain: Chain) -> Artifact:
    """Pre-trained a little."""
    return pretrain(chain, steps=2).make(chain.folder / "model")


@pytest.fixture(scope="session")
def qa_model(chain: Chain, model: Artifact) -> Artifact:
    """Fine-tuned a little."""
    return finetune(chain, model, steps=3, optimizer="adamw").make(chain.folder / "qa-model")

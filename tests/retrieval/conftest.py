"""One small chain, a model and a qa-model of it, for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from realmctl.artifact import Artifact
from tests.fixtures_chain import Chain, finetune, make_chain, pretrain


@pytest.fixture(scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Chain:
    return make_chain(tmp_path_factory.mktemp("chain"))


@pytest.fixture(scope="session")
def model(chain: Chain) -> Artifact:
    """Pre-trained a little."""
    return pretrain(chain, steps=2).make(chain.folder / "model")


@pytest.fixture(scope="session")
def qa_model(chain: Chain, model: Artifact) -> Artifact:
    """Fine-tuned a little."""
    return finetune(chain, model, steps=3, optimizer="adamw").make(chain.folder / "qa-model")

"""One thread, so that runs can be equal bit for bit, and one small chain for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from realmctl.artifact import Origin
from realmctl.index.build import IndexOptions
from realmctl.nn.retriever import Retriever
from realmctl.train.live import Live, Order
from tests.fixtures_chain import Chain, make_chain


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Chain:
    return make_chain(tmp_path_factory.mktemp("chain"))


@pytest.fixture
def live(chain, tmp_path):
    folder = Live(tmp_path / "live")
    folder.place(Order(str(chain.blocks.path), IndexOptions(type="exact").__dict__, "float32", "fp32"))
    return folder


@pytest.fixture
def retriever(chain):
    return Retriever.load(chain.retriever.path)


@pytest.fixture
def shared(chain, live):
    """What every real way is made with: a refresh every second step, nothing held by checkpoints."""
    origin = Origin("retriever", "pretrain", 1, {}, {}, {"blocks": chain.blocks.content})
    return live, origin, chain.blocks.path / "tokenizer", 2, list

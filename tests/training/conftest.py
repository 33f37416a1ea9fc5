"""Fixtures of the training tests: a shared folder, a retriever, and the arguments that every refresh takes."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Origin
from realmctl.index.index_type import IndexOptions
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.pace import EverySteps
from realmctl.training.refresh.refresh_folder import RefreshFolder, RefreshRequest


@pytest.fixture(autouse=True)
def always_one_thread(one_thread: None) -> None:
    """Tests here compare runs bit for bit."""


@pytest.fixture
def live(chain, tmp_path):
    """The folder that trainer and refresher share."""
    folder = RefreshFolder(tmp_path / "live")
    folder.place(RefreshRequest(str(chain.blocks.path), IndexOptions(type="exact").__dict__, "float32", "fp32"))
    return folder


@pytest.fixture
def retriever(chain):
    return Retriever.load(chain.retriever.path)


@pytest.fixture
def shared(chain, live):
    """Arguments of every refresh that uses a folder: a snapshot every second step, no index held by checkpoints."""
    origin = Origin("retriever", "pretrain", 1, {}, {}, {"blocks": chain.blocks.content})
    return live, origin, chain.blocks.path / "tokenizer", EverySteps(2), list

"""One thread, so that runs can be equal bit for bit, and one small chain for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

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

"""Fixtures of the training tests: a retriever, a run's shared folder, and the refresh of its first process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realmctl.artifacts import Writer
from realmctl.models.retriever import Retriever
from realmctl.training.refresh.index_maker import request_of
from realmctl.training.refresh.kinds import LeadingRefresh, refresh_of
from realmctl.training.refresh.protocol import RefreshFolder
from tests.fixtures.chain import pretrain


@pytest.fixture(autouse=True)
def always_one_thread(one_thread: None) -> None:
    """Tests here compare runs bit for bit."""


@pytest.fixture
def retriever(chain):
    return Retriever.load(chain.retriever.path)


@pytest.fixture
def out(chain, tmp_path):
    """The artifact that a run writes."""
    (tmp_path / "run").mkdir()
    return Writer(tmp_path / "run", pretrain(chain).origin())


@pytest.fixture
def live(chain, out):
    """The folder that trainer and refresher of this run share, with a request in it."""
    folder = RefreshFolder(out.scratch("live").resolve())
    folder.place(request_of(pretrain(chain)))
    return folder


@pytest.fixture
def started(chain, out) -> Callable[..., LeadingRefresh]:
    """Starts a trainer of this run: a snapshot every second step, and no refresher, which the test plays itself."""

    def start(kind: str, snapshot_queries: bool = False, **settings: Any) -> LeadingRefresh:
        values = {"refresh": kind, "refresh_every": 2, "refresh_device": "elsewhere", "device": "cpu", **settings}
        found = refresh_of(pretrain(chain, **values), out, snapshot_queries)
        assert isinstance(found, LeadingRefresh)
        return found

    return start

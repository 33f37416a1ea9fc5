"""Models of the small chain, in the workspace in which its blocks lie."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Artifact
from tests.fixtures.chain import Chain, baseline, finetune, pretrain


@pytest.fixture(scope="session")
def model(chain: Chain) -> Artifact:
    """Pre-trained a little."""
    return pretrain(chain, steps=2).make(chain.folder / "api-model")


@pytest.fixture(scope="session")
def qa_model(chain: Chain, model: Artifact) -> Artifact:
    """Fine-tuned a little."""
    return finetune(chain, model, steps=3, optimizer="adamw").make(chain.folder / "api-qa-model")


@pytest.fixture(scope="session")
def bm25_model(chain: Chain) -> Artifact:
    """Fine-tuned on BM25's blocks."""
    pytest.importorskip("bm25s")
    return baseline(chain, "bm25").make(chain.folder / "api-bm25-model")


@pytest.fixture(scope="session")
def closed_book_model(chain: Chain) -> Artifact:
    """Fine-tuned without documents."""
    return baseline(chain, "none").make(chain.folder / "api-closed-book-model")

"""Tiny models and batches that every test of `nn` shares."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertForMaskedLM

from realmctl.models.bert.files import scratch_config
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.tokens.frame import Frame

VOCABULARY = 300


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def collator() -> Collator:
    return Collator(Frame.bert(1, 2), pad_id=0, mask_id=3)


@pytest.fixture
def mlm() -> BertForMaskedLM:
    """Random weights, large enough that every path through the model shows in its output."""
    return BertForMaskedLM(scratch_config("L3-H32-A4", VOCABULARY, dropout=0.0, init_std=0.2)).eval()


@pytest.fixture
def batch(collator: Collator) -> TokenBatch:
    """Rows of very different lengths, the null document among them."""
    generator = np.random.default_rng(0)
    bodies = [generator.integers(5, VOCABULARY, length) for length in (0, 3, 40, 17)]
    return collator.block([[], [7, 8], [9], []], bodies, length=64)

from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from realmctl.models import reader as reader_module
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.reader import Reader
from tests.fixtures.transformers_bert import as_transformers


@pytest.fixture
def joint(collator: Collator) -> TokenBatch:
    """Two queries of different length, three candidates each, the first the null document."""
    queries = [[5, 3, 6, 3], [7, 3]]
    bodies = [[], [9] * 20, [10, 11]]
    return collator.joint([q for q in queries for _ in bodies], bodies * 2, query_length=16, block_length=32)


POSITION = torch.tensor([[2, 4], [2, 0]])
TARGET = torch.tensor([[50, 60], [70, 0]])


def expected(mlm: BertForMaskedLM, joint: TokenBatch) -> torch.Tensor:
    log_prob = as_transformers(mlm)(joint.ids_BL, joint.mask_BL.long(), joint.segments_BL).logits.log_softmax(-1)
    picked = [log_prob[row, POSITION[row // 3], TARGET[row // 3]] for row in range(6)]
    return torch.stack(picked).view(2, 3, 2)


def test_log_prob_is_transformers_log_softmax_at_the_masks(mlm: BertForMaskedLM, joint: TokenBatch) -> None:
    ours = Reader.from_masked_lm(mlm).mlm_log_prob(joint, POSITION, TARGET, 3)
    assert ours.shape == (2, 3, 2)
    assert_close(ours, expected(mlm, joint), atol=1e-5, rtol=1e-5)


def test_in_parts_it_is_the_same_with_the_same_gradient(
    mlm: BertForMaskedLM, joint: TokenBatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for at_once in (1 << 28, 4 * mlm.config.vocab_size):
        monkeypatch.setattr(reader_module, "_LOGITS_AT_ONCE", at_once)
        reader = Reader.from_masked_lm(mlm)
        log_prob = reader.mlm_log_prob(joint, POSITION, TARGET, 3)
        log_prob.sum().backward()
        results.append((log_prob, reader.mlm.bert.embeddings.word_embeddings.weight.grad))
    assert_close(results[0], results[1], atol=1e-5, rtol=1e-4)


def test_logits_agree_with_log_prob(mlm: BertForMaskedLM, joint: TokenBatch) -> None:
    reader = Reader.from_masked_lm(mlm)
    logits = reader.logits(joint, POSITION, 3)
    picked = logits.log_softmax(-1).gather(3, TARGET[:, None, :, None].expand(2, 3, 2, 1))[..., 0]
    assert_close(picked, reader.mlm_log_prob(joint, POSITION, TARGET, 3), atol=1e-5, rtol=1e-5)


def test_save_and_load(mlm: BertForMaskedLM, joint: TokenBatch, tmp_path: Path) -> None:
    reader = Reader.from_masked_lm(mlm).eval()
    reader.save(tmp_path)
    assert torch.equal(
        Reader.load(tmp_path).mlm_log_prob(joint, POSITION, TARGET, 3),
        reader.mlm_log_prob(joint, POSITION, TARGET, 3),
    )

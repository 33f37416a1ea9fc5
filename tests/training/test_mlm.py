"""Masked language modelling: what is hidden is what is asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from realmctl.corpus.corpus import Corpus
from realmctl.models.bert import layers
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.inputs import Collator
from realmctl.spans.query import Query
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.mlm import MlmObjective, PlainBlocks
from realmctl.training.settings.encoder import MlmSettings
from tests.fixtures.chain import Chain
from tests.fixtures.transformers_bert import as_transformers


def restored(query: Query) -> np.ndarray:
    """The sequence with what is hidden put back."""
    tokens = query.tokens.copy()
    tokens[query.places] = query.targets
    return tokens


def test_plain_masking_hides_bert_s_share_and_asks_for_the_original(chain: Chain) -> None:
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    examples = PlainBlocks(corpus, collator, mask_rate=0.15, length=64, ordinary=np.arange(5, 200))
    rng = np.random.default_rng(0)
    masked = kept = asked = total = 0
    for number in list(range(len(corpus))) * 20:
        example = examples.draw(number, rng)
        assert (restored(example) == corpus.tokens(number)[:62]).all()
        shown = example.tokens[example.places]
        masked, kept = masked + (shown == collator.mask_id).sum(), kept + (shown == example.targets).sum()
        asked, total = asked + example.hidden, total + len(example.tokens)
    assert asked / total == pytest.approx(0.15, abs=0.01)
    assert masked / asked == pytest.approx(0.8, abs=0.03)
    assert kept / asked == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_last_layer_computes_few_positions(chain: Chain, monkeypatch: pytest.MonkeyPatch, dropout: float) -> None:
    """The loss is that of transformers' own forward pass, with a configured dropout or without."""
    mlm, _ = load_masked_lm(chain.encoder.path, dropout)
    examples = PlainBlocks(
        Corpus(chain.blocks),
        Collator.of(Tokenizer.load(chain.blocks.path)),
        mask_rate=0.15,
        length=24,
        ordinary=np.arange(5, 200),
    )
    objective = MlmObjective(mlm.eval(), examples, MlmSettings(blocks=chain.blocks, batch_size=8, seed=3))
    ((batch, hidden),) = objective.draw(0)
    computed = []
    last = mlm.bert.encoder.layer[-1].intermediate.dense
    plain = layers.linear
    monkeypatch.setattr(
        layers,
        "linear",
        lambda part, state: (part is last and computed.append(state.flatten(0, -2).shape[0])) or plain(part, state),
    )
    loss, _ = objective.loss((batch, hidden))
    packed = batch.packed
    logits = as_transformers(mlm)(packed.ids_BL, packed.mask_BL.long(), packed.segments_BL).logits.flatten(0, 1)[
        batch.place_M
    ]
    assert loss is not None and loss.item() == pytest.approx(F.cross_entropy(logits, batch.target_M).item(), rel=1e-5)
    assert computed[0] < int(packed.mask_BL.sum()) / 2


def test_loss_is_cross_entropy_at_the_masks_and_micro_batches_add_up(chain: Chain) -> None:
    mlm = load_masked_lm(chain.encoder.path)[0].eval()
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    examples = PlainBlocks(Corpus(chain.blocks), collator, mask_rate=0.3, length=32, ordinary=np.arange(5, 200))
    whole = MlmObjective(mlm, examples, MlmSettings(blocks=chain.blocks, batch_size=6, seed=3))
    split = MlmObjective(mlm, examples, MlmSettings(blocks=chain.blocks, batch_size=6, micro_batch=2, seed=3))
    ((batch, hidden),) = whole.draw(5)
    packed = batch.packed
    logits = as_transformers(mlm)(packed.ids_BL, packed.mask_BL.long(), packed.segments_BL).logits.flatten(0, 1)
    expected = F.cross_entropy(logits[batch.place_M], batch.target_M)
    loss, _ = whole.loss((batch, hidden))
    assert loss is not None
    torch.testing.assert_close(loss, expected)
    parts = [split.loss(part)[0] for part in split.draw(5)]
    assert len(parts) == 3
    torch.testing.assert_close(sum(part for part in parts if part is not None), expected)

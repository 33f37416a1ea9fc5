"""RetroMAE's enhanced decoding and DupMAE's bag of words, against the papers' formulas position by position."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from realmctl.lab.bottleneck.retromae_model import RetroMae, bag_of_words_loss
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.tokens.frame import Frame

COLLATOR = Collator(Frame.bert(1, 2), pad_id=0, mask_id=3)
TEXTS = [[7, 9, 11, 7], [8, 10]]


@pytest.fixture
def model() -> RetroMae:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=13, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = RetroMae(BertForMaskedLM(config)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def visible_of(plain: TokenBatch) -> Tensor:
    """Another random set for each position, never its own; padding reads position 0."""
    rows, length = plain.ids_BL.shape
    visible = torch.rand(rows, length, length, generator=torch.Generator().manual_seed(1)) < 0.5
    visible &= plain.mask_BL[:, None, :] & ~torch.eye(length, dtype=torch.bool)
    visible[:, 1:, 0] = True
    visible[:, 0, 1] = True
    visible[~plain.mask_BL] = torch.arange(length) == 0
    return visible


def decoded_one_by_one(model: RetroMae, sentence_BH: Tensor, plain: TokenBatch, visible_BLL: Tensor) -> dict:
    """Equations 4 to 8: for each position and head, a softmax over what it may read; residual from the query; then BERT's layer."""
    layer, embeddings = model.decoder, model.mlm.bert.embeddings
    attention, out = layer.attention.self, {}
    for b in range(len(plain)):
        length = int(plain.lengths_B[b])
        keys = [sentence_BH[b]]
        for j in range(1, length):
            summed = (
                embeddings.word_embeddings.weight[plain.ids_BL[b, j]]
                + embeddings.position_embeddings.weight[j]
                + embeddings.token_type_embeddings.weight[0]
            )
            keys.append(embeddings.LayerNorm(summed))
        for i in range(length):
            query = sentence_BH[b] + embeddings.position_embeddings.weight[i]
            heads = []
            for head in range(2):
                part = slice(4 * head, 4 * head + 4)
                asked = attention.query(query)[part]
                read = [j for j in range(length) if visible_BLL[b, i, j]]
                scores = torch.stack([asked @ attention.key(keys[j])[part] / math.sqrt(4) for j in read])
                weights = (scores - scores.max()).exp()
                weights = weights / weights.sum()
                heads.append(sum(w * attention.value(keys[j])[part] for w, j in zip(weights, read, strict=True)))
            mixed = layer.attention.output.dense(torch.cat(heads))
            attended = layer.attention.output.LayerNorm(mixed + query)
            inner = torch.nn.functional.gelu(layer.intermediate.dense(attended))
            out[b, i] = layer.output.LayerNorm(layer.output.dense(inner) + attended)
    return out


def test_the_decoder_and_its_gradients_are_those_of_the_formula(model: RetroMae) -> None:
    plain = COLLATOR.query(TEXTS, 10)
    visible = visible_of(plain)
    gradients, values = [], []
    for naive in (False, True):
        model.zero_grad()
        sentence = torch.randn(2, 8, generator=torch.Generator().manual_seed(2)).requires_grad_()
        if naive:
            decoded = decoded_one_by_one(model, sentence, plain, visible)
        else:
            whole = model.decode(sentence, plain, visible)
            decoded = {(b, i): whole[b, i] for b in range(2) for i in range(int(plain.lengths_B[b]))}
        states = torch.stack([decoded[key] for key in sorted(decoded)])
        (states * torch.arange(states.numel()).view_as(states).cos()).sum().backward()
        values.append(states.detach())
        gradients.append(
            {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
            | {"sentence": sentence.grad}
        )
    assert_close(*values, atol=1e-5, rtol=1e-5)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert_close(gradient, gradients[1][name], atol=1e-4, rtol=1e-4, msg=name)
        assert gradient.isfinite().all()


def test_the_decoder_reads_the_text_through_what_is_visible_and_the_sentence_vector_alone(model: RetroMae) -> None:
    """What the encoder hides changes the sentence vector; a wordpiece that no position may read changes nothing."""
    plain = COLLATOR.query(TEXTS, 10)
    visible = visible_of(plain)
    visible[0, :, 2] = False
    visible[0, 2, 1] = True
    other = COLLATOR.query([[7, 12, 11, 7], [8, 10]], 10)
    with torch.no_grad():
        last, decoded = model(plain, plain, visible)
        assert torch.equal(decoded, model(plain, other, visible)[1])
        assert not torch.allclose(decoded, model(other, plain, visible)[1])
        assert_close(decoded, model.decode(last[:, 0], plain, visible))


def test_the_bag_of_words_is_that_of_the_definition() -> None:
    plain = COLLATOR.query(TEXTS, 10)
    logits = torch.randn(2, plain.ids_BL.shape[1], 13, generator=torch.Generator().manual_seed(3))
    special = (plain.ids_BL == 1) | (plain.ids_BL == 2)
    expected = 0.0
    for row, text in enumerate(TEXTS):
        length = len(text) + 2
        highest = [max(float(logits[row, i, v]) for i in range(1, length)) for v in range(13)]
        total = math.log(sum(math.exp(value) for value in highest))
        expected -= sum(highest[v] - total for v in set(text)) / len(text)
    assert float(bag_of_words_loss(logits, plain, special)) == pytest.approx(expected, rel=1e-5)

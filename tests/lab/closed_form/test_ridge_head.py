"""Ridge regression beside `numpy.linalg.lstsq`, and what the head makes of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from realmctl.errors import ConfigError
from realmctl.lab.closed_form.ridge_head import GAIN, ridge_regression, set_ridge_head
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.families.known import mlm_logits

TOKENS, HIDDEN, VOCABULARY = 400, 32, 300


def test_it_is_least_squares_with_the_penalty_as_further_rows() -> None:
    rng = np.random.default_rng(0)
    states, targets = rng.normal(size=(50, 4)) + 3.0, rng.normal(size=(50, 3)) - 1.0
    weight, bias = ridge_regression(torch.from_numpy(states), torch.from_numpy(targets), penalty=0.2)
    centred = states - states.mean(0)
    strength = 0.2 * (centred**2).sum(0).mean()
    rows = np.vstack([centred, np.sqrt(strength) * np.eye(4)])
    expected, *_ = np.linalg.lstsq(rows, np.vstack([targets - targets.mean(0), np.zeros((4, 3))]), rcond=None)
    np.testing.assert_allclose(weight.numpy(), expected.T, rtol=1e-9)
    np.testing.assert_allclose(bias.numpy(), targets.mean(0) - expected.T @ states.mean(0), rtol=1e-9)


@pytest.fixture
def fitted(mlm: BertForMaskedLM) -> tuple[BertForMaskedLM, torch.Tensor, torch.Tensor, torch.Tensor]:
    """States that are a linear function of the wordpiece's embedding, with noise, and a head fitted to them."""
    wordpiece_T = torch.randint(5, VOCABULARY, (TOKENS,))
    embedding_TH = mlm.bert.embeddings.word_embeddings.weight.detach()[wordpiece_T]
    state_TH = embedding_TH @ torch.randn(HIDDEN, HIDDEN) + 0.01 * torch.randn(TOKENS, HIDDEN) + 2.0
    count_V = torch.bincount(wordpiece_T, minlength=VOCABULARY)
    set_ridge_head(mlm, state_TH, wordpiece_T, count_V)
    return mlm, state_TH, wordpiece_T, count_V


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_logits_are_the_regression_through_a_layer_norm(mlm: BertForMaskedLM, activation: str) -> None:
    """The head's own activation must not bend the linear map."""
    config = mlm.config
    config.hidden_act = activation
    model = BertForMaskedLM(config).eval()
    wordpiece_T = torch.randint(5, VOCABULARY, (TOKENS,))
    state_TH, count_V = torch.randn(TOKENS, HIDDEN) * 3 + 1, torch.randint(0, 9, (VOCABULARY,))
    set_ridge_head(model, state_TH, wordpiece_T, count_V)
    embedding_VH = model.bert.embeddings.word_embeddings.weight.detach().double()
    target_TH = embedding_VH[wordpiece_T]
    weight_HH, bias_H = ridge_regression(state_TH, target_TH - target_TH.mean(0))
    normed_TH = torch.nn.functional.layer_norm(state_TH.double() @ weight_HH.T + bias_H, (HIDDEN,), eps=1e-12)
    share_V = (count_V + 1) / (count_V + 1).sum()
    expected_TV = GAIN * normed_TH @ embedding_VH.T + share_V.double().log()
    with torch.no_grad():
        assert_close(mlm_logits(model, state_TH).double(), expected_TV, atol=2e-3, rtol=0)


def test_it_decodes_states_that_tell_their_wordpiece(fitted) -> None:
    mlm, state_TH, wordpiece_T, _ = fitted
    with torch.no_grad():
        decoded_T = mlm_logits(mlm, state_TH).argmax(1)
    assert (decoded_T == wordpiece_T).float().mean() > 0.9


def test_the_decoder_stays_tied_to_the_embeddings(fitted) -> None:
    mlm, _, _, count_V = fitted
    assert mlm.cls.predictions.decoder.weight is mlm.bert.embeddings.word_embeddings.weight
    assert mlm.cls.predictions.decoder.bias is mlm.cls.predictions.bias
    assert mlm.cls.predictions.bias.argmax() == count_V.argmax()
    assert mlm.cls.predictions.bias.exp().sum().item() == pytest.approx(1.0, abs=1e-4)


def test_an_activation_that_is_never_linear_is_refused(mlm: BertForMaskedLM) -> None:
    mlm.config.hidden_act = "tanh"
    with pytest.raises(ConfigError, match="activation 'tanh'"):
        set_ridge_head(mlm, torch.randn(9, HIDDEN), torch.arange(9), torch.ones(VOCABULARY))

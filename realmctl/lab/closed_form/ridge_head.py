"""A masked-language-model head by ridge regression: the start of a reader whose BERT was saved without a head.

Sentence encoders come without their masked-language-model head. A random head needs a thousand steps before it can
predict a wordpiece that is visible in its input. Ridge regression of wordpiece embeddings on last-layer states finds
such a head in closed form.

BERT's head is logits = E (gain * LayerNorm(gelu(A h + a)) + shift) + b, with the embedding table E. A linear map fits into it:
far above zero gelu is the identity, and the layer norm removes a constant that is added to all coordinates. So A h + a is
the regression plus a constant that keeps every coordinate of the fitted sample above `LINEAR_FROM`.
Legend: T tokens, H hidden, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from realmctl.errors import ConfigError
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import family_of

PENALTY = 1e-3
"""Ridge penalty as a share of the states' mean variance over the coordinates."""
GAIN = 0.5
"""Weight of the head's layer norm. It sets how peaked the predictions are."""
LINEAR_FROM = 4.0
"""For x of at least this value, gelu(x) = x to within 2e-4."""
LINEAR_ACTIVATIONS = ("gelu", "gelu_new", "relu")
"""Activations that are the identity for large inputs."""


def ridge_regression(state_TH: Tensor, target_TH: Tensor, penalty: float = PENALTY) -> tuple[Tensor, Tensor]:
    """Return weight_HH and bias_H, float64, that minimise sum_t |W h_t + a - y_t|^2 + lambda |W|^2.

    lambda is `penalty` times the states' mean variance times T. The bias is not penalised. Computed in float64 from the
    normal equations.
    """
    state_TH, target_TH = state_TH.double(), target_TH.double()
    state_mean_H, target_mean_H = state_TH.mean(0), target_TH.mean(0)
    centred_TH = state_TH - state_mean_H
    gram_HH = centred_TH.T @ centred_TH
    gram_HH.diagonal().add_(penalty * float(gram_HH.diagonal().mean()))
    weight_HH = torch.linalg.solve(gram_HH, centred_TH.T @ (target_TH - target_mean_H)).T
    return weight_HH, target_mean_H - weight_HH @ state_mean_H


@torch.no_grad()
def set_ridge_head(mlm: Encoder, state_TH: Tensor, wordpiece_T: Tensor, count_V: Tensor) -> None:
    """Replace the head of `mlm` by a regression of each token's wordpiece embedding on its last-layer state.

    Args:
        mlm: The model. Only its head changes, except for the tied decoder, which stays the embedding table.
        state_TH: Last-layer states of visible tokens.
        wordpiece_T: Their wordpieces, int64.
        count_V: How often each wordpiece occurs in the corpus, or in a sample of it. The logarithm of these counts plus
            one, as shares, becomes the decoder's bias.

    Raises:
        ConfigError: the activation of `mlm` is not the identity for large inputs.
    """
    known = family_of(mlm)
    dense, norm = known.head_layers(mlm)
    decoder = known.decoder(mlm)
    if dense.bias is None or decoder.bias is None:
        raise ConfigError(
            f"--head-init ridge cannot fit the head of this {known.model_type} encoder, which has no bias. Use --head-init random."
        )
    if (activation := getattr(mlm.config, known.activation)) not in LINEAR_ACTIVATIONS:
        raise ConfigError(
            f"--head-init ridge cannot fit a head with the activation '{activation}': it needs one of "
            f"{', '.join(LINEAR_ACTIVATIONS)}. Use --head-init random."
        )
    embedding_VH = known.words(mlm.base_model).weight.detach().double().cpu()
    target_TH = embedding_VH[wordpiece_T] - embedding_VH[wordpiece_T].mean(0)
    weight_HH, bias_H = ridge_regression(state_TH, target_TH)
    fitted_TH = state_TH.double() @ weight_HH.T + bias_H
    spread = float(fitted_TH.std())
    lift = LINEAR_FROM - float(fitted_TH.min()) / spread
    dense.weight.copy_(weight_HH / spread)
    dense.bias.copy_(bias_H / spread + lift)
    norm.weight.fill_(GAIN)
    if norm.bias is not None:
        norm.bias.zero_()
    share_V = (count_V.double() + 1) / (count_V.double() + 1).sum()
    decoder.bias.copy_(share_V.log())

"""Condenser: an encoder (the backbone) with a short head that predicts masked wordpieces from the [CLS] state.

The head has a few BERT layers of its own. It reads the [CLS] state of the last layer and the token states of an early layer.
Backbone and head predict through the same vocabulary layer (Gao and Callan, "Condenser", EMNLP 2021, section 3; public code
luyug/Condenser, modeling.py). Later stages use the backbone without the head, with its raw [CLS] state.
Legend: B rows, L tokens of the longest row, M masks of the batch, H hidden, S spans of the batch, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.artifacts.description import CONDENSER_HEAD
from realmctl.errors import ConfigError
from realmctl.models.bert.layers import fresh_layer, run_layer
from realmctl.models.bert.modules import Encoder
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.encoder import layer_states
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import full_precision
from realmctl.models.weights import load_into, load_pickled, load_tensors, save_tensors

PUBLIC_HEAD_FILE = "model.pt"
_PUBLIC_PREFIX = "c_head."


class Condenser(nn.Module):
    """A masked language model with a Condenser head.

    Args:
        mlm: the backbone with its vocabulary layer.
        skip_from: number of the layer whose token states the head reads; 0 = the embeddings.
        head_layers: number of BERT layers in the head. They start from random weights.

    Raises:
        ConfigError: when `skip_from` lies outside the backbone, or `head_layers` is below 1.
    """

    def __init__(self, mlm: Encoder, *, skip_from: int, head_layers: int = 2) -> None:
        super().__init__()
        layers = mlm.config.num_hidden_layers
        if not 0 <= skip_from < layers or head_layers < 1:
            raise ConfigError(
                f"--skip-from {skip_from} and --head-layers {head_layers} do not fit a backbone of {layers} layers. "
                f"--skip-from must lie between 0 and {layers - 1}, --head-layers must be at least 1."
            )
        self.mlm, self.skip_from = mlm, skip_from
        self.head = nn.ModuleList(fresh_layer(mlm.config) for _ in range(head_layers))

    def forward(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Return the last layer's states and the head's states, each [B, L, H], zeros at padding."""
        early_BLH, late_BLH = layer_states(
            self.mlm.base_model, batch, (self.skip_from, self.mlm.config.num_hidden_layers)
        )
        layout = TokenLayout(batch)
        state_TH = layout.pack(torch.cat([late_BLH[:, :1], early_BLH[:, 1:]], dim=1))
        for layer in self.head:
            state_TH = run_layer(layer, state_TH, layout)
        return late_BLH, layout.pad(state_TH)

    def save_head(self, folder: Path) -> None:
        """Write the head's weights beside the backbone's, under the names of the public code (`c_head.0...`)."""
        save_tensors(
            {_PUBLIC_PREFIX + name: tensor for name, tensor in self.head.state_dict().items()}, folder / CONDENSER_HEAD
        )

    def load_head(self, folder: Path) -> bool:
        """Load the head from a folder that also holds the backbone. Its file is ours, or `model.pt` of the public code.

        Returns:
            Whether the folder holds a head.

        Raises:
            InputError: The file is damaged, or the head in it has another width or number of layers.
        """
        tensors = _head_tensors(folder)
        if tensors is None:
            return False
        load_into(self.head, tensors, folder)
        return True


def contrastive_loss(own_SH: Tensor, all_CH: Tensor, document_C: Tensor, first: int) -> tuple[Tensor, Tensor]:
    """Return coCondenser's loss: each span has to find the other span of its document among all spans of the batch.

    Spans i and i xor 1 are a pair from one document. Scores are inner products of raw [CLS] states (Gao and Callan, "Unsupervised Corpus
    Aware Language Model Pre-training", ACL 2022, equation 5). A span is not compared with itself, nor with other pairs of its document.

    Args:
        own_SH: [CLS] states of this process's spans.
        all_CH: [CLS] states of the spans of all processes, ordered by process number.
        document_C: int64, the document that each of these spans is from.
        first: row of this process's first span in `all_CH`.

    Returns:
        The mean loss and the accuracy over the spans of this process.
    """
    with full_precision(own_SH.device):
        score_SC = own_SH.float() @ all_CH.float().T
    place_S = torch.arange(first, first + len(own_SH), device=own_SH.device)
    target_S = place_S ^ 1
    counts_SC = (document_C != document_C[place_S][:, None]).scatter(1, target_S[:, None], True)
    score_SC = score_SC.masked_fill(~counts_SC, float("-inf"))
    return F.cross_entropy(score_SC, target_S), (score_SC.argmax(1) == target_S).float().mean()


def _head_tensors(folder: Path) -> dict[str, Tensor] | None:
    """The head's tensors, named without their prefix; None if the folder holds no head."""
    if (folder / CONDENSER_HEAD).is_file():
        tensors = load_tensors(folder / CONDENSER_HEAD)
    elif (folder / PUBLIC_HEAD_FILE).is_file():
        tensors = load_pickled(folder / PUBLIC_HEAD_FILE)
    else:
        return None
    return {
        name.removeprefix(_PUBLIC_PREFIX): tensor for name, tensor in tensors.items() if name.startswith(_PUBLIC_PREFIX)
    }

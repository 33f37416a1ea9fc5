"""RetroMAE: an encoder whose sentence vector has to be enough to rebuild the text (Xiao et al., EMNLP 2022).

A decoder of one layer predicts every wordpiece from the sentence vector and few others. Enhanced decoding (section 3.2.2, equations 4
to 8; public code staoxiao/RetroMAE, pretrain/modeling.py): position i asks with h + p_i, h the sentence vector and p_i the position's
embedding, and reads the keys [h, e_1, ..., e_n], e_j the embedding of wordpiece j with its position. Each position has its own random
set of wordpieces that it may read, which never holds its own. Encoder and decoder predict through the same vocabulary layer. DupMAE adds
a bag of words: the wordpieces of the text are predicted from the other states of the last layer (Xiao et al. 2023, arXiv 2305.02564).

Later stages use the encoder without the decoder.
Legend: B rows, L tokens of the longest row, H hidden, A heads, V vocabulary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.models.bert.layers import after_attention, fresh_layer
from realmctl.models.bert.modules import Encoder
from realmctl.models.encoder import layer_states
from realmctl.models.families.known import family_of
from realmctl.models.inputs import TokenBatch
from realmctl.models.towers.pooled_bert import PooledBert


class RetroMae(nn.Module):
    """A masked language model with a decoder of one layer, which starts from random weights.

    Args:
        mlm: The encoder with its vocabulary layer.
        tower: A retriever's tower on the same encoder, whose pooling makes the sentence vector. None takes the state of [CLS].
    """

    def __init__(self, mlm: Encoder, tower: PooledBert | None = None) -> None:
        super().__init__()
        self.mlm, self.tower = mlm, tower
        self.decoder = fresh_layer(mlm.config)

    def forward(self, masked: TokenBatch, plain: TokenBatch, visible_BLL: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoder's last states and the decoder's states, each [B, L, H].

        masked: What the encoder reads. plain: The same text with nothing hidden. visible_BLL: bool, whether the decoder at position
            [b, i] may read position [b, j]; at least one j for each i. Position 0 is the sentence vector.
        """
        last_BLH = layer_states(self.mlm.base_model, masked, (self.mlm.config.num_hidden_layers,))[0]
        sentence_BH = self.tower.pool_states(last_BLH, masked) if self.tower else last_BLH[:, 0]
        return last_BLH, self.decode(sentence_BH, plain, visible_BLL)

    def decode(self, sentence_BH: Tensor, plain: TokenBatch, visible_BLL: Tensor) -> Tensor:
        """Return the decoder's states, [B, L, H]. Arguments as in `forward`."""
        layer, base = self.decoder, self.mlm.base_model
        attention, length = layer.attention.self, plain.ids_BL.shape[1]
        sentence_B1H = sentence_BH[:, None]
        query_BLH = sentence_B1H + family_of(base).position_states(base, length)
        key_BLH = torch.cat([sentence_B1H, layer_states(base, plain, (0,))[0][:, 1:]], dim=1)
        inputs = ((attention.query, query_BLH), (attention.key, key_BLH), (attention.value, key_BLH))
        query, key, value = (
            part(state).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2) for part, state in inputs
        )
        rate = attention.dropout.p if attention.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=visible_BLL[:, None], dropout_p=rate)
        return after_attention(layer, context.transpose(1, 2).flatten(-2), query_BLH)


def bag_of_words_loss(logits_BLV: Tensor, plain: TokenBatch, special_BL: Tensor) -> Tensor:
    """Return DupMAE's second loss, summed over the rows, a scalar.

    The logits of a row's positions behind [CLS] become one row by their maximum. Its softmax has to hold the wordpieces of the text:
    the cross-entropy of each distinct wordpiece, over the number of wordpieces (public code, pretrain/modeling_duplex.py and data.py).

    special_BL: bool, True at [CLS] and [SEP], which are no wordpieces of the text.
    """
    read_BL = plain.mask_BL.clone()
    read_BL[:, 0] = False
    highest_BV = logits_BLV.float().masked_fill(~read_BL[:, :, None], -torch.inf).amax(1)
    text_BL = plain.mask_BL & ~special_BL
    present_BV = torch.zeros_like(highest_BV).scatter_add(1, plain.ids_BL, text_BL.to(highest_BV.dtype)) > 0
    weight_BV = present_BV / text_BL.sum(1, keepdim=True).clamp(min=1)
    return -(weight_BV * highest_BV.log_softmax(1)).sum()

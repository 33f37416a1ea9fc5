"""The retriever p(z|x): a query tower and a block tower whose inner product ranks blocks.

e(x) = Dropout(LayerNorm(W pooled(x) + b)). Google's code (google-research/language, orqa/models/ict_model.py) pools with BERT's
tanh pooler over [CLS]; the paper (section 3.3.1) writes W [CLS]. Scores have no temperature. Vectors are not normalised.

Pooling: `pooler` is BERT's tanh pooler over [CLS]. `cls` is the last layer's state at [CLS]. `mean` is the mean of the
last layer's states over all real tokens, special tokens included, as in sentence-transformers.

Scale: the layer norm's output has a norm of sqrt(D) times the gain (its weight). A scale S sets the gain to
sqrt(S / D), so that the inner product of two untrained embeddings is S times their cosine. Training may change it.

Imported retrievers (`realmctl import`) have towers of another kind, `realmctl.models.towers.sentence_tower`, and read inputs
of another layout, `realmctl.models.towers.layout`.
Legend: B rows, N candidates, L tokens, H hidden, D projection.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from realmctl.errors import InputError, MismatchError
from realmctl.models.bert.files import load_bert, save_bert
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import family_of, positions_of, require_positions
from realmctl.models.inputs import Collator, TokenBatch, TokenSequence
from realmctl.models.precision import full_precision
from realmctl.models.retriever_settings import (
    NORM_EPS,
    Pooling,
    ProjectionHead,
    ProjectionStart,
    RetrieverSettings,
    Towers,
    read_settings,
)
from realmctl.models.towers.head_steps import HeadStep
from realmctl.models.towers.layout import InputLayout
from realmctl.models.towers.pooled_bert import PooledBert
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.models.weights import hash_tensors, load_into, load_tensors, save_tensors

LONGEST_QUESTION = 512
"""Wordpieces of the longest question that is embedded, unless BERT has fewer positions."""


class Tower(PooledBert):
    """BERT, pooling, and the projection to the retrieval space.

    Args:
        bert: The encoder. The tower keeps this object and adds or removes its pooler.
        projection: Width D of the embeddings.
        pooling: How token states become one vector; see the top of this file.
        norm_eps: Epsilon of the layer norm after the projection.
    """

    def __init__(self, bert: Encoder, projection: int, pooling: Pooling, norm_eps: float = NORM_EPS) -> None:
        super().__init__(bert, pooling)
        self.projection = nn.Linear(bert.config.hidden_size, projection)
        self.norm = nn.LayerNorm(projection, eps=norm_eps)
        self.dropout = nn.Dropout(getattr(bert.config, family_of(bert).rates[0]))
        nn.init.normal_(self.projection.weight, std=bert.config.initializer_range)
        nn.init.zeros_(self.projection.bias)
        self.fit_pooler()

    @property
    def width(self) -> int:
        """Width D of the embeddings."""
        return self.projection.out_features

    def project(self, pooled_BH: Tensor) -> Tensor:
        """Return the embeddings of what `pool` returned, float32 [B, D]."""
        with full_precision(pooled_BH.device):
            embedding_BD: Tensor = self.dropout(self.norm(self.projection(pooled_BH)))
        return embedding_BD

    def settings(self) -> dict[str, Any]:
        """Return the epsilon of the layer norm."""
        return {"norm_eps": self.norm.eps}

    @torch.no_grad()
    def set_projection(self, weight_DH: Tensor, bias_D: Tensor) -> None:
        """Replace the projection's weights. The shapes must not change."""
        self.projection.weight.copy_(weight_DH)
        self.projection.bias.copy_(bias_D)

    def set_scale(self, scale: float) -> None:
        """Set the layer norm's gain so that inner products are `scale` times the cosine."""
        nn.init.constant_(self.norm.weight, math.sqrt(scale / self.projection.out_features))

    def save(self, folder: Path) -> None:
        """Write the Encoder, which AutoModel loads, and the projection beside it."""
        save_bert(self.bert, folder)
        save_tensors(self._projection().state_dict(), folder / "projection.safetensors")

    @classmethod
    def load(cls, folder: Path, projection: int, pooling: Pooling, norm_eps: float = NORM_EPS) -> Tower:
        """Read what `save` wrote. Raises InputError that names a tensor which does not fit."""
        tower = cls(load_bert(folder, pooler=pooling == "pooler"), projection, pooling, norm_eps)
        load_into(tower._projection(), load_tensors(folder / "projection.safetensors"), folder)
        return tower.eval()

    def _projection(self) -> nn.ModuleDict:
        return nn.ModuleDict({"dense": self.projection, "LayerNorm": self.norm})


class Retriever(nn.Module):
    """A query tower and a block tower, which may be one shared tower, or a query tower only.

    Fine-tuning makes a query-only retriever. It records the hash of the block encoder whose embeddings it searches, so
    that blocks are not embedded with other weights.
    """

    def __init__(
        self,
        query_tower: PooledBert,
        block_tower: PooledBert | None,
        *,
        query_length: int,
        block_length: int,
        pooling: Pooling,
        block_encoder: str = "",
        start: ProjectionStart | None = None,
        layout: InputLayout | None = None,
    ) -> None:
        super().__init__()
        self.query_tower = query_tower
        self.block_tower = block_tower
        self.query_length = query_length
        self.block_length = block_length
        self.pooling: Pooling = pooling
        self.start = start or ProjectionStart()
        self.layout = layout or InputLayout()
        self._block_encoder = block_encoder

    @classmethod
    def from_bert(
        cls,
        bert: Encoder,
        *,
        projection: int = 128,
        query_length: int = 64,
        block_length: int = 288,
        pooling: Pooling = "pooler",
        towers: Literal["shared", "separate"] = "shared",
        norm_eps: float = NORM_EPS,
        head: ProjectionHead = "layer-norm",
    ) -> Retriever:
        """Return a retriever with a random projection on copies of `bert`. Separate towers start equal.

        `head`: `layer-norm` is the projection of REALM, `plain` a linear layer alone, and `none` leaves the pooled state as it is.

        Raises ConfigError when BERT has fewer positions than queries or blocks have wordpieces.
        """
        require_positions(bert, max(query_length, block_length), "--query-length and chunk --max-wordpieces")
        tower: PooledBert
        if head == "layer-norm":
            tower = Tower(copy.deepcopy(bert), projection, pooling, norm_eps)
        else:
            steps = [HeadStep("dense", projection)] if head == "plain" else []
            tower = SentenceTower(copy.deepcopy(bert), pooling, steps)
        block_tower = tower if towers == "shared" else copy.deepcopy(tower)
        return cls(tower, block_tower, query_length=query_length, block_length=block_length, pooling=pooling)

    def start_projection(
        self, *, scale: float | None = None, weight_DH: Tensor | None = None, bias_D: Tensor | None = None
    ) -> None:
        """Set the projection of both towers before training.

        Args:
            scale: Scale S of the inner products; None leaves the gain at 1.
            weight_DH, bias_D: Weights from `realmctl.lab.closed_form.pca.pca_projection`; None leaves the random ones.
        """
        for tower in {self.query_tower, self.block_tower or self.query_tower}:
            assert isinstance(tower, Tower | SentenceTower)
            if weight_DH is not None and bias_D is not None:
                tower.set_projection(weight_DH, bias_D)
            if scale is not None:
                tower.set_scale(scale)
        self.start = ProjectionStart("random" if weight_DH is None else "pca", scale)

    @property
    def towers(self) -> Towers:
        """`shared`, `separate` or `query-only`."""
        if self.block_tower is None:
            return "query-only"
        return "shared" if self.block_tower is self.query_tower else "separate"

    @property
    def projection(self) -> int:
        """Width D of the embeddings."""
        return self.query_tower.width

    def pack_queries(self, collator: Collator, token_lists: Sequence[TokenSequence], length: int) -> TokenBatch:
        """Return queries as the query tower reads them: cut to `length` tokens besides a prefix, and to what it can read."""
        most = self.query_length if self.is_imported else positions_of(self.query_tower.bert)
        return self.layout.query(collator, token_lists, min(length + len(self.layout.query_prefix.ids), most))

    def pack_blocks(
        self, collator: Collator, titles: Sequence[TokenSequence], bodies: Sequence[TokenSequence]
    ) -> TokenBatch:
        """Return blocks as the block tower reads them, cut to `block_length` tokens."""
        return self.layout.block(collator, titles, bodies, self.block_length)

    @property
    def longest_question(self) -> int:
        """Wordpieces of a question or sentence that is embedded, [CLS] and [SEP] included.

        512, or the encoder's positions. For an imported encoder the length that its folder states.
        """
        return self.query_length if self.is_imported else min(LONGEST_QUESTION, positions_of(self.query_tower.bert))

    @property
    def is_imported(self) -> bool:
        """Whether the query tower is an imported encoder's."""
        return isinstance(self.query_tower, SentenceTower)

    def embed_queries(self, packed: TokenBatch) -> Tensor:
        """Return the query embeddings e_q, float32 [B, D]."""
        return self.query_tower.embed(packed)

    def embed_blocks(self, packed: TokenBatch) -> Tensor:
        """Return the block embeddings e_d, float32 [B, D]. Raises MismatchError for a query-only retriever."""
        if self.block_tower is None:
            raise MismatchError(
                "This retriever is query-only: fine-tuning trained its query tower and left the blocks' "
                "embeddings as they were, so it cannot embed blocks. Embed them with the retriever it was "
                f"fine-tuned from (block encoder {self._block_encoder[:12]})."
            )
        return self.block_tower.embed(packed)

    @staticmethod
    def score(query_BD: Tensor, block_BND: Tensor) -> Tensor:
        """Return the relevance f(x, z), the inner product (paper, section 3.2), float32 [B, N]."""
        with full_precision(query_BD.device):
            return torch.einsum("bd,bnd->bn", query_BD.float(), block_BND.float())

    def query_only(self) -> Retriever:
        """Return a copy of the query tower that records the hash of its block encoder."""
        return Retriever(
            copy.deepcopy(self.query_tower),
            None,
            query_length=self.query_length,
            block_length=self.block_length,
            pooling=self.pooling,
            block_encoder=self.block_encoder_hash(),
            start=self.start,
            layout=self.layout,
        )

    def block_encoder_hash(self) -> str:
        """Return the sha256 of the block tower's tensors. Equal hashes mean equal embeddings."""
        if self.block_tower is None:
            return self._block_encoder
        return hash_tensors(self.block_tower.state_dict())

    def save(self, folder: Path, block_retriever: str | None = None) -> None:
        """Write retriever.json, query/ and block/ (block/ only for a shared tower). The caller writes the tokenizer.

        block_retriever: for a query-only retriever, the name of the retriever whose vectors it searches; recorded in
            retriever.json.
        """
        if self.block_tower is not None:
            self.block_tower.save(folder / "block")
        if self.towers != "shared":
            self.query_tower.save(folder / "query")
        of_blocks, of_queries = self.block_tower or self.query_tower, self.query_tower
        apart = (of_blocks.pooling, of_blocks.settings()) != (of_queries.pooling, of_queries.settings())
        RetrieverSettings(
            projection=self.projection,
            query_length=self.query_length,
            block_length=self.block_length,
            pooling=of_blocks.pooling,
            towers=self.towers,
            block_encoder=self.block_encoder_hash(),
            query_pooling=of_queries.pooling if apart else None,
            query_head=of_queries.settings().get("head") if apart else None,
            **of_blocks.settings(),
            start=self.start,
            layout=self.layout,
            block_retriever=block_retriever,
        ).write(folder)

    @classmethod
    def load(cls, folder: Path, dropout: float | None = None) -> Retriever:
        """Read what `save` wrote, with a new `dropout` if given. Raises InputError for a missing or altered file."""
        settings = read_settings(folder)
        block_tower = None if settings.towers == "query-only" else _loaded(folder / "block", settings)
        shared = settings.towers == "shared" and block_tower is not None
        of_queries = settings
        if settings.query_pooling is not None:
            of_queries = dataclasses.replace(settings, pooling=settings.query_pooling, head=settings.query_head)
        retriever = cls(
            block_tower if shared and block_tower else _loaded(folder / "query", of_queries),
            block_tower,
            query_length=settings.query_length,
            block_length=settings.block_length,
            pooling=settings.pooling,
            block_encoder=settings.block_encoder,
            start=settings.start,
            layout=settings.layout,
        )
        if retriever.block_encoder_hash() != settings.block_encoder:
            raise InputError(
                f"The block tower in {folder} does not match the hash in its retriever.json: the weights were changed after "
                "they were saved. Restore the folder, or run `realmctl verify` on its artifact."
            )
        if dropout is not None:
            set_dropout(retriever, dropout)
        return retriever.eval()


def _loaded(folder: Path, settings: RetrieverSettings) -> PooledBert:
    if settings.norm_eps is None:
        return SentenceTower.load(folder, settings.pooling, settings.head)
    return Tower.load(folder, settings.projection, settings.pooling, settings.norm_eps)


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout of a module and of the encoders in it, and their configurations, which are saved with the weights.

    Args:
        module: A retriever, a reader or another module of encoders.
        rate: The new rate, from 0 to below 1.
    """
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
    encoders: list[Any] = [part for part in module.modules() if hasattr(part, "base_model")]
    for part in encoders:
        family_of(part).set_dropout(part.base_model, rate)

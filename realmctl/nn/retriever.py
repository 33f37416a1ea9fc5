"""The retriever p(z|x): a query tower and a block tower whose inner product ranks blocks.

e(.) = Dropout(LayerNorm(W pooler([CLS]) + b)), as in google-research/language (orqa/models/ict_model.py);
the paper (section 3.3.1) writes W [CLS] alone. No temperature, no normalisation of the vectors.
Legend: B rows, N candidates, H hidden, D projection.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import BertModel
from transformers.models.bert.modeling_bert import BertPooler

from realmctl.errors import InputError, MismatchError
from realmctl.nn.bert.encoder import cls_state
from realmctl.nn.bert.files import load_bert, save_bert
from realmctl.nn.inputs import TokenBatch
from realmctl.nn.precision import full_precision
from realmctl.nn.weights import hash_tensors, load_into, load_tensors, save_tensors

Pooling = Literal["pooler", "cls"]
Towers = Literal["shared", "separate", "query-only"]
NORM_EPS = 1e-12
"""Of the published weights; the open ICT code leaves Keras's 1e-3."""
_SETTINGS = {"projection", "query_length", "block_length", "pooling", "towers", "block_encoder"}


class Tower(nn.Module):
    """BERT, pooling of `[CLS]`, and the projection to the retrieval space, whose norm has epsilon `norm_eps`."""

    def __init__(self, bert: BertModel, projection: int, pooling: Pooling, norm_eps: float = NORM_EPS) -> None:
        super().__init__()
        self.bert = bert
        self.projection = nn.Linear(bert.config.hidden_size, projection)
        self.norm = nn.LayerNorm(projection, eps=norm_eps)
        self.dropout = nn.Dropout(bert.config.hidden_dropout_prob)
        nn.init.normal_(self.projection.weight, std=bert.config.initializer_range)
        nn.init.zeros_(self.projection.bias)
        if pooling == "cls":
            bert.pooler = None
        elif bert.pooler is None:
            bert.pooler = BertPooler(bert.config)
            bert.pooler.apply(bert._init_weights)
        self.requires_grad_(True)

    def embed(self, packed: TokenBatch) -> Tensor:
        """Embeddings of the rows, float32 [B, D]. The last layer runs at `[CLS]` alone."""
        state_BH = cls_state(self.bert, packed).float()
        with full_precision(state_BH.device):
            if self.bert.pooler is not None:
                state_BH = self.bert.pooler(state_BH[:, None])
            embedding_BD: Tensor = self.dropout(self.norm(self.projection(state_BH)))
        return embedding_BD

    forward = embed

    def save(self, folder: Path) -> None:
        """BertModel for AutoModel, and the projection beside it."""
        save_bert(self.bert, folder)
        save_tensors(self._projection().state_dict(), folder / "projection.safetensors")

    @classmethod
    def load(cls, folder: Path, projection: int, pooling: Pooling, norm_eps: float = NORM_EPS) -> Tower:
        """Read what `save` wrote. Raises InputError naming a tensor that does not fit."""
        tower = cls(load_bert(folder, pooler=pooling == "pooler"), projection, pooling, norm_eps)
        load_into(tower._projection(), load_tensors(folder / "projection.safetensors"), folder)
        return tower.eval()

    def _projection(self) -> nn.ModuleDict:
        return nn.ModuleDict({"dense": self.projection, "LayerNorm": self.norm})


class Retriever(nn.Module):
    """Query tower and block tower: one and the same, two, or the query tower alone.

    A query-only retriever comes out of fine-tuning. It still names the block encoder whose embeddings it
    searches, so that nobody embeds blocks with the wrong weights.
    """

    def __init__(
        self,
        query_tower: Tower,
        block_tower: Tower | None,
        *,
        query_length: int,
        block_length: int,
        pooling: Pooling,
        block_encoder: str = "",
    ) -> None:
        super().__init__()
        self.query_tower = query_tower
        self.block_tower = block_tower
        self.query_length = query_length
        self.block_length = block_length
        self.pooling: Pooling = pooling
        self._block_encoder = block_encoder

    @classmethod
    def from_bert(
        cls,
        bert: BertModel,
        *,
        projection: int = 128,
        query_length: int = 64,
        block_length: int = 288,
        pooling: Pooling = "pooler",
        towers: Literal["shared", "separate"] = "shared",
        norm_eps: float = NORM_EPS,
    ) -> Retriever:
        """A fresh projection on copies of `bert`. Separate towers start equal."""
        tower = Tower(copy.deepcopy(bert), projection, pooling, norm_eps)
        block_tower = tower if towers == "shared" else copy.deepcopy(tower)
        return cls(tower, block_tower, query_length=query_length, block_length=block_length, pooling=pooling)

    @property
    def towers(self) -> Towers:
        """`shared`, `separate` or `query-only`."""
        if self.block_tower is None:
            return "query-only"
        return "shared" if self.block_tower is self.query_tower else "separate"

    @property
    def projection(self) -> int:
        """Width D of the embeddings."""
        return self.query_tower.projection.out_features

    def embed_queries(self, packed: TokenBatch) -> Tensor:
        """e_q, [B, D]."""
        return self.query_tower.embed(packed)

    def embed_blocks(self, packed: TokenBatch) -> Tensor:
        """e_d, [B, D]. Raises MismatchError for a query-only retriever."""
        if self.block_tower is None:
            raise MismatchError(
                "This retriever is query-only: fine-tuning trained its query tower and left the blocks' "
                "embeddings as they were, so it cannot embed blocks. Embed them with the retriever it was "
                f"fine-tuned from (block encoder {self._block_encoder[:12]})."
            )
        return self.block_tower.embed(packed)

    @staticmethod
    def score(query_BD: Tensor, block_BND: Tensor) -> Tensor:
        """Relevance f(x, z), the raw inner product (paper, section 3.2), float32 [B, N]."""
        with full_precision(query_BD.device):
            return torch.einsum("bd,bnd->bn", query_BD.float(), block_BND.float())

    def query_only(self) -> Retriever:
        """A copy of the query side that remembers its block encoder."""
        return Retriever(
            copy.deepcopy(self.query_tower),
            None,
            query_length=self.query_length,
            block_length=self.block_length,
            pooling=self.pooling,
            block_encoder=self.block_encoder_hash(),
        )

    def block_encoder_hash(self) -> str:
        """sha256 over the block tower's tensors: equal hashes give equal embeddings."""
        if self.block_tower is None:
            return self._block_encoder
        return hash_tensors(self.block_tower.state_dict())

    def save(self, folder: Path, block_retriever: str | None = None) -> None:
        """Write retriever.json, query/ and block/ (a shared tower: block/ alone). The caller writes the tokenizer.

        block_retriever: name of the retriever whose vectors a query-only one searches; it is written to retriever.json.
        """
        if self.block_tower is not None:
            self.block_tower.save(folder / "block")
        if self.towers != "shared":
            self.query_tower.save(folder / "query")
        settings: dict[str, Any] = {
            "projection": self.projection,
            "query_length": self.query_length,
            "block_length": self.block_length,
            "pooling": self.pooling,
            "towers": self.towers,
            "block_encoder": self.block_encoder_hash(),
            "norm_eps": self.query_tower.norm.eps,
        }
        if block_retriever is not None:
            settings["block_retriever"] = block_retriever
        (folder / "retriever.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Retriever:
        """Read what `save` wrote. Raises InputError for a missing, malformed or altered file."""
        settings = _read_settings(folder)
        towers, pooling = settings["towers"], settings["pooling"]
        shape = settings["projection"], pooling, settings["norm_eps"]
        block_tower = None if towers == "query-only" else Tower.load(folder / "block", *shape)
        shared = towers == "shared" and block_tower is not None
        retriever = cls(
            block_tower if shared and block_tower else Tower.load(folder / "query", *shape),
            block_tower,
            query_length=settings["query_length"],
            block_length=settings["block_length"],
            pooling=pooling,
            block_encoder=settings["block_encoder"],
        )
        if retriever.block_encoder_hash() != settings["block_encoder"]:
            raise InputError(
                f"The block tower in {folder} is not the one that its retriever.json names: the weights were "
                "changed after they were saved. Restore the folder, or run `realmctl verify` on its artifact."
            )
        return retriever.eval()


def _read_settings(folder: Path) -> dict[str, Any]:
    path = folder / "retriever.json"
    try:
        settings: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        missing = _SETTINGS - set(settings)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"Cannot read {path}: {error}. The folder is no retriever, or a part of one.") from error
    if missing:
        raise InputError(f"{path} lacks {', '.join(sorted(missing))}. It was not written by this realmctl.")
    epsilon = settings.setdefault("norm_eps", NORM_EPS)  # folders of before it was a setting have none
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise InputError(f"{path}: norm_eps is {epsilon!r}, not a number between 0 and 1. The file was changed.")
    return settings

"""Static embeddings: a vector for each wordpiece, and their mean for a text. Folders of sentence-transformers and of model2vec are read.

Nothing is computed but a sum, so that a hundred thousand blocks take seconds. No special token stands around a text.
Legend: B rows, L tokens, H hidden, V vocabulary.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from realmctl.errors import InputError
from realmctl.extras.families.tower_only import TowerOnly
from realmctl.imports.encoder_folder import EncoderSource
from realmctl.imports.model_folder import read_json
from realmctl.models.bert.limits import SIZE_LIMITS, check_sizes, require_memory
from realmctl.models.bert.modules import Encoder
from realmctl.models.inputs import TokenBatch
from realmctl.models.weight_files import load_weights

MODEL_TYPE = "static_embedding"
WEIGHT = "embedding.weight"


class StaticConfig(PretrainedConfig):  # type: ignore[misc]
    """The sizes of a table of embeddings."""

    model_type = MODEL_TYPE

    def __init__(self, vocab_size: int = 1, hidden_size: int = 1, **fields: Any) -> None:
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_hidden_layers = 1
        super().__init__(**fields)


class StaticModel(Encoder):
    """A table of embeddings, under the name that sentence-transformers gives it."""

    base_model_prefix = "static"

    def __init__(self, config: StaticConfig) -> None:
        super().__init__()
        self.config, self.pooler = config, None
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size)


class Static(TowerOnly):
    """Static embeddings."""

    model_type = MODEL_TYPE
    config, base = StaticConfig, StaticModel
    rates: ClassVar[tuple[str, ...]] = ()
    activation = ""
    framed = False

    def positions(self, config: PretrainedConfig) -> int:
        """Return more tokens than any input has."""
        return SIZE_LIMITS["max_position_embeddings"]

    def words(self, base: Any) -> nn.Embedding:
        """Return the table."""
        table: nn.Embedding = base.embedding
        return table

    def from_below(self, base: Any) -> list[nn.Module]:
        """Return the table alone."""
        return [base.embedding]

    def named(self, config: PretrainedConfig, tensors: Any) -> Any:
        """Return the tensors as they are."""
        return tensors

    def layer_states(self, base: Any, packed: TokenBatch, layers: tuple[int, ...]) -> tuple[Tensor, ...]:
        """Return the embeddings of the tokens, whatever layer is named, [B, L, H]; zeros at padding."""
        state_BLH = base.embedding(packed.ids_BL) * packed.mask_BL[..., None]
        return tuple(state_BLH for _ in layers)


def static_source(folder: Path) -> EncoderSource:
    """Return the table of a folder of sentence-transformers' StaticEmbedding, or of model2vec, whose rows may be shared and weighted.

    Raises:
        InputError: The folder holds no such table, or its parts do not fit together.
        ResourceError: It does not fit into the free memory.
    """
    tensors = load_weights(folder)[1]
    table, rows, weights = (tensors.get(name) for name in ("embeddings", "mapping", "weights"))
    normalize = None
    if WEIGHT in tensors:
        table_VH, others = tensors[WEIGHT], tensors.keys() - {WEIGHT}
    elif table is not None:
        table_VH, others = table, tensors.keys() - {"embeddings", "mapping", "weights"}
        stated = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
        normalize = bool(stated.get("normalize", True))
    else:
        raise _unfit(folder, f"it has neither {WEIGHT} nor embeddings")
    if others:
        raise _unfit(folder, f"it has the tensor {min(others)!r} too")
    if table_VH.dim() != 2 or not table_VH.is_floating_point():
        raise _unfit(
            folder,
            f"its table has shape {tuple(table_VH.shape)} and holds {table_VH.dtype}; quantised tables are not read",
        )
    if rows is not None:
        if (
            rows.dim() != 1
            or rows.is_floating_point()
            or not len(rows)
            or not 0 <= int(rows.min()) <= int(rows.max()) < len(table_VH)
        ):
            raise _unfit(folder, "its mapping names rows that the table does not have")
        require_memory(len(rows) * table_VH.shape[1], folder)
        table_VH = table_VH[rows.long()]
    if weights is not None:
        if weights.shape != table_VH.shape[:1]:
            raise _unfit(folder, f"it has {len(weights)} weights for {len(table_VH)} rows")
        table_VH = table_VH.float() * weights.float()[:, None]
    try:
        check_sizes(sizes := {"vocab_size": len(table_VH), "hidden_size": table_VH.shape[1]})
    except ValueError as error:
        raise _unfit(folder, str(error)) from None
    return EncoderSource(StaticConfig(**sizes), {WEIGHT: table_VH.to(torch.float32)}, "mean", normalize)


def _unfit(folder: Path, why: str) -> InputError:
    return InputError(f"{folder} holds no static embeddings that can be used: {why}. Get the folder again.")

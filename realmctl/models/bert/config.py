"""BERT's config.json, with the fields and defaults that transformers gives it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar


@dataclass
class BertConfig:
    """The fields of config.json that describe a BERT. A decoder is tied to the embeddings, whatever a file says.

    Raises:
        ValueError: A field has a value of another type than its default.
    """

    model_type: ClassVar[str] = "bert"

    vocab_size: int = 30_522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3_072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    architectures: list[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            value, plain = getattr(self, each.name), type(each.default)
            optional = each.name in ("pad_token_id", "architectures")
            if not (type(value) in (plain, int) if plain is float else type(value) is plain or optional):
                raise ValueError(f"{each.name} is {str(value)[:40]!r}; it must be a {plain.__name__}")

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> BertConfig:
        """Return the configuration in the fields of a config.json. Fields that do not describe the encoder are left out."""
        names = {each.name for each in fields(cls) if each.init}
        return cls(**{name: value for name, value in found.items() if name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of config.json."""
        return {**asdict(self), "model_type": self.model_type, "tie_word_embeddings": True}

    def save_pretrained(self, folder: Path) -> None:
        """Write config.json, under the name that transformers gives the function."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")

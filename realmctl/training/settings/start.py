"""What a training starts from: an encoder, a BERT or a retriever; and what makes blocks one document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import flag_of, reads, source
from realmctl.training.settings.base import TrainSettings


class BertSettings(TrainSettings):
    """A training that starts from an encoder."""

    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder to start from.", optional=True, replaced_by=("bert",), default=None
    )
    bert: str | None = source(
        "BERT to start from: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
        used_without="encoder",
    )

    @property
    def trained_folder(self) -> Path | None:
        """The folder of the trained BERT to start from; None for a BERT from scratch."""
        if self.encoder is not None:
            return self.encoder.path
        return Path(self.bert) if self.bert and not self.bert.startswith("scratch:") else None


def other_start(given: Mapping[str, object]) -> bool:
    """Whether training starts from something else than an encoder."""
    return given.get("bert") is not None or given.get("retriever") is not None


class WarmStartSettings(BertSettings):
    """A training that prepares a retriever. It starts from an encoder, or from a whole retriever."""

    blocks: Artifact = reads("blocks", help="Blocks to train on.")
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder to start from.",
        optional=True,
        replaced_by=other_start,
        default=None,
    )
    retriever: Artifact | None = reads(
        "retriever",
        help="Retriever to start from, instead of --encoder, such as an imported one. It keeps its pooling, projection, prompts and "
        "scale.",
        explicit_only=True,
        default=None,
    )

    def refuse_with_retriever(self, *names: str) -> None:
        """Check that no setting is given that the retriever decides. Raises ConfigError."""
        for name in names:
            if self.retriever is not None and (value := getattr(self, name)) is not None:
                raise ConfigError(f"{flag_of(name)} {value}: the retriever decides this. Leave it out, or --retriever.")


GroupBy = Literal["document", "title", "source"]
"""What blocks of one document have in common: the document that they were cut from, its title, or its id without a number at the end."""
ExcludeOwn = Literal["block", GroupBy, "nothing"]
"""Which blocks are no candidates for a sentence: the one that holds it, all of its document's, or none."""

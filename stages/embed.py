"""`realmctl embed`: turn every block into a vector with the block encoder of a retriever."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary, require_titles
from realmctl.artifacts.series import readable_versions
from realmctl.errors import ConfigError, MismatchError
from realmctl.execution.shards import LOCAL
from realmctl.log import say
from realmctl.pipeline import Stage, help_texts, reads
from realmctl.pipeline.trial import NotTried, Trial
from realmctl.retrieval.embedding.settings import EmbedSettings

if TYPE_CHECKING:
    from realmctl.retrieval.embedding.reused import FormerVectors

MANY_BLOCKS = 100_000
"""So many blocks may take days, so embedding is tried before it starts."""


class Embed(EmbedSettings, Stage):
    """Embed every block with a retriever.

    An interrupted run continues where it stopped and ends with the same bytes.

    The vectors of blocks that have not changed are reused: from the newest embeddings in the same series by a retriever of the same
    weights and from runs that were interrupted there, or from those that --former names: embeddings, an index or a model. Only the other blocks are embedded.
    """

    makes = "embeddings"
    headline = ("rows", "dimension", "truncated_blocks", "taken_over", "embedded")
    resumable = True
    takes_over = True
    grows_with = "blocks"

    former_blocks: Artifact | None = reads(
        "blocks",
        help="Blocks that --former was made from. Default: the version of --blocks recorded in --former.",
        explicit_only=True,
        default=None,
    )
    former: Artifact | None = reads(
        "embeddings",
        "index",
        help="Embeddings, index or model made with the same retriever, whose vectors are reused. Default: the newest embeddings that fit, "
        "of blocks in the series of --blocks.",
        explicit_only=True,
        default=None,
    )
    blocks: Artifact = reads("blocks", help="Blocks to embed.")
    retriever: Artifact = reads(
        "retriever", help="Retriever whose block encoder embeds the blocks, or a pre-trained model."
    )

    def check(self) -> None:
        from realmctl.models.retriever_settings import read_settings

        if self.workers and self.executor == LOCAL:
            raise ConfigError("--workers needs --executor ray: embed runs in one process on this machine.")
        if self.executor != LOCAL and self.device.startswith("cuda:"):
            raise ConfigError(
                f"--device {self.device} names a GPU of this machine. With --executor ray, use auto, cuda or cpu."
            )
        require_same_vocabulary(self.blocks, self.retriever)
        if read_settings(self.retriever.path).towers == "query-only":
            raise MismatchError(
                f"{self.retriever} was fine-tuned, which trains only the query encoder: it has no "
                f"block encoder to embed blocks with. Name the pre-trained model or retriever that it was "
                "fine-tuned from."
            )
        require_titles(self.blocks)
        self._check_former()

    def _check_former(self) -> None:
        if self.former is None:
            if self.former_blocks is not None:
                raise ConfigError("--former-blocks names the blocks of --former. Name --former too, or leave it out.")
            return
        if self.former.lineage.get("retriever") != self.retriever.content:
            raise MismatchError(
                f"{self.former} was made with another retriever than {self.retriever}, so its vectors cannot be reused. "
                "Name the retriever that it was made with, or leave out --former to embed every block."
            )
        precision = self.former.settings.get("precision", self.precision)
        if precision != self.precision:
            raise MismatchError(
                f"{self.former} was made with --precision {precision}, not {self.precision}. Use --precision {precision}, or "
                "leave out --former to embed every block."
            )
        require_same_vocabulary(self.blocks, self._blocks_of_former())

    def _blocks_of_former(self) -> Artifact:
        """Return the blocks that --former was made from: those named, or a version of the series of --blocks."""
        assert self.former is not None
        content = self.former.lineage.get("blocks")
        series = self.blocks.path.absolute().parent
        known = [self.former_blocks] if self.former_blocks else chain([self.blocks], readable_versions(series))
        for blocks in known:
            if blocks.content == content:
                return blocks
        raise MismatchError(
            f"{self.former} was made from blocks with the content {str(content)[:12]}, which is not the content of "
            f"{self.former_blocks or f'a version in {series}'}. Name the blocks that it was made from with --former-blocks."
        )

    def estimate(self) -> dict[str, float]:
        from realmctl.models.retriever_settings import read_settings

        width, size = read_settings(self.retriever.path).projection, 2 if self.dtype == "float16" else 4
        return {"disk_bytes": float(self.blocks.metrics["blocks"] * width * size)}

    @property
    def may_take_days(self) -> bool:
        return int(self.blocks.metrics.get("blocks", 0)) >= MANY_BLOCKS

    def trial(self) -> Trial:
        from realmctl.retrieval.embedding.embedding import try_to_embed

        if self.executor != LOCAL:
            raise NotTried(help_texts.WORKERS_ARE_UNKNOWN)
        return try_to_embed(self.blocks, self.retriever, self, self._named_vectors())

    def shrunk(self, folder: Path) -> tuple[Self, float]:
        return dataclasses.replace(self, executor=LOCAL, workers=0), 1.0

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.retrieval.embedding.embedding import embed_artifact
        from realmctl.retrieval.embedding.reused import known_vectors, made_before

        known = self.blocks, self.retriever, out.path.parent, self.dtype, self.precision
        if same := made_before(*known):
            say(f"embed: {same} has the vectors of these blocks, by a retriever of the same weights")
            out.link("embeddings.npy", same.file("embeddings.npy"))
            return {**same.metrics, "taken_over": same.metrics["rows"], "embedded": 0}
        return embed_artifact(self.blocks, self.retriever, self, out, self._named_vectors() or known_vectors(*known))

    def _named_vectors(self) -> FormerVectors | None:
        from realmctl.retrieval.embedding.reused import former_vectors

        if self.former is None:
            return None
        return former_vectors(self.former, self._blocks_of_former(), self.blocks, self.dtype)

"""`realmctl late-embed`: a vector for each token of every block."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Artifact, Writer
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source


class LateEmbed(Stage):
    """Embed every token of every block with a multi-vector encoder, such as a ColBERT of sentence-transformers 6.

    late-rank ranks with the result. No code of the encoder's folder is executed.
    """

    makes = "late-index"
    headline = ("blocks", "vectors", "width")
    grows_with = "blocks"

    blocks: Artifact = reads("blocks", help="Blocks to embed.")
    encoder: str = source("Folder or hub id of the multi-vector encoder.", hub=True)
    dtype: str = setting(
        "Type of the stored numbers: float16 or float32.", default="float16", choices=lambda: ("float16", "float32")
    )
    batch_size: int = runtime("Blocks per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.late_interaction.late_index import embed_blocks

        return embed_blocks(self, out)

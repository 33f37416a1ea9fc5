"""`realmctl embed`: turn every block into a vector with the block encoder of a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary, require_titles
from realmctl.artifacts.description import describe_retriever
from realmctl.errors import ConfigError, MismatchError
from realmctl.log import progress
from realmctl.stage import Stage, help_texts, reads, runtime, setting


class Embed(Stage):
    """Embed every block with a retriever.

    An interrupted run continues where it stopped and ends with the same bytes.
    """

    makes = "embeddings"
    headline = ("rows", "dimension", "truncated_blocks")
    resumable = True

    blocks: Artifact = reads("blocks", help="Blocks to embed.")
    retriever: Artifact = reads(
        "retriever", help="Retriever whose block encoder embeds the blocks, or a pre-trained model."
    )
    dtype: Literal["float32", "float16"] = setting(
        "Floating-point type on disk. float16 halves the size of the file.", default="float32"
    )
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")
    batch_size: int = runtime(
        "Blocks per batch; 0 means as many as fit a CPU core's cache, or 128 on a GPU.", default=0
    )
    device: str = runtime(help_texts.DEVICE, default="auto")

    def check(self) -> None:
        if self.batch_size < 0:
            raise ConfigError(f"--batch-size {self.batch_size}: use 1 or more, or 0 to choose a number for the device.")
        require_same_vocabulary(self.blocks, self.retriever)
        if describe_retriever(self.retriever).towers == "query-only":
            raise MismatchError(
                f"{self.retriever} was fine-tuned, which trains only the query encoder: it has no "
                f"block encoder to embed blocks with. Name the pre-trained model or retriever that it was "
                "fine-tuned from."
            )
        require_titles(self.blocks)

    def estimate(self) -> dict[str, float]:
        width, size = describe_retriever(self.retriever).projection, 2 if self.dtype == "float16" else 4
        return {"disk_bytes": float(self.blocks.metrics["blocks"] * width * size)}

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.precision import pick_device
        from realmctl.nn.retriever import Retriever
        from realmctl.retrieval.corpus import Corpus
        from realmctl.retrieval.initial_encoder import packer_of, tokenizer_of
        from realmctl.retrieval.search.embedding import embed_corpus

        corpus = Corpus(self.blocks)
        retriever = Retriever.load(self.retriever.path).to(pick_device(self.device))
        with progress(len(corpus), "embedding", "blocks") as bar:
            return embed_corpus(
                retriever,
                packer_of(tokenizer_of(self.blocks)),
                corpus,
                out.file("embeddings.npy"),
                journal=out.scratch("ranges") / "done.jsonl",
                dtype=self.dtype,
                precision=self.precision,
                batch_size=self.batch_size,
                on_progress=bar.advance,
            )

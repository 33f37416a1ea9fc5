"""`realmctl weigh-bm25`: how much BM25 counts in hybrid search of a workspace, from questions without answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Artifact, Writer
from realmctl.pipeline import Precision, Stage, check_device, help_texts, reads, runtime, setting, source


class WeighBm25(Stage):
    """Find how much BM25 counts in hybrid search, from questions that people asked. No answers are needed.

    search, rank and serve take the weight in this workspace for this retriever, as long as no --bm25-weight is given. Documents may change.
    """

    makes = "bm25-weight"
    headline = ("bm25_weight", "questions")

    blocks: Artifact = reads("blocks", help="Blocks that are searched.")
    retriever: Artifact = reads("retriever", help="Retriever that embeds the questions.")
    index: Artifact = reads("index", help="Index of that retriever.")
    questions: Path = source(
        "Questions that people asked, such as those of a search box: one on a line, or any file that `rank` takes as queries."
    )
    batch_size: int = runtime("Questions per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.asked_weight.weighing import weigh

        return weigh(self, out)

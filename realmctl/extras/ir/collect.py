"""`realmctl collect`: a test collection of ir_datasets or of the hub as a BEIR folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError, require_package
from realmctl.pipeline import Stage, setting, source
from realmctl.pipeline.trial import NotTried, Trial


class Collect(Stage):
    """Make a BEIR folder of a test collection: corpus.jsonl, queries.jsonl and qrels/test.tsv.

    ir:NAME is a dataset of ir_datasets, such as ir:beir/scifact/test. hf:OWNER/NAME, or hf:OWNER/NAME@REVISION, is a dataset of the
    hub in the layout of NanoBEIR, MTEB or BEIR. Both may need the network. The artifact's folder stands wherever a BEIR folder does.
    """

    makes = "collection"
    headline = ("documents", "queries", "judgements")
    version = 2  # 2: a judgement of 0 stays 0

    dataset: str = source("ir:NAME or hf:OWNER/NAME.", positional=True, literals=("ir:", "hf:"))
    split: str = setting("hf: split whose judgements are taken, unless there is only one.", default="test")

    def check(self) -> None:
        if self.dataset.startswith("ir:"):
            require_package("ir_datasets", "ir", "collect ir:NAME")
        elif not self.dataset.startswith("hf:"):
            raise ConfigError(
                f"{self.dataset} is on this machine. Name ir:NAME or hf:OWNER/NAME; a BEIR folder is used as it is."
            )

    def trial(self) -> Trial:
        raise NotTried("it may fetch the collection over the network")

    def shrunk(self, folder: Path) -> None:
        return None

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.extras.ir.collection import write_collection

        return write_collection(self.dataset, self.split, out)

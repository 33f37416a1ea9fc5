"""`realmctl tag`: find the salient spans that pre-training masks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.artifacts.hashing import digest_source
from realmctl.execution.shards import LOCAL, executor_names
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime
from realmctl.pipeline.fields import MOST_WORKERS
from realmctl.pipeline.sources import localise
from realmctl.pipeline.trial import NotTried, Trial
from realmctl.spans.settings import TagSettings, find_spacy_model


class Tag(TagSettings, Stage):
    """Find salient spans: the names and dates that pre-training hides.

    The blocks may come from another corpus than the blocks that pre-training retrieves, such as CC-News in the paper.
    """

    makes = "spans"
    headline = ("spans_per_block", "spans", "tagger")
    grows_with = "blocks"
    version = 5  # 2: degrees such as 18°S are not names; 3: auto decides by document. 4: mentions in scripts without blanks. 5: Georgian

    blocks: Artifact = reads("blocks", help="Blocks whose sentences become queries.")
    workers: int = runtime(
        help_texts.WORKERS + " The hf tagger runs in one process.", default=0, at_least=0, at_most=MOST_WORKERS
    )
    executor: str = runtime(help_texts.EXECUTOR, default=LOCAL, choices=executor_names)
    device: str = runtime("Device of the hf tagger: auto, cpu or cuda:N.", default="auto", check=check_device)

    def trial(self) -> Trial:
        if self.executor != LOCAL:
            raise NotTried(help_texts.WORKERS_ARE_UNKNOWN)
        return super().trial()

    def shrunk(self, folder: Path) -> tuple[Self, float]:
        return dataclasses.replace(self, executor=LOCAL), 1.0

    def origin(self) -> Origin:
        """Return the origin. A tagging model is identified by its content instead of its name."""
        origin, folder = super().origin(), self._model()
        if folder is None:
            return origin
        return dataclasses.replace(origin, inputs={**origin.inputs, "tagger": digest_source(folder)})

    def _model(self) -> Path | None:
        """Folder of the tagger's model; None for a tagger without one. Raises InputError when it does not exist."""
        kind, _, model = self.tagger.partition(":")
        if kind == "hf":
            return Path(localise(model, (), True, "--tagger hf"))
        return find_spacy_model(model) if kind == "spacy" else None

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.spans.tagging import tag_blocks

        if not self.tagger.startswith("hf:"):
            return tag_blocks(self.blocks, self, out, self.workers, self.executor)
        recognizer = partial(_recognizer, self._model(), self.device)
        return tag_blocks(self.blocks, self, out, 1, self.executor, recognizer)


def _recognizer(folder: Path | None, device: str) -> Any:
    from realmctl.models.ner import EntityRecognizer

    assert folder is not None
    return EntityRecognizer(folder, device=device)

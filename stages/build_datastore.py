"""`realmctl build-datastore`: the datastore of a kNN-LM over tagged sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary
from realmctl.index.names import INDEX_TYPES
from realmctl.index.settings import IndexSettings
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting


class BuildDatastore(IndexSettings, Stage):
    """Store the state that predicts each wordpiece of each salient span, and index the states (kNN-LM).

    The masked language model is an encoder, or the reader of a pre-trained model. eval-knn-lm reads the result. The index
    finds the nearest states by Euclidean distance.
    """

    makes = "datastore"
    headline = ("rows", "neighbour_recall", "dimension")

    encoder: Artifact = reads("encoder", "reader", help="Encoder with its head, or a pre-trained model for its reader.")
    spans: Artifact = reads("spans", help="Tagged sentences to store.")
    type: str = setting(
        "Type of index. exact: scores every state. hnsw: approximate graph search. Other names come from plug-ins.",
        default="exact",
        choices=INDEX_TYPES.names,
    )
    batch_size: int = runtime("Spans per batch.", default=64, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def check(self) -> None:
        self.check_index()
        require_same_vocabulary(self.encoder, self.spans)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.index.build import build
        from realmctl.models.inputs import Collator
        from realmctl.models.precision import pick_device
        from realmctl.models.reader import Reader
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.tokens import wordpiece
        from realmctl.training.evaluation.knn_lm import SpanStates, require_neighbours, write_datastore
        from realmctl.training.starts.encoder import masked_lm_with_head

        reader = Reader(masked_lm_with_head(self.encoder.path))
        collator, device = Collator.of(wordpiece.load(self.spans.path)), pick_device(self.device)
        states = SpanStates(reader, TaggedQueries(self.spans), collator, device, self.precision)
        write_datastore(states, out.path, self.batch_size)
        built = build(out.path, self, device=str(device))
        return {**built, "neighbour_recall": require_neighbours(out.path, self, str(device))}

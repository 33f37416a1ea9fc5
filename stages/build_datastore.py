"""`realmctl build-datastore`: the datastore of a kNN-LM over tagged sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting

if TYPE_CHECKING:
    from realmctl.index.index_type import IndexOptions


class BuildDatastore(Stage):
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
    m: int = setting("hnsw: links per state. More links raise recall and memory.", default=16, at_least=2, at_most=512)
    ef_construction: int = setting(
        "hnsw: width of the beam during the build. A wider beam is slower and raises recall.", default=200, at_least=1
    )
    ef: int | None = setting(
        "hnsw: width of the beam during search. Default: the narrowest of 64 to 1024 that reaches --min-recall.",
        default=None,
        at_least=1,
    )
    min_recall: float = setting(
        "Lowest recall at which the datastore is written, from 0 to 1.", default=0.95, at_least=0, at_most=1
    )
    seed: int = setting("Seed of the graph's levels and of the sampled queries.", default=0, at_least=0)
    batch_size: int = runtime("Spans per batch.", default=64, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def check(self) -> None:
        self._options().check()
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
        built = build(out.path, self._options(), device=str(device))
        return {**built, "neighbour_recall": require_neighbours(out.path, self._options(), str(device))}

    def _options(self) -> IndexOptions:
        from realmctl.index.index_type import IndexOptions

        return IndexOptions.from_settings(vars(self))

"""`realmctl eval-knn-lm`: measure a kNN-LM on sentences that are not in its datastore."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting


class EvalKnnLm(Stage):
    """Measure a kNN-LM (Khandelwal et al. 2020): how well hidden salient spans are filled with and without neighbours.

    The neighbours of a state never come from the block of its own sentence. With a pre-trained model as --encoder,
    lm_log_prob is what eval-utility measures without retrieval: its log_prob less its retrieval_utility.
    """

    makes = "knn-utility"
    headline = ("log_prob", "lm_log_prob", "knn_utility", "accuracy", "lm_accuracy", "queries")

    encoder: Artifact = reads("encoder", "reader", help="Encoder that the datastore was built with.")
    datastore: Artifact = reads("datastore", help="Datastore of build-datastore.")
    spans: Artifact = reads("spans", help="Tagged sentences to measure on.")
    neighbours: int = setting("Number k of neighbours.", default=1024, at_least=1, at_most=65_536)
    share: float = setting(
        "Share lambda of the neighbours in the mixture, from 0 to 1.", default=0.25, at_least=0, at_most=1
    )
    temperature: float = setting("Temperature that squared distances are divided by.", default=1.0, above=0)
    batch_size: int = runtime("Spans per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def check(self) -> None:
        require_same_vocabulary(self.encoder, self.spans)
        require_descent(self.datastore, self.encoder)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.models.inputs import Collator
        from realmctl.models.precision import pick_device
        from realmctl.models.reader import Reader
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.tokens import wordpiece
        from realmctl.training.evaluation.knn_lm import Datastore, KnnOptions, SpanStates, measure_knn_lm
        from realmctl.training.starts.encoder import masked_lm_with_head

        reader = Reader(masked_lm_with_head(self.encoder.path))
        collator, device = Collator.of(wordpiece.load(self.spans.path)), pick_device(self.device)
        states = SpanStates(reader, TaggedQueries(self.spans), collator, device, self.precision)
        options = KnnOptions(neighbours=self.neighbours, share=self.share, temperature=self.temperature)
        measured = measure_knn_lm(states, Datastore(self.datastore, device), options, self.batch_size)
        out.file("utility.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        return measured

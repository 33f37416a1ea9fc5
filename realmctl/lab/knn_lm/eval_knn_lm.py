"""`realmctl eval-knn-lm`: measure a kNN-LM on sentences that are not in its datastore."""

from __future__ import annotations

import json
from collections.abc import Mapping

from realmctl.artifacts import Writer, require_descent, require_same_vocabulary
from realmctl.lab.knn_lm.settings import KnnSettings
from realmctl.pipeline import Stage


class EvalKnnLm(KnnSettings, Stage):
    """Measure a kNN-LM (Khandelwal et al. 2020): how well hidden salient spans are filled with and without neighbours.

    The neighbours of a state never come from the block of its own sentence, also where the datastore is of another cut of the documents. With a pre-trained model as --encoder,
    lm_log_prob is what eval-utility measures without retrieval: its log_prob less its retrieval_utility.
    """

    makes = "knn-utility"
    headline = ("log_prob", "lm_log_prob", "knn_utility", "accuracy", "lm_accuracy", "queries")
    version = 2  # 2: a datastore of another cut of the documents

    def check(self) -> None:
        require_same_vocabulary(self.encoder, self.spans)
        require_descent(self.datastore, self.encoder)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.knn_lm.knn_lm import measure_knn_lm

        measured = measure_knn_lm(self)
        out.file("utility.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        return measured

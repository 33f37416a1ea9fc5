"""`realmctl build-datastore`: the datastore of a kNN-LM over tagged sentences."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_same_vocabulary
from realmctl.lab.knn_lm.settings import DatastoreSettings
from realmctl.pipeline import Stage


class BuildDatastore(DatastoreSettings, Stage):
    """Store the state that predicts each wordpiece of each salient span, and index the states (kNN-LM).

    The masked language model is an encoder, or the reader of a pre-trained model. eval-knn-lm reads the result. The index
    finds the nearest states by Euclidean distance.
    """

    makes = "datastore"
    headline = ("rows", "neighbour_recall", "dimension")
    version = 2  # 2: sentences.npy

    def check(self) -> None:
        self.index.check_index()
        require_same_vocabulary(self.encoder, self.spans)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.knn_lm.knn_lm import build_datastore

        return build_datastore(self, out)

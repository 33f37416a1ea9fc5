"""Settings of `build-datastore` and `eval-knn-lm`."""

from __future__ import annotations

from typing import Literal

from realmctl.artifacts import Artifact
from realmctl.index.settings import IndexSettings, index_settings
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting
from realmctl.pipeline.values import LARGEST_INT

NEIGHBOURS = 1024


class DatastoreSettings(Settings):
    """A kNN-LM's datastore."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder with its head, or a pre-trained model for its reader.")
    spans: Artifact = reads("spans", help="Tagged sentences to store.")
    type: Literal["exact", "hnsw"] = setting(
        "Type of index. exact: scores every state. hnsw: approximate graph search.", default="exact"
    )
    seed: int = setting(
        "Seed of the graph's levels and of the sampled queries.",
        default=0,
        at_least=0,
        at_most=LARGEST_INT,
        advanced=True,
    )
    batch_size: int = runtime("Spans per batch.", default=64, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)

    @property
    def index(self) -> IndexSettings:
        """How the index is built. Its recall counts as many neighbours as eval-knn-lm searches."""
        return index_settings()(type=self.type, seed=self.seed, recall_k=(NEIGHBOURS,))


class KnnSettings(Settings):
    """A kNN-LM: neighbours k, their share lambda, and the temperature of their softmax."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder that the datastore was built with.")
    datastore: Artifact = reads("datastore", help="Datastore of build-datastore.")
    spans: Artifact = reads("spans", help="Tagged sentences to measure on.")
    neighbours: int = setting("Number k of neighbours.", default=NEIGHBOURS, at_least=1, at_most=65_536)
    share: float = setting(
        "Share lambda of the neighbours in the mixture, from 0 to 1.", default=0.25, at_least=0, at_most=1
    )
    temperature: float = setting(
        "Temperature that squared distances are divided by.", default=1.0, at_least=1e-6, at_most=1e6
    )
    batch_size: int = runtime("Spans per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto")

"""Settings of `build-datastore` and `eval-knn-lm`."""

from __future__ import annotations

from realmctl.artifacts import Artifact
from realmctl.index.names import INDEX_TYPES
from realmctl.index.settings import IndexSettings, check_depths
from realmctl.pipeline import Precision, Settings, check_device, help_texts, reads, runtime, setting


class DatastoreSettings(IndexSettings):
    """A kNN-LM's datastore."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder with its head, or a pre-trained model for its reader.")
    spans: Artifact = reads("spans", help="Tagged sentences to store.")
    type: str = setting(
        "Type of index. exact: scores every state. int8: scores an 8-bit copy of every state, then the best themselves. hnsw: "
        "approximate graph search. faiss: what --factory describes. Other names come from plug-ins.",
        default="exact",
        choices=INDEX_TYPES.names,
    )
    recall_k: tuple[int, ...] = setting(
        "Numbers of neighbours that the recall counts; the lowest recall counts. Default: as many as eval-knn-lm searches. "
        "Repeatable.",
        default=(1024,),
        at_least=1,
        check=check_depths,
    )
    batch_size: int = runtime("Spans per batch.", default=64, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)


class KnnSettings(Settings):
    """A kNN-LM: neighbours k, their share lambda, and the temperature of their softmax."""

    encoder: Artifact = reads("encoder", "reader", help="Encoder that the datastore was built with.")
    datastore: Artifact = reads("datastore", help="Datastore of build-datastore.")
    spans: Artifact = reads("spans", help="Tagged sentences to measure on.")
    neighbours: int = setting("Number k of neighbours.", default=1024, at_least=1, at_most=65_536)
    share: float = setting(
        "Share lambda of the neighbours in the mixture, from 0 to 1.", default=0.25, at_least=0, at_most=1
    )
    temperature: float = setting(
        "Temperature that squared distances are divided by.", default=1.0, at_least=1e-6, at_most=1e6
    )
    batch_size: int = runtime("Spans per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto")

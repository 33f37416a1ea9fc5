"""The seam for starts that are fitted to the blocks instead of trained: a head of masked language modelling, or a projection."""

from __future__ import annotations

from abc import ABC, abstractmethod

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.models.bert.modules import Encoder
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.training.names import HEADS, PROJECTIONS
from realmctl.training.settings.base import TrainSettings
from realmctl.training.settings.retriever import RetrieverTrainingSettings


class FittedHead(ABC):
    """A head of masked language modelling that is fitted to states of the blocks (`--head-init NAME`, group `realmctl.heads`)."""

    @abstractmethod
    def fit(self, mlm: Encoder, corpus: Corpus, collator: Collator, settings: TrainSettings, length: int) -> float:
        """Set the head of `mlm`, and leave the model in evaluation mode, on the device of the settings.

        length: The longest input of the training in wordpieces, [CLS] and [SEP] included.

        Returns:
            The share of visible wordpieces that the head then predicts, among the first tokens of a sample.

        Raises:
            InputError: The corpus holds no wordpieces.
            ConfigError: The model does not allow it.
        """


class FittedProjection(ABC):
    """A projection of a new retriever that is fitted to vectors of the blocks (`--projection-init NAME`, group `realmctl.projections`)."""

    @abstractmethod
    def fit(
        self, retriever: Retriever, corpus: Corpus, collator: Collator, settings: RetrieverTrainingSettings, out: Writer
    ) -> None:
        """Set the projection, and leave the retriever in evaluation mode, on the device of the settings.

        out: The folder of the run. It keeps what was computed, so a run that continues does not compute it again. A trial computes a few
            vectors and leaves the projection random.

        Raises:
            ConfigError: The projection is wider than the encoder, or the corpus has too few blocks.
        """


def fitted_head(name: str) -> FittedHead:
    """Return the head with this name. Raises ConfigError where no room or package offers it."""
    return HEADS.load(name, FittedHead)()


def fitted_projection(name: str) -> FittedProjection:
    """Return the projection with this name. Raises ConfigError where no room or package offers it."""
    return PROJECTIONS.load(name, FittedProjection)()

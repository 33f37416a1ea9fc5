"""Rerankers read a question and a text together, and put the first hits of a search into another order.

A reranker is found by the kind of its artifact (`RERANKERS`). A folder of another project, or one of the hub, is a cross-encoder.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import open_artifact
from realmctl.artifacts.manifest import is_artifact
from realmctl.corpus.blocks import Block
from realmctl.errors import ConfigError, MismatchError
from realmctl.index.protocol import Scores
from realmctl.pipeline.sources import localise
from realmctl.retrieval.names import RERANK_DEPTH, RERANKERS, RRF_K, TEMPERATURE
from realmctl.retrieval.search.block_search import Hit, require_count

CROSS_ENCODER = "cross-encoder"


@dataclass(frozen=True)
class Pair:
    """A question, and the title and the text that are read with it. The title may be empty."""

    question: str
    title: str
    text: str


class Reranker(ABC):
    """Says how relevant texts are to questions. A score has no unit: only scores of one question are compared."""

    is_likelihood: ClassVar[bool] = False
    """Whether a score is log p(y|z,x), to which the search's log p(z|x) is added (REALM, equation 1)."""

    @classmethod
    @abstractmethod
    def open(cls, folder: Path, device: str) -> Self:
        """Open the model in a folder. Raises InputError for one that cannot be used."""

    @abstractmethod
    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """The score of each pair, float32 [n]. Pairs of several questions may be read together."""


@dataclass(frozen=True)
class Reranking:
    """A reranker, how many hits of a question it reads, the name by which it is told, and whether its order is fused with that of the search."""

    model: Reranker
    depth: int
    name: str
    fused: bool = False

    @classmethod
    def of(cls, named: Path | str | None, depth: int | None, device: str = "auto", fused: bool = False) -> Self | None:
        """Open what a user named; None where nothing is named.

        Args:
            named: folder of an artifact or of a cross-encoder, or the id of one on the hub.
            depth: hits of a question that are reranked; None for `RERANK_DEPTH`.
            device: auto, cpu or cuda:N.
            fused: whether a hit's score is the sum of 1 / (60 + rank) over the search's order and the reranker's.

        Raises:
            ConfigError: there is a depth, or a fusion, without a reranker; a depth is no whole number of at least 1.
            MismatchError: artifacts of this kind do not rerank.
            InputError: there is no such folder, or its model cannot be used.
        """
        if named is None:
            if depth is not None or fused:
                flag = "--rerank-fused" if fused else "--rerank-depth"
                raise ConfigError(f"{flag} needs --rerank, without which it says nothing. Leave it out.")
            return None
        if depth is not None:
            require_count("rerank_depth", depth)
        folder, kind, name = found_reranker(named)
        return cls(RERANKERS.load(kind, Reranker).open(folder, device), depth or RERANK_DEPTH, name, fused)

    def told(self) -> dict[str, Any]:
        """What an answer says of it."""
        return {"reranker": self.name, "rerank_depth": self.depth, **({"rerank_fused": True} if self.fused else {})}

    def scores(self, questions: Sequence[str], blocks: Sequence[Sequence[Block]]) -> list[NDArray[np.float32]]:
        """The scores of the blocks of each question, float32 [n]. All are read together, so that few are padded."""
        pairs = [
            Pair(asked, each.title, each.text) for asked, own in zip(questions, blocks, strict=True) for each in own
        ]
        return np.split(self.model.scores(pairs), np.cumsum([len(own) for own in blocks])[:-1]) if blocks else []

    def sorted_again(
        self, scores: Scores, read: NDArray[np.float32], logits: NDArray[np.floating[Any]] | None
    ) -> tuple[NDArray[np.int64], Scores]:
        """Return the places of a ranking in their new order, int64 [n], and their scores, float32 [n], which do not rise.

        Equal scores keep their order. The hits that are not read follow as they were, below the lowest score and as far from each other as before;
        where orders are fused they have their rank in the search alone.

        Args:
            scores: of the ranking, float32 [n], not rising.
            read: the reranker's scores of its first hits, float32 [at most n].
            logits: float [n], what the search says of the hits, which is added to likelihoods; None where it is not known.
        """
        if self.model.is_likelihood and logits is not None:
            read = (read + logits[: len(read)]).astype(np.float32)
        order = np.argsort(-read, kind="stable")
        if self.fused:
            fused = 1 / (RRF_K + 1 + np.arange(len(scores)))
            fused[order] += 1 / (RRF_K + 1 + np.arange(len(read)))
            sums = fused.astype(np.float32)
            order = np.argsort(-sums, kind="stable")
            return order, sums[order]
        rest = np.arange(len(read), len(scores))
        after = scores[rest].astype(np.float64)
        if len(order) and len(rest):
            after += float(read[order[-1]]) - 1 - after[0]
        return np.concatenate([order, rest]), np.concatenate([read[order], after.astype(np.float32)])

    def hits(self, questions: Sequence[str], hits: Sequence[Sequence[Hit]]) -> list[list[Hit]]:
        """The hits of each question, the first `depth` of them in their new order; see `sorted_again`."""
        scored = self.scores(questions, [[hit.block for hit in own[: self.depth]] for own in hits])
        found = []
        for own, read in zip(hits, scored, strict=True):
            logits = np.log(np.maximum([hit.probability for hit in own], np.finfo(np.float32).tiny))
            before = np.array([hit.score for hit in own], np.float32)
            places, scores = self.sorted_again(before, read, logits)
            logits = scores.astype(np.float64) / (TEMPERATURE / (RRF_K + 1) if self.fused else 1)
            weights = np.exp(logits - logits.max(initial=-np.inf))
            again = zip(places.tolist(), scores.tolist(), (weights / weights.sum()).tolist(), strict=True)
            found.append([dataclasses.replace(own[at], score=new, probability=share) for at, new, share in again])
        return found


def found_reranker(named: Path | str) -> tuple[Path, str, str]:
    """Return the folder, the kind and the name of what a user named, which is not opened. Raises: see `Reranking.of`."""
    folder = Path(localise(named, (), True, "reranker"))
    kind, name = CROSS_ENCODER, _told(folder)
    if is_artifact(folder):
        artifact = open_artifact(folder)
        folder, kind, name = artifact.path, artifact.kind, f"{artifact.path.parent.name}/{artifact.path.name}"
    if kind not in (known := RERANKERS.names()):
        can = ", ".join(known) or "none, because the room realmctl.extras.rerank is absent"
        raise MismatchError(f"{named} is of the kind {kind}, which does not rerank. Name one of these kinds: {can}.")
    return folder, kind, name


def _told(folder: Path) -> str:
    """The id of a model of the hub, whose folder the hub's cache names, or else the folder's name."""
    held = folder.parent.parent.name
    if folder.parent.name == "snapshots" and held.startswith("models--"):
        return held.removeprefix("models--").replace("--", "/")
    return folder.resolve().name

"""BM25 as a searcher that fine-tuning can train: one learned factor scales its scores, which are too small beside a reader's."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary, writing
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import InputError, as_realmctl_error
from realmctl.index.index_type import open_index
from realmctl.index.merged import best_among
from realmctl.index.protocol import Index, RowIds, Scores, best_rows
from realmctl.log import say
from realmctl.retrieval.names import Bm25Tokens
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.postings import K1, B, Postings, looked_for
from realmctl.retrieval.search.searcher import Searcher
from realmctl.retrieval.search.stems import Stems, check_stemmer


class BM25Searcher(Searcher):
    """Postings of the blocks, and the learned factor that scales their scores."""

    least_score = 0.0  # such a block shares no wordpiece with the question

    def __init__(
        self,
        blocks: Artifact,
        device: str,
        saved: Artifact | None = None,
        stemmer: str | None = None,
        compared: Bm25Tokens = "pieces",
    ) -> None:
        """Load the part `saved` of a qa-model, or compute the postings: of stems where a stemmer is named, else of what is `compared`.

        Raises MismatchError when `saved` was made from other blocks.
        """
        super().__init__(blocks, device)
        self.stems = Stems(stemmer, self.wordpiece) if stemmer or compared == "words" else None
        if saved is None:
            self.postings, self.scale = (
                Postings.of_text(self.corpus, self.wordpiece, self.stems),
                LearnedScale().to(self.device),
            )
        else:
            require_descent(saved, blocks)
            self.postings = Postings.load(saved, len(self.corpus), self._words)
            self.scale = LearnedScale(_saved_scale(saved)).to(self.device)

    @classmethod
    def check(cls, inputs: SearchInputs) -> None:
        """Raise ResourceError without PyStemmer, ConfigError for a stemmer that is not known."""
        check_stemmer("--bm25-stemmer", inputs.bm25_stemmer)

    @classmethod
    def start(cls, inputs: SearchInputs) -> Self:
        return cls(inputs.blocks, inputs.device, stemmer=inputs.bm25_stemmer, compared=inputs.bm25_tokens)

    @classmethod
    def reopen(cls, qa_model: Artifact, inputs: SearchInputs) -> Self:
        """Open a qa-model's BM25. For other blocks of its vocabulary, such as revised ones, the postings are computed anew."""
        saved = qa_model.part("bm25")
        if saved.lineage.get("blocks") == inputs.blocks.content:
            return cls(inputs.blocks, inputs.device, saved)
        require_same_vocabulary(qa_model.part("reader"), inputs.blocks)
        say(f"{qa_model} holds BM25 of other blocks, so BM25 of {inputs.blocks} is computed now")
        made = cls(inputs.blocks, inputs.device)
        made.scale = LearnedScale(_saved_scale(saved)).to(made.device)
        return made

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return a searcher of other blocks with the same learned factor. Their postings are computed, and no index is used."""
        require_same_vocabulary(self.corpus.artifact, blocks)
        other = copy.copy(self)
        other.corpus = Corpus(blocks)
        other.postings = Postings.of_text(other.corpus, other.wordpiece, other.stems)
        return other

    @property
    def _words(self) -> int:
        """One more than the largest wordpiece id."""
        return self.wordpiece.rows

    @property
    def learner(self) -> LearnedScale:
        """The scale."""
        return self.scale

    @property
    def lr_multiplier(self) -> float:
        """A multiplier above 1, because Adam changes a single number too slowly at the reader's learning rate."""
        return self.scale.LR_MULTIPLIER

    def nearest(self, tokens: Sequence[TokenIds], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The best blocks by scaled BM25; equal scores are ordered by rising row."""
        best = [best_rows(self._raw(question), min(k, len(self.corpus))) for question in tokens]
        scores_BK, rows_BK = (np.stack(parts) for parts in zip(*best, strict=True))
        return scores_BK * np.float32(self.scale.value), rows_BK

    def nearest_among(self, tokens: Sequence[TokenIds], k: int, rows: RowIds) -> Iterator[tuple[Scores, RowIds]]:
        for question in tokens:
            scores = self._raw(question) * np.float32(self.scale.value)
            yield from best_among(partial(np.take, scores[None], axis=1), k, rows)

    def _raw(self, question: TokenIds) -> NDArray[np.float32]:
        return self.postings.score(looked_for(question, self.wordpiece, self.stems))

    def scores(self, tokens: Sequence[TokenIds], rows_QK: NDArray[np.int64]) -> Tensor:
        """Scaled BM25, with a gradient for the scale."""
        raw = [self._raw(question)[rows] for question, rows in zip(tokens, rows_QK, strict=True)]
        scaled_QK: Tensor = self.scale(torch.from_numpy(np.stack(raw)).to(self.device))
        return scaled_QK

    def learnt(self) -> Mapping[str, float]:
        """The scale."""
        return {"bm25_scale": self.scale.value}

    def save(self, out: Writer) -> None:
        """Write the part `bm25`: the postings, and bm25.json with the scale."""
        with writing(out.path / "bm25", dataclasses.replace(out.origin, kind="bm25")) as part:
            self.postings.save(part)
            described = {"method": "lucene", "k1": K1, "b": B, "scale": self.scale.value}
            part.file("bm25.json").write_text(json.dumps(described, indent=1) + "\n")


def _saved_scale(part: Artifact) -> float:
    path = part.file("bm25.json")
    try:
        scale = float(json.loads(path.read_text())["scale"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} does not name the scale ({error}). Make {part} again."
        ) from None
    if not 0 < scale < float("inf"):
        raise InputError(f"{path}: the scale {scale} is not a positive number. Make {part} again.")
    return scale


class LearnedScale(nn.Module):
    """The map score -> exp(w) * score with one trained parameter w.

    `LR_MULTIPLIER` is the factor of its learning rate. Adam moves a number by at most the learning rate, and 300 steps
    at 3e-4 cannot halve or double the scale; at 100 times that rate about twenty steps do.
    """

    LR_MULTIPLIER = 100.0

    def __init__(self, start: float = 1.0) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self, score: Tensor) -> Tensor:
        """Return the scaled scores, float32, in the shape of `score`."""
        return self.log_scale.exp() * score.float()

    @property
    def value(self) -> float:
        """The current scale, exp(w)."""
        return math.exp(float(self.log_scale.detach()))

"""A pre-trained model: text search, and masks filled with each candidate, with all of them, and without retrieval.

This is REALM's table 3. Legend: N candidates (the null document first), M masks, V vocabulary, D projection.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.models.families.known import positions_of
from realmctl.models.precision import autocast
from realmctl.models.reader import Reader
from realmctl.models.weights import require_finite_scores
from realmctl.pipeline.fields import check_precision
from realmctl.retrieval.blocks import ArtifactLike, BlocksLike, with_blocks
from realmctl.retrieval.embedding.embedding import embed_questions
from realmctl.retrieval.loaded_index import LoadedIndex
from realmctl.retrieval.loaded_retriever import LoadedRetriever
from realmctl.retrieval.search.block_search import require_count
from realmctl.retrieval.search.candidates import ABSENT, NULL, in_index, titles_and_bodies
from realmctl.retrieval.search.candidates import candidates as distinct_candidates
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.text_search import TextSearch, require_texts
from realmctl.tokens.frame import AROUND_ONE

MASK = "[MASK]"
NULL_TITLE = "(null document)"


@dataclass(frozen=True)
class MaskPrediction:
    """The likeliest wordpiece at one mask, and its probability."""

    wordpiece: str
    probability: float


@dataclass(frozen=True)
class CandidateFilling:
    """The reader's predictions with one candidate.

    `row` is the candidate's row in the blocks, None for the null document. `probability` is p(z|x) among the candidates.
    """

    row: int | None
    title: str
    probability: float
    masks: tuple[MaskPrediction, ...]


@dataclass(frozen=True)
class FilledSentence:
    """The predictions at each mask: without retrieval, with it (the marginal over the candidates), and by candidate."""

    sentence: str
    without_retrieval: tuple[MaskPrediction, ...]
    with_retrieval: tuple[MaskPrediction, ...]
    candidates: tuple[CandidateFilling, ...]

    def __str__(self) -> str:
        def told(masks: Sequence[MaskPrediction]) -> str:
            return "  ".join(f"{mask.wordpiece} ({mask.probability:.3f})" for mask in masks)

        lines = [self.sentence, f"  without retrieval   {told(self.without_retrieval)}"]
        lines.append(f"  with retrieval      {told(self.with_retrieval)}")
        for found in self.candidates:
            lines.append(f"    p(z|x) {found.probability:.3f}   {told(found.masks):<32} {found.title}")
        return "\n".join(lines)


class PretrainedModel(TextSearch):
    """A model made by `pretrain`: retriever, reader and index. It retrieves blocks for a text and fills masks.

    `retriever` and `index` are loaded parts, `reader` is the PyTorch module that fills masks, `blocks` are the texts.

    Examples:
        >>> model = realmctl.load_model("artifacts/model")
        >>> model.search("Who wrote it?", k=5)[0].block.title
        >>> model.fill_mask("The capital of [MASK] is Paris.").with_retrieval[0].wordpiece
    """

    def __init__(self, artifact: Artifact, searcher: DenseSearcher, reader: Reader | None) -> None:
        super().__init__(searcher, searcher.corpus)
        self.artifact, self.dense, self._reader = artifact, searcher, reader
        self.retriever = LoadedRetriever(artifact.part("retriever"), searcher.retriever, searcher.precision)
        self.index = LoadedIndex(searcher.made_of[1], searcher.index)

    @classmethod
    def open(
        cls,
        path: ArtifactLike,
        *,
        blocks: BlocksLike | None = None,
        index: ArtifactLike | None = None,
        device: str = "auto",
        precision: str = "auto",
        opener: Callable[[Path, str], Index] = open_index,
    ) -> Self:
        """Open a pre-trained model with its blocks.

        Args:
            path: a series, a version or an open artifact.
            blocks: a series, a version or opened blocks; by default the series `blocks` beside the model's. Of a series the
                newest version is taken that fits the model and an index.
            index: index to search; by default the model's own, or, for newer blocks, the newest of the series `index` beside
                the blocks.
            device: auto, cpu or cuda:N.
            precision: arithmetic of the encoders and the reader: fp32, bf16, or auto for bf16 where it is faster.
            opener: opens the index in a folder on a device.

        Raises:
            InputError: a file is missing or damaged, or no blocks are named and none are found.
            MismatchError: an artifact is of another kind, or model, index and blocks do not fit each other.
        """
        check_precision(precision)
        artifact, held, other = with_blocks("model", path, blocks, index)
        searcher = DenseSearcher(
            artifact.part("retriever"), other or artifact.part("index"), held, device, precision, opener
        )
        fills_masks = "reader" in artifact.manifest.parts
        reader = Reader.load(artifact.part("reader").path).to(searcher.device) if fills_masks else None
        return cls(artifact, searcher, reader)

    @property
    def reader(self) -> Reader:
        """What fills masks. Raises ConfigError for a model that was pre-trained with a language model as its reader."""
        if self._reader is None:
            raise ConfigError(
                f"{self.artifact} was pre-trained with --reader-lm and fills no masks. Ask it with `ask --reader-lm`, or search it."
            )
        return self._reader

    def over(self, blocks: Artifact, index: Artifact | None, opener: Callable[[Path, str], Index] = open_index) -> Self:
        """Return the same model over other blocks. Both share their weights in memory; see `Searcher.over`."""
        other = copy.copy(self)
        other._searcher = other.dense = self.dense.over(blocks, index, opener)
        other.blocks = other.dense.corpus
        other.index = LoadedIndex(other.dense.made_of[1], other.dense.index)
        return other

    @torch.no_grad()
    def fill_mask(self, sentence: str, candidates: int = 8) -> FilledSentence:
        """Fill every [MASK] of a sentence: without retrieval, with it, and with each candidate alone (REALM, table 3).

        Args:
            sentence: text with one or more [MASK].
            candidates: how many documents are read, the null document included.

        Returns:
            The likeliest wordpiece at each mask with its probability (a special token is none), and p(z|x) of each candidate. `row` of a candidate
            leads to its text, `model.blocks[row]`; it is None for the null document.

        Raises:
            ConfigError: the sentence has no mask or is too long, or there are fewer than two candidates.
        """
        tokens, rows_N = self._candidates(sentence, candidates)
        titles, bodies = titles_and_bodies(self.dense.corpus, rows_N)
        with autocast(self.dense.device, self.dense.precision):
            prior_N = self._prior(tokens, titles, bodies)
            probability_NMV = self._fillings(tokens, bodies)
        found = tuple(
            CandidateFilling(
                None if row == NULL else row,
                NULL_TITLE if row == NULL else self.blocks[row].title,
                prior,
                self._best(probability_MV),
            )
            for row, prior, probability_MV in zip(rows_N.tolist(), prior_N.tolist(), probability_NMV, strict=True)
        )
        marginal_MV = torch.einsum("n,nmv->mv", prior_N, probability_NMV)
        return FilledSentence(sentence, found[0].masks, self._best(marginal_MV), found)

    @torch.no_grad()
    def fill_beside_null(self, sentence: str, candidates: int) -> CandidateFilling:
        """Fill every [MASK] beside the null document alone: the first of `fill_mask`'s candidates. No block is read.

        Raises ConfigError as `fill_mask` does.
        """
        tokens, rows_N = self._candidates(sentence, candidates)
        titles, bodies = titles_and_bodies(self.dense.corpus, rows_N)
        with autocast(self.dense.device, self.dense.precision):
            share = float(self._prior(tokens, titles, bodies)[0])
            probability_MV = self._fillings(tokens, bodies[:1])[0]
        return CandidateFilling(None, NULL_TITLE, share, self._best(probability_MV))

    def _candidates(self, sentence: str, candidates: int) -> tuple[TokenIds, NDArray[np.int64]]:
        """The wordpieces of a sentence, and the rows of the documents to read, the null document first, and no copies.

        Raises ConfigError for a sentence that cannot be filled.
        """
        require_texts([sentence])
        require_count("candidates", candidates)
        if MASK not in sentence or candidates < 2:
            raise ConfigError(
                f'fill-mask needs a sentence with at least one {MASK}, such as "The capital of {MASK} is Paris.", and at '
                f"least 2 candidates, the null document included. It received {candidates} candidates and {sentence[:80]!r}."
            )
        mask = np.array([self.dense.collator.mask_id])
        texts = [text.strip() for text in sentence.split(MASK)]
        parts = [part for piece in self.dense.tokens(texts) for part in (piece, mask)]
        tokens = np.concatenate(parts[:-1])
        between = len(self.dense.collator.frame.between)
        room = positions_of(self.reader.mlm) - self.dense.retriever.block_length - 1 - between
        if len(tokens) > room:
            raise ConfigError(
                f"The sentence has {len(tokens)} wordpieces, and its input with a block has room for {room}. Use a shorter one."
            )
        query_1D = embed_questions(self.dense.retriever, self.dense.collator, [tokens], precision=self.dense.precision)
        found = in_index(self.dense.index, query_1D)
        rows_N = distinct_candidates(found, 1, None, self.dense.corpus.uid, candidates)[0]
        return tokens, rows_N[rows_N != ABSENT]

    def _prior(self, tokens: TokenIds, titles: Sequence[TokenIds], bodies: Sequence[TokenIds]) -> Tensor:
        """p(z|x) with vectors computed now, not the index's; the null document first, float32 [N]."""
        retriever, collator, device = self.dense.retriever, self.dense.collator, self.dense.device
        block_ND = retriever.embed_blocks(retriever.pack_blocks(collator, titles, bodies).to(device))
        query = retriever.pack_queries(collator, [tokens], retriever.longest_question)
        query_1D = retriever.embed_queries(query.to(device))
        return retriever.score(query_1D, block_ND[None])[0].softmax(0).cpu()

    def _fillings(self, tokens: TokenIds, bodies: Sequence[TokenIds]) -> Tensor:
        """p(v|z,x) at each mask under each candidate, float32 [N, M, V]."""
        collator, device = self.dense.collator, self.dense.device
        joint = collator.joint(
            [tokens] * len(bodies), bodies, len(tokens) + AROUND_ONE, self.dense.retriever.block_length
        )
        masks = torch.from_numpy(np.flatnonzero(tokens == collator.mask_id) + 1)[None]
        logits_NMV = self.reader.logits(joint.to(device), masks.to(device), len(bodies))[0]
        require_finite_scores(logits_NMV, self.artifact)
        return logits_NMV.float().softmax(-1).cpu()

    def _best(self, probability_MV: Tensor) -> tuple[MaskPrediction, ...]:
        words = self.dense.wordpiece
        told_MV = probability_MV.index_fill(1, torch.from_numpy(words.not_text(probability_MV.shape[1])), -1.0)
        best, word = told_MV.max(-1)
        names = words.tokens_of(word.tolist())
        return tuple(MaskPrediction(name, p) for p, name in zip(best.tolist(), names, strict=True))

    def __repr__(self) -> str:
        return f"<model over {len(self.blocks)} blocks at {self.artifact.path}>"

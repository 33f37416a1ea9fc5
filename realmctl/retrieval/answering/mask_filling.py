"""Fill the masks of a sentence with each candidate, with all of them, and without retrieval (REALM, table 3).

Legend: N candidates (the null document first), M masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.corpus.corpus import TokenIds
from realmctl.errors import ConfigError
from realmctl.models.precision import autocast
from realmctl.models.reader import Reader
from realmctl.retrieval.search.candidates import NULL, titles_and_bodies
from realmctl.retrieval.search.dense import DenseSearcher

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


@torch.inference_mode()
def fill_masks(searcher: DenseSearcher, reader: Reader, sentence: str, candidates: int) -> FilledSentence:
    """Fill every [MASK] of a sentence, in the searcher's precision.

    Args:
        searcher: the model's retriever and index.
        reader: the model's reader, on the searcher's device.
        sentence: text with one or more [MASK].
        candidates: how many documents are read, the null document included.

    Raises:
        ConfigError: the sentence has no mask or is too long, or there are fewer than two candidates.
    """
    tokens = _checked(searcher, reader, sentence, candidates)
    rows_N = _candidates(searcher, tokens, candidates)
    titles, bodies = titles_and_bodies(searcher.corpus, rows_N)
    with autocast(searcher.device, searcher.precision):
        prior_N = _prior(searcher, tokens, titles, bodies)
        probability_NMV = _fillings(searcher, reader, tokens, bodies)
    marginal_MV = torch.einsum("n,nmv->mv", prior_N, probability_NMV)
    found = [
        CandidateFilling(None if row == NULL else row, _title(searcher, row), prior, _best(searcher, probability_MV))
        for row, prior, probability_MV in zip(rows_N.tolist(), prior_N.tolist(), probability_NMV, strict=True)
    ]
    return FilledSentence(sentence, found[0].masks, _best(searcher, marginal_MV), tuple(found))


@torch.inference_mode()
def fill_beside_null(searcher: DenseSearcher, reader: Reader, sentence: str, candidates: int) -> CandidateFilling:
    """Fill every [MASK] beside the null document alone: the first of `fill_masks`' candidates. No block is read.

    Raises ConfigError as `fill_masks` does.
    """
    tokens = _checked(searcher, reader, sentence, candidates)
    titles, bodies = titles_and_bodies(searcher.corpus, _candidates(searcher, tokens, candidates))
    with autocast(searcher.device, searcher.precision):
        share = float(_prior(searcher, tokens, titles, bodies)[0])
        probability_MV = _fillings(searcher, reader, tokens, bodies[:1])[0]
    return CandidateFilling(None, NULL_TITLE, share, _best(searcher, probability_MV))


def _checked(searcher: DenseSearcher, reader: Reader, sentence: str, candidates: int) -> TokenIds:
    """The wordpieces of a sentence that can be filled. Raises ConfigError for another one."""
    if MASK not in sentence or candidates < 2:
        raise ConfigError(
            f'fill-mask needs a sentence with at least one {MASK}, such as "The capital of {MASK} is Paris.", and at least '
            f"2 candidates, the null document included. It received {candidates} candidates and {sentence[:80]!r}."
        )
    tokens = _with_masks(searcher, sentence)
    _require_room(tokens, reader, searcher.retriever.block_length)
    return tokens


def _candidates(searcher: DenseSearcher, tokens: TokenIds, candidates: int) -> NDArray[np.int64]:
    """Rows of the documents to read, the null document first."""
    return np.concatenate([[NULL], searcher.nearest([tokens], candidates - 1)[1][0]])


def _with_masks(searcher: DenseSearcher, sentence: str) -> TokenIds:
    mask = np.array([searcher.collator.mask_id])
    parts = [part for piece in searcher.tokens(sentence.split(MASK)) for part in (piece, mask)]
    return np.concatenate(parts[:-1])


def _require_room(tokens: TokenIds, reader: Reader, block_length: int) -> None:
    room = reader.mlm.config.max_position_embeddings - block_length
    if len(tokens) + 2 > room:
        raise ConfigError(
            f"The sentence has {len(tokens)} wordpieces, and its input with a block has room for "
            f"{room - 2}. Use a shorter one."
        )


def _prior(searcher: DenseSearcher, tokens: TokenIds, titles: Sequence[TokenIds], bodies: Sequence[TokenIds]) -> Tensor:
    """p(z|x) with vectors computed now, not the index's; the null document first, float32 [N]."""
    retriever = searcher.retriever
    blocks = retriever.pack_blocks(searcher.collator, titles, bodies)
    block_ND = retriever.embed_blocks(blocks.to(searcher.device))
    query = retriever.pack_queries(searcher.collator, [tokens], retriever.longest_question)
    query_1D = retriever.embed_queries(query.to(searcher.device))
    return retriever.score(query_1D, block_ND[None])[0].softmax(0).cpu()


def _fillings(searcher: DenseSearcher, reader: Reader, tokens: TokenIds, bodies: Sequence[TokenIds]) -> Tensor:
    """p(v|z,x) at each mask under each candidate, float32 [N, M, V]."""
    joint = searcher.collator.joint([tokens] * len(bodies), bodies, len(tokens) + 2, searcher.retriever.block_length)
    masks = torch.from_numpy(np.flatnonzero(tokens == searcher.collator.mask_id) + 1)[None]
    return reader.logits(joint.to(searcher.device), masks.to(searcher.device), len(bodies))[0].float().softmax(-1).cpu()


def _best(searcher: DenseSearcher, probability_MV: Tensor) -> tuple[MaskPrediction, ...]:
    best, word = probability_MV.max(-1)
    name = searcher.wordpiece.tokenizer.id_to_token
    return tuple(MaskPrediction(str(name(n)), p) for p, n in zip(best.tolist(), word.tolist(), strict=True))


def _title(searcher: DenseSearcher, row: int) -> str:
    return NULL_TITLE if row == NULL else searcher.corpus.block(row).title

"""Answering: retrieve with the query encoder, read the best blocks, cut the answer out of the original text.

ORQA's inference (Lee et al. 2019; google-research orqa/models/orqa_model.py), but for the answer's text: it is the slice
of the block between the character offsets of the span, so that case, accents and punctuation are the author's.
Legend: B queries, K hits, S spans of a block, T best spans of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifact import Artifact, require_descent, require_same_vocabulary
from realmctl.errors import MismatchError
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.nn.inputs import Packer, block_token_mask
from realmctl.nn.precision import autocast, pick_device
from realmctl.nn.retriever import Retriever
from realmctl.nn.span_head import LOWEST, SpanReader
from realmctl.retrieval.corpus import Corpus, Ids
from realmctl.retrieval.offsets import char_offsets
from realmctl.text import wordpiece

QUESTION_LENGTH = 512
ROWS_READ_AT_ONCE = 40


@dataclass(frozen=True)
class Hit:
    """A retrieved block: its row, inner product, and p(z|x) among the hits."""

    row: int
    score: float
    probability: float


@dataclass(frozen=True)
class Answer:
    """A span of a block: its text, character offsets in the block, span score + retrieval score, and its hit."""

    text: str
    start: int
    end: int
    score: float
    hit: Hit


@dataclass(frozen=True)
class Span:
    """A candidate answer before its text is cut: score with the retrieval's in it, (first, last) wordpiece of the block."""

    score: float
    first: int
    last: int
    hit: Hit


class Searcher:
    """A query encoder with the index of its blocks. Raises MismatchError when the two do not belong together."""

    def __init__(self, retriever: Artifact, index: Artifact, blocks: Artifact, device: str, precision: str) -> None:
        require_same_vocabulary(blocks, retriever)
        require_descent(index, blocks)
        require_index_of(index, retriever)
        self.device, self.precision = pick_device(device), precision
        self.retriever = Retriever.load(retriever.path).to(self.device)
        self.index: Index = open_index(index.path, str(self.device))
        self.corpus, self.wordpiece = Corpus(blocks), wordpiece.load(blocks.path)
        words = self.wordpiece
        self.packer = Packer(words.cls, words.sep, words.pad, words.mask)

    def tokens(self, texts: Sequence[str]) -> list[Ids]:
        """Wordpieces of questions; a literal [MASK] or [SEP] in one is text like any other."""
        return [ids.astype(np.int64) for ids, _ in self.wordpiece.encode_batch(texts)]

    @torch.inference_mode()
    def nearest(self, tokens: Sequence[Ids], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows of the k best blocks of each question, both [B, K]. The retriever must be in evaluation mode."""
        packed = self.packer.query(tokens, QUESTION_LENGTH).to(self.device)
        with autocast(self.device, self.precision):
            query_BD = self.retriever.embed_queries(packed).float().cpu().numpy()
        return self.index.search(query_BD, k)

    def search(self, tokens: Sequence[Ids], k: int) -> list[list[Hit]]:
        """The k best blocks of each question."""
        return [_hits(scores, rows) for scores, rows in zip(*self.nearest(tokens, k), strict=True)]


def _hits(scores: NDArray[np.float32], rows: NDArray[np.int64]) -> list[Hit]:
    weights = np.exp((scores - scores.max()).astype(np.float64))
    shares = weights / weights.sum()
    return [Hit(*hit) for hit in zip(rows.tolist(), scores.tolist(), shares.tolist(), strict=True)]


def require_index_of(index: Artifact, retriever: Artifact) -> None:
    """An index belongs to the retriever that embedded its blocks, and to retrievers fine-tuned from that one."""
    embedded_by = retriever.metrics.get("block_retriever")
    if not embedded_by:
        require_descent(index, retriever)
    elif embedded_by != index.lineage.get("retriever"):
        raise MismatchError(
            f"{index} was not built with the block encoder that {retriever} was fine-tuned beside "
            f"({str(index.lineage.get('retriever'))[:12]} and {embedded_by[:12]}). Use the index in its own model."
        )


class QuestionAnswerer(Searcher):
    """A qa-model with its blocks, ready to answer. `reader_beam`: blocks that are read, by default as in fine-tuning."""

    def __init__(
        self,
        qa_model: Artifact,
        blocks: Artifact,
        *,
        reader_beam: int | None = None,
        device: str = "auto",
        precision: str = "auto",
    ) -> None:
        super().__init__(qa_model.part("retriever"), qa_model.part("index"), blocks, device, precision)
        settings = qa_model.settings
        self.reader_beam = reader_beam or int(settings["reader_beam"])
        self.reader_length, self.span_width = int(settings["reader_length"]), int(settings["span_width"])
        self.reader = SpanReader.load(qa_model.part("reader").path).to(self.device)

    def answer(self, tokens: Sequence[Ids], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts to each question, read from the best `reader_beam` of its hits."""
        rows = [
            (question, hit) for question, found in zip(tokens, hits, strict=True) for hit in found[: self.reader_beam]
        ]
        spans: list[list[Span]] = []
        for start in range(0, len(rows), ROWS_READ_AT_ONCE):
            spans += self._read(rows[start : start + ROWS_READ_AT_ONCE], 2 * top)
        answers, blocks = [], iter(spans)
        for found in hits:
            together = [span for _ in found[: self.reader_beam] for span in next(blocks)]
            answers.append(self._distinct(sorted(together, key=lambda span: -span.score), top))
        return answers

    @torch.inference_mode()
    def _read(self, rows: Sequence[tuple[Ids, Hit]], most: int) -> list[list[Span]]:
        """The best spans of each (question, block), best first."""
        bodies = [self.corpus.tokens(hit.row) for _, hit in rows]
        packed, start_B = self.packer.reader([question for question, _ in rows], bodies, self.reader_length)
        packed, start_B = packed.to(self.device), start_B.to(self.device)
        with autocast(self.device, self.precision):
            score_BS, (first_S, last_S) = self.reader.span_scores(
                packed, block_token_mask(packed, start_B), self.span_width
            )
        score_BT, number_BT = score_BS.topk(min(most, score_BS.shape[1]), dim=1)
        ends = [(ends_S[number_BT] - start_B[:, None]).tolist() for ends_S in (first_S, last_S)]
        return [
            [
                Span(score + hit.score, first, last, hit)
                for score, first, last in zip(*best, strict=True)
                if score > LOWEST / 2
            ]
            for (_, hit), *best in zip(rows, score_BT.tolist(), *ends, strict=True)
        ]

    def _distinct(self, spans: Sequence[Span], top: int) -> list[Answer]:
        answers: dict[str, Answer] = {}
        for span in spans:
            if len(answers) == top:
                break
            answer = self._cut(span)
            answers.setdefault(answer.text, answer)
        return list(answers.values())

    def _cut(self, span: Span) -> Answer:
        """The original characters of a span."""
        offsets = char_offsets(self.corpus, self.wordpiece, span.hit.row)
        start, end = int(offsets[span.first, 0]), int(offsets[span.last, 1])
        return Answer(self.corpus.record(span.hit.row)["text"][start:end], start, end, span.score, span.hit)

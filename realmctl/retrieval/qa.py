"""Answering: retrieve with the query encoder, read the best blocks, cut the answer out of the original text.

ORQA's inference (Lee et al. 2019; google-research orqa/models/orqa_model.py), but for the answer's text: it is the slice
of the block between the character offsets of the span, so that case, accents and punctuation are the author's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from realmctl.artifact import Artifact, require_descent, require_same_vocabulary
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.nn.inputs import Packer, block_token_mask
from realmctl.nn.precision import autocast, pick_device
from realmctl.nn.retriever import Retriever
from realmctl.nn.span_head import LOWEST, SpanReader
from realmctl.retrieval.bert import packer_of, tokenizer_of
from realmctl.retrieval.corpus import Corpus, Ids

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
class ReadingOptions:
    """What `finetune` decided about reading."""

    reader_beam: int
    reader_length: int
    span_width: int


class Searcher:
    """A query encoder with the index of its blocks. Raises MismatchError when the two do not belong together."""

    def __init__(self, retriever: Artifact, index: Artifact, blocks: Artifact, device: str, precision: str) -> None:
        require_same_vocabulary(blocks, retriever)
        require_descent(index, blocks)
        require_index_of(index, retriever)
        self.device, self.precision = pick_device(device), precision
        self.retriever = Retriever.load(retriever.path).to(self.device)
        self.index: Index = open_index(index.path, str(self.device))
        self.corpus, self.tokenizer = Corpus(blocks), tokenizer_of(blocks)
        self.packer: Packer = packer_of(self.tokenizer)

    def tokens(self, texts: Sequence[str]) -> list[Ids]:
        """Wordpieces of questions."""
        return [np.array(e.ids, dtype=np.int64) for e in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    @torch.inference_mode()
    def search(self, tokens: Sequence[Ids], k: int) -> list[list[Hit]]:
        """The k best blocks of each question."""
        packed = self.packer.query(tokens, QUESTION_LENGTH).to(self.device)
        with autocast(self.device, self.precision):
            query_BD = self.retriever.embed_queries(packed).float().cpu().numpy()
        scores_BK, ids_BK = self.index.search(query_BD, k)
        return [_hits(scores, ids) for scores, ids in zip(scores_BK, ids_BK, strict=True)]


def _hits(scores: NDArray[np.float32], ids: NDArray[np.int64]) -> list[Hit]:
    weights = np.exp((scores - scores.max()).astype(np.float64))
    shares = weights / weights.sum()
    return [Hit(int(row), float(score), float(share)) for row, score, share in zip(ids, scores, shares, strict=True)]


def require_index_of(index: Artifact, retriever: Artifact) -> None:
    """An index belongs to the retriever that embedded its blocks, and to retrievers fine-tuned from that one."""
    if retriever.metrics.get("block_retriever"):
        if retriever.metrics["block_retriever"] != index.lineage.get("retriever"):
            from realmctl.errors import MismatchError

            raise MismatchError(
                f"{index} was not built with the block encoder that {retriever} was fine-tuned beside "
                f"({str(index.lineage.get('retriever'))[:12]} and {retriever.metrics['block_retriever'][:12]}). Use the index in its own model."
            )
    else:
        require_descent(index, retriever)


class QuestionAnswerer(Searcher):
    """A qa-model with its blocks, ready to answer."""

    def __init__(self, qa_model: Artifact, blocks: Artifact, *, reader_beam: int | None = None, device: str = "auto", precision: str = "auto") -> None:
        super().__init__(qa_model.part("retriever"), qa_model.part("index"), blocks, device, precision)
        settings = qa_model.settings
        self.options = ReadingOptions(reader_beam or settings["reader_beam"], settings["reader_length"], settings["span_width"])
        self.reader = SpanReader.load(qa_model.part("reader").path).to(self.device)

    def answer(self, tokens: Sequence[Ids], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts to each question, read from the best `reader_beam` of its hits."""
        beams = [list(found[: self.options.reader_beam]) for found in hits]
        rows = [(question, hit) for question, beam in zip(tokens, beams, strict=True) for hit in beam]
        spans: list[list[tuple[float, int, int]]] = []
        for start in range(0, len(rows), ROWS_READ_AT_ONCE):
            spans += self._best_spans(rows[start : start + ROWS_READ_AT_ONCE], 2 * top)
        answers, at = [], 0
        for beam in beams:
            found = [(score + hit.score, first, last, hit) for hit, best in zip(beam, spans[at : at + len(beam)], strict=True) for score, first, last in best]
            at += len(beam)
            answers.append(self._distinct(sorted(found, key=lambda item: -item[0]), top))
        return answers

    @torch.inference_mode()
    def _best_spans(self, rows: Sequence[tuple[Ids, Hit]], most: int) -> list[list[tuple[float, int, int]]]:
        """(score, first, last) of the best spans of each (question, block) in wordpieces of the block."""
        bodies = [self.corpus.tokens(hit.row) for _, hit in rows]
        packed, start_B = self.packer.reader([question for question, _ in rows], bodies, self.options.reader_length)
        packed, start_B = packed.to(self.device), start_B.to(self.device)
        with autocast(self.device, self.precision):
            score_BS, (first_S, last_S) = self.reader.span_scores(packed, block_token_mask(packed, start_B), self.options.span_width)
        best_BK, place_BK = score_BS.float().topk(min(most, score_BS.shape[1]), dim=1)
        offset_B1 = start_B[:, None]
        table = torch.stack([first_S[place_BK] - offset_B1, last_S[place_BK] - offset_B1], -1).tolist()
        return [
            [(score, *span) for score, span in zip(scores, spans, strict=True) if score > LOWEST / 2]
            for scores, spans in zip(best_BK.tolist(), table, strict=True)
        ]

    def _distinct(self, found: Sequence[tuple[float, int, int, Hit]], top: int) -> list[Answer]:
        answers: dict[str, Answer] = {}
        for score, first, last, hit in found:
            text, start, end = cut(self.tokenizer, self.corpus.record(hit.row)["text"], first, last)
            answers.setdefault(text, Answer(text, start, end, score, hit))
            if len(answers) == top:
                break
        return list(answers.values())


def cut(tokenizer: Tokenizer, text: str, first: int, last: int) -> tuple[str, int, int]:
    """The original characters of wordpieces `first` to `last` (inclusive) of a block's text, and their offsets."""
    offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
    start, end = offsets[first][0], offsets[min(last, len(offsets) - 1)][1]
    return text[start:end], start, end


def evidence(hit: Hit, record: dict[str, Any]) -> dict[str, Any]:
    """A hit as DPR's retrieval JSON has it (`ctxs`)."""
    return {"id": record["id"], "title": record["title"], "text": record["text"], "score": hit.score}

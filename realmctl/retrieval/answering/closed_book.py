"""Closed-book answers: the masked language model fills masks after the question, without documents.

This baseline shows what a model of this size has memorised. The masks follow the question, in the same segment. The
model is not told how long the answer is: every number of masks from one to the span width is filled, each mask with its
most probable wordpiece, and the filling with the best mean log-probability wins. The text is the joined wordpieces, so
case and, with an uncased vocabulary, accents are lost; most scorers ignore case.
Legend: B questions, M masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.artifacts.description import describe_qa_model
from realmctl.corpus.corpus import TokenIds
from realmctl.models.inputs import Collator
from realmctl.models.precision import autocast, pick_device
from realmctl.models.reader import Reader
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.answering.answerer import Answer, Answerer, AnsweringOptions
from realmctl.retrieval.search.block_search import Hit
from realmctl.spans.query import hide_answer
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer


class ClosedBookAnswerer(Answerer):
    """A qa-model that answers from its weights alone.

    Only the vocabulary of `blocks` is used. Raises MismatchError when it is not the model's.
    """

    searcher = None
    reader_beam = 0

    def __init__(self, qa_model: Artifact, blocks: Artifact, device: str, precision: str) -> None:
        self.qa_model, reader = qa_model, qa_model.part("reader")
        require_same_vocabulary(blocks, reader)
        self.device, self.precision = pick_device(device), precision
        described = describe_qa_model(qa_model)
        self.reader_length, self.span_width = described.reader_length, described.span_width
        self.reader = Reader.load(reader.path).to(self.device)
        self.wordpiece = Tokenizer.load(blocks.path)
        self.collator = Collator.of(self.wordpiece)

    @classmethod
    def open(cls, qa_model: Artifact, blocks: Artifact, options: AnsweringOptions) -> Self:
        return cls(qa_model, blocks, options.device, options.precision)

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions."""
        return [*self.wordpiece.tokens(texts)]

    def answer(self, tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best fillings, at most one of each length; `hits` are not read."""
        fillings = [self._filled(tokens, masks) for masks in range(1, self.span_width + 1)]
        return [sorted(found, key=lambda answer: -answer.score)[:top] for found in zip(*fillings, strict=True)]

    @torch.no_grad()
    def _filled(self, tokens: Sequence[TokenIds], masks: int) -> list[Answer]:
        """The most probable filling of this number of masks for each question, without special tokens."""
        mask_id, unknown = self.collator.mask_id, [self.collator.mask_id] * masks
        queries = [hide_answer(question, unknown, mask_id, self.reader_length - AROUND_ONE) for question in tokens]
        batch = self.collator.queries(queries, self.reader_length)
        with autocast(self.device, self.precision):
            logits_BMV = self.reader.logits(batch.packed.to(self.device), batch.position_BM.to(self.device), 1)[:, 0]
        require_finite_scores(logits_BMV, self.qa_model)
        log_prob_BMV = logits_BMV.float().log_softmax(-1)
        log_prob_BMV[..., self.wordpiece.not_text(log_prob_BMV.shape[-1])] = -torch.inf
        best_BM, word_BM = log_prob_BMV.max(-1)
        texts = [self.wordpiece.text_of(ids) for ids in word_BM.tolist()]
        return [Answer(text, score) for text, score in zip(texts, best_BM.mean(1).tolist(), strict=True)]

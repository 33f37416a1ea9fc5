"""Answering from blocks: read the best blocks that a searcher found, and cut the answer out of the original text.

This is ORQA's inference (Lee et al. 2019; google-research orqa/models/orqa_model.py) except for the text of the answer. Ours
is the slice of the block between the character offsets of the span, which keeps case, accents and punctuation. The
official text, of whole words joined with spaces, is an option.
Legend: B queries, K hits, S spans of a block, T best spans of a block.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import QA_MODEL, describe_qa_model
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import InputError
from realmctl.execution.batches import batched
from realmctl.models.inputs import block_token_mask
from realmctl.models.precision import autocast, to_device
from realmctl.models.span_head import LOWEST, SpanReader, within_block
from realmctl.models.weights import require_finite_scores
from realmctl.questions.answers import answer_spans
from realmctl.questions.official_text import official_answer_text
from realmctl.retrieval.answering.answerer import Answer, Answerer, AnsweringOptions
from realmctl.retrieval.answering.offsets import char_offsets, covered
from realmctl.retrieval.search.block_search import Hit, SearchInputs
from realmctl.retrieval.search.searcher import Searcher, searcher_type
from realmctl.tokens.scripts import JOINED_LETTER

ROWS_READ_AT_ONCE = 40
Span = tuple[float, int, int]
"""A candidate answer in a block: score of span and block, first and last wordpiece."""


class ExtractiveAnswerer(Answerer):
    """A qa-model's reader with its searcher.

    reader_beam: blocks read per question; None for as many as in fine-tuning.
    """

    searcher: Searcher

    def __init__(
        self,
        qa_model: Artifact,
        searcher: Searcher,
        reader_beam: int | None,
        precision: str,
        official_text: bool = False,
    ) -> None:
        described = describe_qa_model(qa_model)
        self.qa_model = qa_model
        self.searcher, self.precision, self.official_text = searcher, precision, official_text
        self.reader_beam = reader_beam or described.reader_beam
        self.by_block = described.objective == "paper"  # trained with a softmax over the spans of each block
        self.reader = SpanReader.load(qa_model.part("reader").path).to(searcher.device)
        self.reader_length = min(described.reader_length, self.reader.positions)
        self.span_width = described.span_width

    @classmethod
    def open(cls, qa_model: Artifact, blocks: Artifact, options: AnsweringOptions) -> Self:
        name = describe_qa_model(qa_model).searcher
        if name is None:
            raise InputError(f"{qa_model}: {QA_MODEL} names no searcher for the reader. Fine-tune the model again.")
        inputs = SearchInputs(blocks=blocks, index=options.index, device=options.device, precision=options.precision)
        searcher = searcher_type(name).reopen(qa_model, inputs)
        return cls(qa_model, searcher, options.reader_beam, options.precision, options.official_text)

    def with_searcher(self, searcher: Searcher) -> Self:
        """Return an answerer with another searcher of the same vocabulary. Both share one reader in memory."""
        other = copy.copy(self)
        other.searcher = searcher
        return other

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Wordpieces of questions."""
        return self.searcher.tokens(texts)

    def answer(self, tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts to each question, read from the first `reader_beam` hits."""
        rows = [(asked, hit) for asked, own in zip(tokens, hits, strict=True) for hit in own[: self.reader_beam]]
        spans: list[list[Span]] = []
        for part in batched(rows, ROWS_READ_AT_ONCE):
            spans += self._read(part, 2 * top)
        of_block, answers = iter(spans), []
        for own in hits:
            together = [(span, hit) for hit in own[: self.reader_beam] for span in next(of_block)]
            best: dict[str, Answer] = {}
            for span, hit in sorted(together, key=lambda pair: -pair[0][0]):
                if len(best) == top:
                    break
                answer = self._cut(span, hit)
                best.setdefault(answer.text, answer)
            answers.append(list(best.values()))
        return answers

    @torch.no_grad()
    def probability(self, question: TokenIds, hits: Sequence[Hit], text: str) -> float:
        """The probability of an answer: of all spans with this text, among all spans of the blocks read.

        It is a softmax over the scores of spans and blocks together. With the objective `paper` this equals the sum over
        the blocks of p(z|x) p(y|z,x) (REALM, equation 1).
        """
        read = hits[: self.reader_beam]
        if not read:
            return 0.0
        scored = self._scored([(question, hit) for hit in read])
        score_BS, first_BS, last_BS = (part.cpu() for part in scored)
        score_BS = score_BS.double() + torch.tensor([hit.score for hit in read], dtype=torch.double)[:, None]
        share_BS = score_BS.flatten().softmax(0).view_as(score_BS)
        total = 0.0
        for hit, share_S, first_S, last_S in zip(read, share_BS, first_BS.tolist(), last_BS.tolist(), strict=True):
            wanted = self.places(hit, text)
            total += sum(
                share for share, *place in zip(share_S.tolist(), first_S, last_S, strict=True) if tuple(place) in wanted
            )
        return total

    def places(self, hit: Hit, text: str) -> set[tuple[int, int]]:
        """First and last wordpiece of each occurrence of a text in a block."""
        body = hit.block.text
        spans = [*answer_spans(body, [text]), *(found.span() for found in re.finditer(re.escape(text), body))]
        return set(
            covered(char_offsets(self.searcher.corpus, self.searcher.wordpiece, hit.row), spans, self.span_width)
        )

    def _scored(self, rows: Sequence[tuple[TokenIds, Hit]]) -> tuple[Tensor, Tensor, Tensor]:
        """Scores of all spans of each (question, block), with the first and last wordpiece in the block, [B, S]."""
        bodies = [self.searcher.corpus.tokens(hit.row) for _, hit in rows]
        device = self.searcher.device
        packed, start_B = self.searcher.collator.reader([question for question, _ in rows], bodies, self.reader_length)
        packed, start_B = packed.to(device), start_B.to(device)
        with autocast(device, self.precision):
            score_BS, (first_S, last_S) = self.reader.span_scores(
                packed, block_token_mask(packed, start_B), self.span_width
            )
        require_finite_scores(score_BS, self.qa_model)
        if self.by_block:
            score_BS = within_block(score_BS)
        first_BS, last_BS = (to_device(ends_S, device) - start_B[:, None] for ends_S in (first_S, last_S))
        return score_BS, first_BS, last_BS

    @torch.no_grad()
    def _read(self, rows: Sequence[tuple[TokenIds, Hit]], most: int) -> list[list[Span]]:
        """The best spans of each (question, block), best first."""
        score_BS, first_BS, last_BS = self._scored(rows)
        score_BT, number_BT = score_BS.topk(min(most, score_BS.shape[1]), dim=1)
        ends = [ends_BS.gather(1, number_BT).tolist() for ends_BS in (first_BS, last_BS)]
        return [
            [(score + hit.score, first, last) for score, first, last in zip(*best, strict=True) if score > LOWEST / 2]
            for (_, hit), *best in zip(rows, score_BT.tolist(), *ends, strict=True)
        ]

    def _cut(self, span: Span, hit: Hit) -> Answer:
        """The answer of a span: the original characters of its whole words, or with `official_text` the official code's text of it.

        In scripts that join words, or words and particles, a wordpiece is taken for a word: an answer in Korean ends before its particle.
        """
        score, first, last = span
        corpus, wordpiece = self.searcher.corpus, self.searcher.wordpiece
        offsets, pieces = char_offsets(corpus, wordpiece, hit.row), corpus.tokens(hit.row)
        if self.official_text:
            start, end = int(offsets[first, 0]), int(offsets[last, 1])
            own = wordpiece.tokens_of(pieces[first : last + 1])
            return Answer(official_answer_text(hit.block.text, start, end, own, wordpiece), score, hit, start, end)
        continues, text = wordpiece.continues[pieces], hit.block.text
        while first > 0 and continues[first] and not JOINED_LETTER.match(text, int(offsets[first, 0])):
            first -= 1
        while (
            last + 1 < len(pieces) and continues[last + 1] and not JOINED_LETTER.match(text, int(offsets[last + 1, 0]))
        ):
            last += 1
        start, end = int(offsets[first, 0]), int(offsets[last, 1])
        return Answer(text[start:end], score, hit, start, end)

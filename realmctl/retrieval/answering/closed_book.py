"""Closed-book answers: no document, the masked language model fills as many blanks as the answer may have wordpieces.

The baseline that shows what a model of this size knows by heart. The blanks stand behind the question, in its own segment.
An answer is not told its length: every length from one to the span width is filled, each blank with its likeliest
wordpiece, and the filling with the best mean log-probability wins. The text is the wordpieces put together again, so case
and, with an uncased vocabulary, accents are lost; most scorers do not look at case.
Legend: B questions, M masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.nn.inputs import Packed, Packer
from realmctl.nn.precision import autocast, pick_device
from realmctl.nn.reader import Reader
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.corpus import Ids
from realmctl.retrieval.initial_encoder import packer_of
from realmctl.retrieval.search.searcher import Hit
from realmctl.text.tokens import wordpiece


def with_blanks(packer: Packer, questions: Sequence[Ids], blanks: Sequence[int], length: int) -> tuple[Packed, Tensor]:
    """`[CLS] question [MASK] ... [MASK] [SEP]` of at most `length` tokens, the question cut; blanks[i] masks in row i.

    Also where the masks are, int64 [B, M], 0 in a row's unused slots.
    """
    cut = [question[: length - 2 - count] for question, count in zip(questions, blanks, strict=True)]
    rows = [np.append(question, [packer.mask_id] * count) for question, count in zip(cut, blanks, strict=True)]
    position_BM = torch.zeros(len(rows), max(blanks), dtype=torch.long)
    for row, (question, count) in enumerate(zip(cut, blanks, strict=True)):
        position_BM[row, :count] = torch.arange(count) + 1 + len(question)
    return packer.query(rows, length), position_BM


class ClosedBook:
    """A qa-model that has nothing but its weights. `blocks` give only the vocabulary. Raises MismatchError for another's."""

    searcher = None
    reader_beam = 0

    def __init__(self, qa_model: Artifact, blocks: Artifact, device: str, precision: str) -> None:
        reader = qa_model.part("reader")
        require_same_vocabulary(blocks, reader)
        self.device, self.precision = pick_device(device), precision
        self.reader_length = int(qa_model.settings["reader_length"])
        self.span_width = int(qa_model.settings["span_width"])
        self.reader = Reader.load(reader.path).to(self.device)
        self.wordpiece = wordpiece.load(blocks.path)
        self.packer = packer_of(self.wordpiece.tokenizer)

    def tokens(self, texts: Sequence[str]) -> list[Ids]:
        """Wordpieces of questions."""
        return [ids.astype(np.int64) for ids, _ in self.wordpiece.encode_batch(texts)]

    def ask(self, question: str, top: int) -> list[Answer]:
        """The likeliest fillings, one of each length at most."""
        return self.answer(self.tokens([question]), [[]], top)[0]

    def answer(self, tokens: Sequence[Ids], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The best `top` of the fillings of all lengths; there are no hits."""
        fillings = [self._filled(tokens, blanks) for blanks in range(1, self.span_width + 1)]
        return [sorted(found, key=lambda answer: -answer.score)[:top] for found in zip(*fillings, strict=True)]

    @torch.inference_mode()
    def _filled(self, tokens: Sequence[Ids], blanks: int) -> list[Answer]:
        """The likeliest filling of so many blanks for each question; never a special token."""
        packed, position_BM = with_blanks(self.packer, tokens, [blanks] * len(tokens), self.reader_length)
        with autocast(self.device, self.precision):
            logits_BMV = self.reader.logits(packed.to(self.device), position_BM.to(self.device), 1)[:, 0]
        log_prob_BMV = logits_BMV.float().log_softmax(-1)
        words = self.wordpiece
        log_prob_BMV[..., [words.pad, words.unk, words.cls, words.sep, words.mask]] = -torch.inf
        best_BM, word_BM = log_prob_BMV.max(-1)
        texts = [words.tokenizer.decode(ids) for ids in word_BM.tolist()]
        return [Answer(text, score) for text, score in zip(texts, best_BM.mean(1).tolist(), strict=True)]

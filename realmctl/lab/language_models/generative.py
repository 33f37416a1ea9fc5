"""Closed-book answers of a language model: it writes the answer after the question, without documents.

Source: Roberts et al. 2020 (arXiv 2002.08910). Greedy decoding or a beam; the score is the mean log-probability of the
answer's tokens and of the end-of-text token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import QA_MODEL, QaModelDescription, read_description
from realmctl.corpus.corpus import TokenIds
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.model import IGNORED
from realmctl.lab.language_models.models.prompts import prompt_ids
from realmctl.models.precision import autocast, pick_device
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.answering.answerer import Answer, Answerer, AnsweringOptions
from realmctl.retrieval.search.block_search import Hit

PART = "language-model"
"""The part of a qa-model that holds the language model, and the kind of that part."""


@dataclass(frozen=True, kw_only=True)
class GenerativeDescription(QaModelDescription):
    """`qa-model.json` of a language model. `reader_length` and `span_width` are the longest prompt and answer, in tokens.

    prompt: text around `{question}`. beams: width of the beam; 1 is greedy decoding.
    """

    prompt: str
    beams: int


class GenerativeAnswerer(Answerer):
    """A qa-model that writes its answers. The blocks are not read."""

    searcher = None
    reader_beam = 0

    def __init__(self, qa_model: Artifact, device: str, precision: str) -> None:
        self.qa_model = qa_model
        self.described = read_description(qa_model.file(QA_MODEL), GenerativeDescription)
        self.device, self.precision = pick_device(device), precision
        self.model = load_language_model(qa_model.part(PART).path).to(self.device)

    @classmethod
    def open(cls, qa_model: Artifact, blocks: Artifact, options: AnsweringOptions) -> Self:
        return cls(qa_model, options.device, options.precision)

    def tokens(self, texts: Sequence[str]) -> list[TokenIds]:
        """Tokens of the prompts with these questions."""
        prompt, length = self.described.prompt, self.described.reader_length
        return [np.array(prompt_ids(self.model, text, prompt, length), dtype=np.int64) for text in texts]

    def answer(self, tokens: Sequence[TokenIds], hits: Sequence[Sequence[Hit]], top: int) -> list[list[Answer]]:
        """The `top` best answers with different texts, at most as many as beams; `hits` are not read."""
        with autocast(self.device, self.precision):
            made = self.model.generate(tokens, self.described.beams, self.described.span_width, top)
            return [self._scored(source, targets) for source, targets in zip(tokens, made, strict=True)]

    @torch.no_grad()
    def _scored(self, source: TokenIds, targets: Sequence[Sequence[int]]) -> list[Answer]:
        batch = self.model.batch([source] * len(targets), targets).to(self.device)
        log_prob_BL, _ = self.model(batch)
        require_finite_scores(log_prob_BL, self.qa_model)
        scores = (log_prob_BL.sum(1) / (batch.label_BL != IGNORED).sum(1)).tolist()
        answers = [Answer(self.model.text(target), score) for target, score in zip(targets, scores, strict=True)]
        best: dict[str, Answer] = {}
        for answer in sorted(answers, key=lambda answer: -answer.score):
            best.setdefault(answer.text, answer)
        return list(best.values())

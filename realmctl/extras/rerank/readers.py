"""REALM's own readers as rerankers: they read a question and a block together too.

A qa-model's reader scores the spans of a block as answers: a block has the logarithm of their summed exponentials. With the log p(z|x) that the search adds it is the block's
part in the likelihood of some answer, as `ask` computes it. A pre-trained model's reader fills masks: a block has the log-probability of the question's wordpieces, each
hidden once, in HIDINGS inputs that hide every HIDINGS-th one. Titles are not read.
Legend: B pairs, L tokens, S spans, M hidden wordpieces of a question.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Artifact, open_artifact
from realmctl.artifacts.description import describe_qa_model
from realmctl.corpus.corpus import TokenIds
from realmctl.errors import MismatchError
from realmctl.models.families.known import positions_of
from realmctl.models.inputs import Collator, block_token_mask
from realmctl.models.precision import pick_device
from realmctl.models.reader import Reader
from realmctl.models.retriever_settings import read_settings
from realmctl.models.span_head import SpanReader
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.search.reranking import Pair, Reranker
from realmctl.tokens.tokenizer import Tokenizer

ROWS_AT_ONCE = 16
HIDINGS = 4
"""Inputs for each pair. The more there are, the more of the question each one shows."""


class _ByWordpieces(Reranker):
    """Reads wordpieces of pairs, those of like length together."""

    def __init__(self, artifact: Artifact, device: str) -> None:
        self.artifact, self.device = artifact, pick_device(device)
        self.words = Tokenizer.load(artifact.part("reader").path)
        self.collator = Collator.of(self.words)

    @torch.inference_mode()
    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        questions, texts = (
            [*self.words.tokens(each)] for each in ([p.question for p in pairs], [p.text for p in pairs])
        )
        found = np.empty(len(pairs), np.float32)
        order = sorted(range(len(pairs)), key=lambda row: -len(questions[row]) - len(texts[row]))
        for start in range(0, len(order), ROWS_AT_ONCE):
            rows = order[start : start + ROWS_AT_ONCE]
            score_B = self.read([questions[row] for row in rows], [texts[row] for row in rows])
            require_finite_scores(score_B, self.artifact)
            found[rows] = score_B.float().cpu().numpy()
        return found

    @abstractmethod
    def read(self, questions: Sequence[TokenIds], texts: Sequence[TokenIds]) -> Tensor:
        """The scores of pairs, float32 [B]."""


class QaReader(_ByWordpieces):
    """The span reader of a fine-tuned model."""

    is_likelihood = True

    def __init__(self, artifact: Artifact, device: str) -> None:
        described = describe_qa_model(artifact)
        if described.answerer != "extractive":
            raise MismatchError(
                f"{artifact} answers without reading spans of blocks, so it does not rerank. Name another."
            )
        super().__init__(artifact, device)
        self.reader = SpanReader.load(artifact.part("reader").path).to(self.device).eval()
        self.length, self.width = min(described.reader_length, self.reader.positions), described.span_width

    @classmethod
    def open(cls, folder: Path, device: str) -> Self:
        return cls(open_artifact(folder), device)

    def read(self, questions: Sequence[TokenIds], texts: Sequence[TokenIds]) -> Tensor:
        packed, start_B = self.collator.reader(questions, texts, self.length)
        packed, start_B = packed.to(self.device), start_B.to(self.device)
        score_BS, _ = self.reader.span_scores(packed, block_token_mask(packed, start_B), self.width)
        return score_BS.float().logsumexp(1)


class ModelReader(_ByWordpieces):
    """The reader of a pre-trained model."""

    def __init__(self, artifact: Artifact, device: str) -> None:
        if "reader" not in artifact.manifest.parts:
            raise MismatchError(
                f"{artifact} was pre-trained with --reader-lm and fills no masks, so it does not rerank."
            )
        super().__init__(artifact, device)
        self.reader = Reader.load(artifact.part("reader").path).to(self.device).eval()
        self.block_length = read_settings(artifact.part("retriever").path).block_length
        self.room = positions_of(self.reader.mlm) - self.block_length - len(self.collator.frame.between)

    @classmethod
    def open(cls, folder: Path, device: str) -> Self:
        return cls(open_artifact(folder), device)

    def read(self, questions: Sequence[TokenIds], texts: Sequence[TokenIds]) -> Tensor:
        frame = self.collator.frame
        cut = [question[: self.room - frame.around_one] for question in questions]
        longest = max((len(question) for question in cut), default=0)
        score_B = torch.zeros(len(cut), device=self.device)
        for first in range(min(HIDINGS, longest)):
            hidden = [np.arange(first, len(question), HIDINGS) for question in cut]
            masked = [question.copy() for question in cut]
            count = max(1, *map(len, hidden))
            position_BM, target_BM = np.zeros((2, len(cut), count), np.int64)
            for row, (question, places) in enumerate(zip(cut, hidden, strict=True)):
                masked[row][places] = self.collator.mask_id
                position_BM[row, : len(places)] = places + len(frame.before)
                target_BM[row, : len(places)] = question[places]
            packed = self.collator.joint(masked, texts, longest + frame.around_one, self.block_length).to(self.device)
            position, target = (torch.from_numpy(each).to(self.device) for each in (position_BM, target_BM))
            log_prob_BM = self.reader.mlm_log_prob(packed, position, target, 1)[:, 0]
            used_BM = torch.arange(count) < torch.tensor([len(places) for places in hidden])[:, None]
            score_B += log_prob_BM.masked_fill(~used_BM.to(self.device), 0.0).sum(1)
        return score_B

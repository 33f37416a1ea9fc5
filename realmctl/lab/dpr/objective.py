"""Contrast on labelled passages (Karpukhin et al., "Dense Passage Retrieval", EMNLP 2020, section 3.2).

Each question has to find its positive passage among the passages of all questions of the batch and their hard negatives. None of its known positives
is a negative: those of all lines with its id or its text, and their copies. Or it learns a teacher's scores of its own passages (`teachers_loss`).
Legend: B questions, K passages of a question, C passages of all processes, D projection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Writer, tokenizer_folder
from realmctl.corpus.corpus import TokenIds
from realmctl.corpus.document import Document
from realmctl.errors import InputError
from realmctl.extras.ir.labelled import LabelledQuestion, known_answers
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.lab.dpr.settings import DprSettings
from realmctl.log import say, warn
from realmctl.models.in_batch import divergence
from realmctl.models.inputs import Collator
from realmctl.models.precision import full_precision, seed_everything, to_device
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.draws import Stream, generator
from realmctl.training.in_batch import Example, InBatchContrast
from realmctl.training.loop import train
from realmctl.training.starts.retriever import whole_retriever

MOST_NEGATIVES = 32
"""Hard negatives that are kept of a question, the first of the file."""
PassagePieces = tuple[TokenIds, TokenIds]
"""Wordpieces of title and text."""


@dataclass(frozen=True)
class Labelled:
    """A question in wordpieces, with its positive passages and its hard negatives."""

    query: TokenIds
    positives: tuple[PassagePieces, ...]
    negatives: tuple[PassagePieces, ...]
    known: frozenset[int] = frozenset()
    """Names of all passages that answer it, as far as the file knows."""
    scores: tuple[float, ...] = ()
    """A teacher's, of the positives and then of the negatives; empty where it learns without a teacher."""


@dataclass(frozen=True)
class TaughtExample(Example):
    """An example with a teacher's scores of its blocks."""

    scores: tuple[float, ...] = ()


def usable_questions(
    questions: Iterable[LabelledQuestion],
    words: Tokenizer,
    hard_negatives: int,
    dropped: Counter[str],
    taught: bool = False,
) -> list[Labelled]:
    """Return the questions in wordpieces. One without a positive passage, or without a hard negative although some are
    needed, is counted in `dropped`.

    What another line with the same question, by its id or its text, calls positive is no negative of it. taught: only passages with a teacher's
    score are taken.
    """

    def scored(sources: Iterable[Document], scores: Iterable[float | None]) -> list[tuple[PassagePieces, float | None]]:
        pairs = zip(sources, scores, strict=True)
        return [
            ((words.ids(each.title), words.ids(each.text)), score)
            for each, score in pairs
            if score is not None or not taught
        ]

    held, found = [*questions], []
    for item, answers in zip(held, known_answers(held), strict=True):
        known = frozenset(_name(words.ids(each.title), words.ids(each.text)) for each in answers)
        count = len(item.positives)
        scores = item.scores or [None] * (count + len(item.negatives))
        good = scored(item.positives, scores[:count])
        bad = scored(item.negatives, scores[count:]) if hard_negatives else []
        bad = [row for row in bad if _name(*row[0]) not in known][:MOST_NEGATIVES]
        if not item.positives:
            dropped["without a positive passage"] += 1
        elif hard_negatives and not item.negatives:
            dropped["without a hard negative"] += 1
        elif taught and not (good and bad):
            dropped["without a teacher's scores of a positive passage and a hard negative"] += 1
        elif hard_negatives and not bad:
            dropped["whose hard negatives are all known to answer it"] += 1
        else:
            found.append(
                Labelled(
                    words.ids(item.question),
                    tuple(each for each, _ in good),
                    tuple(each for each, _ in bad),
                    known,
                    tuple(score for _, score in (*good, *bad) if taught and score is not None),
                )
            )
    return found


def teachers_loss(score_BK: Tensor, teacher_BK: Tensor, kind: Literal["margin-mse", "kl"]) -> Tensor:
    """Return how far a student's scores of a question's passages, the positive one first, are from a teacher's, a scalar.

    margin-mse: the mean square of the difference of both margins between the positive and each negative (Hofstaetter et al.,
    arXiv:2010.02666). kl: the mean over the questions of KL(teacher || student), both softmaxes over the K passages, in nats (Lin et al.,
    arXiv:2010.11386).
    """
    if kind == "kl":
        return divergence(score_BK, teacher_BK)
    return F.mse_loss(score_BK[:, :1] - score_BK[:, 1:], teacher_BK[:, :1] - teacher_BK[:, 1:])


class LabelledObjective(InBatchContrast):
    """Each question gives an example: a positive passage and `hard_negatives` hard negatives, drawn anew at each step.

    Hard negatives are drawn without repetition where the question has enough of them.

    Raises:
        InputError: There are fewer than two questions.
        ConfigError: The batch cannot be divided among the processes.
    """

    settings: DprSettings

    def __init__(
        self, retriever: Retriever, collator: Collator, questions: list[Labelled], settings: DprSettings
    ) -> None:
        if len(questions) < 2:
            else_ = (
                "or --hard-negatives 0 if the questions have no hard negatives"
                if settings.loss == "contrast"
                else "with a teacher's scores of each question's passages, such as mine-negatives --cross-encoder makes"
            )
            raise InputError(
                f"{len(questions)} question(s) can be used, and at least 2 are needed. Use another file, {else_}."
            )
        self.questions, self.hard_negatives = questions, settings.hard_negatives
        self.blocks_each, self.settings = 1 + settings.hard_negatives, settings
        super().__init__(retriever, collator, settings, count=len(questions))

    def examples(self, step: int) -> list[Example]:
        """The random numbers depend on seed, step and the place in the batch alone."""
        rng = generator(self.settings.seed, Stream.LABELLED_PASSAGES, step)
        seeds = rng.integers(2**32, size=self.order.batch_size)
        numbers = self.order.batch(step)
        return [
            self._example(self.questions[numbers[at]], np.random.default_rng(seeds[at]))
            for at in range(self.own.start, self.own.stop)
        ]

    def _example(self, question: Labelled, rng: np.random.Generator) -> Example:
        first = int(rng.integers(len(question.positives)))
        others = self._drawn(len(question.negatives), rng)
        passages = (question.positives[first], *(question.negatives[each] for each in others))
        names = tuple(_name(*each) for each in passages)
        scores = question.scores and (
            question.scores[first],
            *(question.scores[len(question.positives) + each] for each in others),
        )
        return TaughtExample(question.query, passages, names, known=question.known, scores=scores)

    def _contrast(
        self,
        examples: Sequence[Example],
        name_C: Tensor,
        start_BC: Tensor | None,
        query_BD: Tensor,
        block_XD: Tensor,
        null_ND: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Loss and accuracy; with a teacher among the passages of each question alone."""
        if self.settings.loss == "contrast":
            return super()._contrast(examples, name_C, start_BC, query_BD, block_XD, null_ND)
        with full_precision(query_BD.device):
            block_BKD = block_XD.float().view(len(query_BD), -1, query_BD.shape[1])
            score_BK = torch.einsum("bd,bkd->bk", query_BD.float(), block_BKD)
        teacher_BK = torch.tensor([each.scores for each in examples if isinstance(each, TaughtExample)])
        teacher_BK = to_device(teacher_BK / self.settings.teacher_temperature, score_BK.device)
        accuracy = (score_BK.argmax(1) == 0).float().mean()
        return teachers_loss(score_BK, teacher_BK, self.settings.loss), accuracy

    def _drawn(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return (
            rng.choice(count, self.hard_negatives, replace=count < self.hard_negatives) if count else np.empty(0, int)
        )


def _name(title: TokenIds, body: TokenIds) -> int:
    """The number of a passage, which the wordpieces of its text decide, or those of its title where it has no text."""
    text = np.asarray(body if len(body) else title, np.int64).tobytes()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def train_dpr(settings: DprSettings, out: Writer) -> dict[str, float]:
    """Fine-tune a retriever on questions with labelled passages, and write it. Returns metrics.

    Raises:
        MismatchError: The retriever has no block tower.
        InputError: Fewer than two questions can be used.
    """
    assert settings.retriever is not None
    seed_everything(settings.seed)
    retriever = whole_retriever(settings.retriever)
    words, dropped = Tokenizer.load(tokenizer_folder(settings.retriever)), Counter[str]()
    labelled = training_questions(settings.passages, settings.qrels, settings.corpus)
    taught = settings.loss != "contrast"
    questions = usable_questions(labelled, words, settings.hard_negatives, dropped, taught)
    say(f"{settings.passages}: {len(questions)} questions with labelled passages")
    for reason, count in dropped.items():
        warn(f"{settings.passages}: {count} questions left out: {reason}")
    objective = LabelledObjective(retriever, Collator.of(words), questions, settings)
    metrics = train(objective, settings, out, "dpr-finetune", chance=0.0 if taught else objective.chance)
    retriever.cpu().save(out.path)
    out.copy_folder("tokenizer", tokenizer_folder(settings.retriever))
    return {**metrics, "questions": len(questions)}

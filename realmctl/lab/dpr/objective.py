"""Contrast on labelled passages (Karpukhin et al., "Dense Passage Retrieval", EMNLP 2020, section 3.2).

Each question has to find its positive passage among the passages of all questions of the batch and their hard negatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Writer, tokenizer_folder
from realmctl.corpus.corpus import TokenIds
from realmctl.corpus.document import Document
from realmctl.errors import InputError
from realmctl.extras.ir.labelled import LabelledQuestion
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.lab.dpr.settings import DprSettings
from realmctl.log import say, warn
from realmctl.models.inputs import Collator
from realmctl.models.precision import seed_everything
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


def usable_questions(
    questions: Iterable[LabelledQuestion], words: Tokenizer, hard_negatives: int, dropped: Counter[str]
) -> list[Labelled]:
    """Return the questions in wordpieces. One without a positive passage, or without a hard negative although some are
    needed, is counted in `dropped`.
    """

    def passage(source: Document) -> PassagePieces:
        return words.ids(source.title), words.ids(source.text)

    found = []
    for item in questions:
        if not item.positives:
            dropped["without a positive passage"] += 1
        elif hard_negatives and not item.negatives:
            dropped["without a hard negative"] += 1
        else:
            negatives = item.negatives[: MOST_NEGATIVES if hard_negatives else 0]
            found.append(
                Labelled(words.ids(item.question), tuple(map(passage, item.positives)), tuple(map(passage, negatives)))
            )
    return found


class LabelledObjective(InBatchContrast):
    """Each question gives an example: a positive passage and `hard_negatives` hard negatives, drawn anew at each step.

    Hard negatives are drawn without repetition where the question has enough of them.

    Raises:
        InputError: There are fewer than two questions.
        ConfigError: The batch cannot be divided among the processes.
    """

    def __init__(
        self, retriever: Retriever, collator: Collator, questions: list[Labelled], settings: DprSettings
    ) -> None:
        if len(questions) < 2:
            raise InputError(
                f"{len(questions)} question(s) can be used, and a contrast needs at least 2. Use another file, or --hard-negatives 0 "
                "if the questions have no hard negatives."
            )
        self.questions, self.hard_negatives = questions, settings.hard_negatives
        self.blocks_each = 1 + settings.hard_negatives
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
        positive = question.positives[int(rng.integers(len(question.positives)))]
        negatives = [question.negatives[each] for each in self._drawn(len(question.negatives), rng)]
        passages = (positive, *negatives)
        return Example(question.query, passages, tuple(_name(*each) for each in passages))

    def _drawn(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return (
            rng.choice(count, self.hard_negatives, replace=count < self.hard_negatives) if count else np.empty(0, int)
        )


def _name(title: TokenIds, body: TokenIds) -> int:
    """The number of a passage, which its wordpieces decide."""
    text = np.asarray(title, np.int64).tobytes() + b"\xff" + np.asarray(body, np.int64).tobytes()
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
    questions = usable_questions(labelled, words, settings.hard_negatives, dropped)
    say(f"{settings.passages}: {len(questions)} questions with labelled passages")
    for reason, count in dropped.items():
        warn(f"{settings.passages}: {count} questions left out: {reason}")
    objective = LabelledObjective(retriever, Collator.of(words), questions, settings)
    metrics = train(objective, settings, out, "dpr-finetune", chance=objective.chance)
    retriever.cpu().save(out.path)
    out.copy_folder("tokenizer", tokenizer_folder(settings.retriever))
    return {**metrics, "questions": len(questions)}

"""Contrast through MaxSim: each question finds its positive passage among those of the batch (Khattab and Zaharia 2020; Santhanam et al. 2022).

Legend: B questions, C passages of the batch, L tokens of a question, M tokens of a passage, D width.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from realmctl.artifacts import Writer
from realmctl.corpus.document import Document
from realmctl.errors import InputError
from realmctl.execution.batches import batched, slices
from realmctl.extras.ir.labelled import LabelledQuestion, known_answers
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.lab.late_interaction.encoder import LateEncoder, Side, late_folder, open_late, save_as_started
from realmctl.lab.late_interaction.late_finetune import LateTrainingSettings
from realmctl.lab.late_interaction.maxsim import maxsim
from realmctl.log import say, warn
from realmctl.models.evaluating import computed_again
from realmctl.models.in_batch import in_batch_softmax
from realmctl.models.precision import seed_everything, to_device
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums

MOST_NEGATIVES = 32
"""Hard negatives that are kept of a question, the first of the file."""


@dataclass(frozen=True)
class TextsOfQuestion:
    """A question with texts that answer it and texts that do not. known: all that are known to answer it, as `_plain` gives them."""

    question: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    known: frozenset[str]


@dataclass(frozen=True)
class LatePart:
    """A batch. Question b finds passage b * C / B. counts_BC: bool, which passages are in its softmax."""

    questions: Sequence[str]
    passages: Sequence[str]
    counts_BC: Tensor


def judged_questions(
    questions: Iterable[LabelledQuestion], hard_negatives: int, dropped: Counter[str]
) -> list[TextsOfQuestion]:
    """Return the questions with a positive passage, and with a negative one where some are needed. The others are counted in `dropped`."""
    held, found = [*questions], []
    for item, answers in zip(held, known_answers(held), strict=True):
        known = frozenset(_plain(_text(each)) for each in answers)
        good = tuple(map(_text, item.positives))
        bad = [text for text in map(_text, item.negatives if hard_negatives else ()) if _plain(text) not in known]
        if not good:
            dropped["without a positive passage"] += 1
        elif hard_negatives and not bad:
            dropped["without a hard negative"] += 1
        else:
            found.append(TextsOfQuestion(item.question, good, tuple(bad[:MOST_NEGATIVES]), known))
    return found


def _text(passage: Document) -> str:
    return f"{passage.title} {passage.text}".strip()


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


class LateContrast(Objective[LatePart]):
    """Each question gives a positive passage and `hard_negatives` negatives, drawn anew at each step.

    Raises:
        InputError: there are fewer than two questions.
    """

    def __init__(
        self, encoder: LateEncoder, questions: Sequence[TextsOfQuestion], settings: LateTrainingSettings
    ) -> None:
        if len(questions) < 2:
            raise InputError(
                f"{settings.passages}: {len(questions)} question(s) can be used, and a contrast needs at least 2. Use another file, or --hard-negatives 0 "
                "if the questions have no hard negatives."
            )
        self.modules = nn.ModuleDict({"encoder": encoder})
        self.encoder, self.questions, self.settings = encoder, questions, settings
        self.order = DataOrder(len(questions), min(settings.batch_size, len(questions)), settings.seed)

    @property
    def chance(self) -> float:
        """The loss where all passages of a batch have equal scores, in nats."""
        return math.log(self.order.batch_size * (1 + self.settings.hard_negatives))

    def draw(self, step: int) -> list[LatePart]:
        """Return the batch of a step. It depends on seed and step alone."""
        rng = generator(self.settings.seed, Stream.LABELLED_PASSAGES, step)
        asked = [self.questions[number] for number in self.order.batch(step).tolist()]
        passages = [text for each in asked for text in self._passages(each, rng)]
        plain = [_plain(text) for text in passages]
        own = len(passages) // len(asked)
        counts = [
            [place == row * own or name not in each.known for place, name in enumerate(plain)]
            for row, each in enumerate(asked)
        ]
        return [LatePart([each.question for each in asked], passages, torch.tensor(counts))]

    def _passages(self, question: TextsOfQuestion, rng: np.random.Generator) -> list[str]:
        count, wanted = len(question.negatives), self.settings.hard_negatives
        others = rng.choice(count, wanted, replace=count < wanted).tolist() if wanted else []
        return [
            question.positives[int(rng.integers(len(question.positives)))],
            *(question.negatives[each] for each in others),
        ]

    def loss(self, part: LatePart) -> tuple[Tensor, Sums]:
        """Cross-entropy of the softmax over the passages of the batch, and how often the positive one is first."""
        query_BLD, query_BL = self._vectors(part.questions, "query")
        block_CMD, block_CM = self._vectors(part.passages, "document")
        count = len(part.questions)
        rows = slices(count, self.settings.at_once)
        score_BC = torch.cat(
            [self._in_part(maxsim, query_BLD[some], query_BL[some], block_CMD, block_CM) for some in rows]
        )
        target_B = torch.arange(count, device=score_BC.device) * (len(part.passages) // count)
        score_BC = score_BC.masked_fill(~to_device(part.counts_BC, score_BC.device), torch.finfo(torch.float32).min)
        loss, accuracy = in_batch_softmax(score_BC, target_B)
        return loss, {"accuracy": (accuracy * count, float(count))}

    def _vectors(self, texts: Sequence[str], side: Side) -> tuple[Tensor, Tensor]:
        """Vectors of the tokens of texts, and which of them count, padded to one length."""
        found = [self._in_part(self.encoder, part, side) for part in batched(texts, self.settings.at_once)]
        longest = max(counts.shape[1] for _, counts in found)
        padding = [longest - counts.shape[1] for _, counts in found]
        return (
            torch.cat([F.pad(state, (0, 0, 0, more)) for (state, _), more in zip(found, padding, strict=True)]),
            torch.cat([F.pad(counts, (0, more)) for (_, counts), more in zip(found, padding, strict=True)]),
        )

    def _in_part(self, function: Callable[..., Any], *inputs: Any) -> Any:
        """Compute a part of a batch. Where it is not all of it, the backward pass computes it again instead of keeping its activations."""
        if self.settings.at_once >= self.order.batch_size:
            return function(*inputs)
        return computed_again(function, *inputs)


def train_late(settings: LateTrainingSettings, out: Writer) -> dict[str, float]:
    """Train a late-interaction encoder, and write it as a folder of sentence-transformers. Returns metrics.

    Raises:
        InputError: the start cannot be used, or fewer than two questions can.
    """
    seed_everything(settings.seed)
    start, dropped = late_folder(settings.start, "--start"), Counter[str]()
    encoder = open_late(str(start), "--start")
    labelled = training_questions(settings.passages, settings.qrels, settings.corpus)
    questions = judged_questions(labelled, settings.hard_negatives, dropped)
    say(f"{settings.passages}: {len(questions)} questions with labelled passages")
    for reason, count in dropped.items():
        warn(f"{settings.passages}: {count} questions left out: {reason}")
    objective = LateContrast(encoder, questions, settings)
    metrics = train(objective, settings, out, "late-finetune", chance=objective.chance)
    save_as_started(encoder.cpu(), start, out.path)
    return {**metrics, "questions": len(questions)}

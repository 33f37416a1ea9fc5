"""Localised contrast: a cross-encoder finds the positive passage of a question among its hard negatives (Gao, Dai and Callan, arXiv:2101.08751).

Legend: B questions of a micro-batch, K passages of a question, N = B * K pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from realmctl.artifacts import Writer, open_artifact
from realmctl.artifacts.disk import share_as_folder
from realmctl.artifacts.manifest import is_artifact
from realmctl.corpus.document import Document
from realmctl.errors import InputError, MismatchError
from realmctl.execution import processes
from realmctl.execution.batches import batched
from realmctl.extras.ir.labelled import LabelledQuestion, known_answers
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.extras.rerank.cross_encoder import Classifier, CrossEncoder, packed
from realmctl.extras.rerank.folder import CrossEncoderFolder
from realmctl.lab.cross_encoders.settings import RerankTrainingSettings
from realmctl.log import say, warn
from realmctl.models.foreign_model import open_foreign, save_tokenizer
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import seed_everything
from realmctl.models.weights import require_sound
from realmctl.retrieval.search.reranking import CROSS_ENCODER, Pair
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import DataOrder
from realmctl.training.loop import train
from realmctl.training.objective import Objective, Sums

HEADS = ("classifier.", "pre_classifier.", "head.", "score.", "bert.pooler.")
"""Beginnings of the names of tensors of a head, which an encoder lacks."""
STARTS = ("encoder", CROSS_ENCODER)
"""Kinds of artifacts from which a training starts."""
MOST_NEGATIVES = 64
"""Negatives that are kept of a question, the first of the file."""
LOGIT = {"activation_fn": "torch.nn.modules.linear.Identity"}
"""What config.json says to sentence-transformers: the score is the logit."""


@dataclass(frozen=True)
class RankedQuestion:
    """A question with the passages that answer it and those that do not."""

    question: str
    positives: tuple[Document, ...]
    negatives: tuple[Document, ...]


@dataclass(frozen=True)
class PairsPart:
    """Pairs of B questions, K of each side by side, the positive passage first. of: questions of the batch of this process."""

    pairs: TokenBatch
    questions: int
    of: int


def judged_questions(questions: Iterable[LabelledQuestion], dropped: Counter[str]) -> list[RankedQuestion]:
    """Return the questions with a positive passage and a negative one. No known positive of a question is its negative; see `known_answers`."""
    held, found = [*questions], []
    for question, answers in zip(held, known_answers(held), strict=True):
        known = {_plain(each) for each in answers}
        bad = tuple(each for each in question.negatives if _plain(each) not in known)[:MOST_NEGATIVES]
        if not question.positives:
            dropped["without a positive passage"] += 1
        elif not bad:
            dropped["without a hard negative"] += 1
        else:
            found.append(RankedQuestion(question.question, question.positives, bad))
    return found


def _plain(passage: Document) -> str:
    return " ".join((passage.text if passage.text.strip() else passage.title).lower().split())


class LocalContrast(Objective[PairsPart]):
    """Each question gives its positive passage and `hard_negatives` negatives, drawn anew at each step.

    Raises:
        InputError: there is no question.
        ConfigError: the batch cannot be divided among the processes.
    """

    def __init__(
        self, reader: CrossEncoder, questions: Sequence[RankedQuestion], settings: RerankTrainingSettings
    ) -> None:
        if not questions:
            raise InputError(
                f"{settings.passages}: no question has both a positive passage and a hard negative. Positive passages are judged above 0: "
                "check the file, or the judgements of --qrels. `realmctl mine-negatives` finds hard negatives."
            )
        self.modules = nn.ModuleDict({"reader": reader.net})
        self.reader, self.questions, self.settings = reader, questions, settings
        self.order = DataOrder(len(questions), min(settings.batch_size, len(questions)), settings.seed)
        self.own = processes.share(self.order.batch_size, "questions")

    def draw(self, step: int) -> list[PairsPart]:
        """Return this process's pairs of a step. They depend on seed, step and the place in the batch alone."""
        seeds = generator(self.settings.seed, Stream.LABELLED_PASSAGES, step).integers(
            2**32, size=self.order.batch_size
        )
        numbers = self.order.batch(step)
        own = [
            self.pairs(self.questions[numbers[at]], np.random.default_rng(seeds[at]))
            for at in range(self.own.start, self.own.stop)
        ]
        parts = []
        for part in batched(own, self.settings.at_once):
            encoded = self.reader.encoded([pair for each in part for pair in each])
            parts.append(PairsPart(packed(encoded, self.reader.tokenizer.pad_token_id), len(part), len(own)))
        return parts

    def pairs(self, question: RankedQuestion, rng: np.random.Generator) -> list[Pair]:
        """The pairs of a question at a step, the positive passage first."""
        count, wanted = len(question.negatives), self.settings.hard_negatives
        others = rng.choice(count, wanted, replace=count < wanted).tolist()
        positive = question.positives[int(rng.integers(len(question.positives)))]
        passages = [positive, *(question.negatives[each] for each in others)]
        return [Pair(question.question, each.title, each.text) for each in passages]

    def loss(self, part: PairsPart) -> tuple[Tensor, Sums]:
        """Cross-entropy of the softmax over the passages of each question, and how often the positive one is first."""
        device = next(self.reader.net.parameters()).device
        score_BK = self.reader.net(part.pairs.to(device)).float().view(part.questions, -1)
        loss = F.cross_entropy(score_BK, score_BK.new_zeros(part.questions, dtype=torch.long), reduction="sum")
        right = (score_BK.argmax(1) == 0).double().sum()
        return loss / part.of / processes.world_size(), {"accuracy": (right, float(part.questions))}


class _OneLabel:
    """A sequence-classification model with one label, whatever its config.json says."""

    @staticmethod
    def from_config(config: Any) -> Any:
        config.num_labels = 1
        return AutoModelForSequenceClassification.from_config(config)

    @staticmethod
    def from_pretrained(folder: str, **options: Any) -> Any:
        options["config"].num_labels = 1
        model, report = AutoModelForSequenceClassification.from_pretrained(folder, **options)
        if other := sorted(report["mismatched_keys"]):
            raise ValueError(
                f"{other[0][0]} has the shape {[*other[0][1]]} in place of {[*other[0][2]]}, and a cross-encoder of one label is trained"
            )
        return model, report


def train_cross_encoder(settings: RerankTrainingSettings, out: Writer) -> dict[str, float]:
    """Train a cross-encoder and write it as a folder of transformers, which sentence-transformers loads too. Returns metrics.

    Raises:
        InputError: the start has no encoder that can be used, or no question can.
        MismatchError: the start is an artifact of another kind.
    """
    seed_everything(settings.seed)
    folder, flag = Path(settings.start), f"--start {settings.start}"
    if is_artifact(folder) and (kind := open_artifact(folder).kind) not in STARTS:
        raise MismatchError(
            f"{flag} is of the kind {kind}, and one of these is needed: {', '.join(STARTS)}. `realmctl export` makes a folder of a retriever, which is a start too."
        )
    tokenizer, net, longest = open_foreign(folder, _OneLabel, "BERT or cross-encoder", flag, drawn=HEADS)
    if settings.max_length > longest:
        warn(f"{flag} reads {longest} wordpieces at most, so --max-length {settings.max_length} has no more")
    length, dropped = min(settings.max_length, longest), Counter[str]()
    reader = CrossEncoder(Classifier(net), tokenizer, length, CrossEncoderFolder(), settings.device)
    questions = judged_questions(training_questions(settings.passages, settings.qrels, settings.corpus), dropped)
    say(f"{settings.passages}: {len(questions)} questions with labelled passages")
    for reason, count in dropped.items():
        warn(f"{settings.passages}: {count} questions left out: {reason}")
    metrics = train(
        LocalContrast(reader, questions, settings),
        settings,
        out,
        "rerank-finetune",
        chance=float(np.log(1 + settings.hard_negatives)),
    )
    save_cross_encoder(net.cpu(), tokenizer, length, out.path)
    return {**metrics, "questions": len(questions)}


def save_cross_encoder(net: Any, tokenizer: Any, length: int, folder: Path) -> None:
    """Write config.json, model.safetensors and the files of the tokenizer. Raises QualityError for a weight that is not finite."""
    require_sound(net.state_dict(), folder / "model.safetensors")
    net.config.sentence_transformers = LOGIT
    net.save_pretrained(folder)
    tokenizer.model_max_length = length
    save_tokenizer(tokenizer, folder)
    for path in folder.glob("*.safetensors"):
        share_as_folder(path)

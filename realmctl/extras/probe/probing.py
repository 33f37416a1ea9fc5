"""What a model's weights alone say about an answer. Legend: M masks, V vocabulary."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from realmctl.artifacts import Artifact, open_artifact, require_same_vocabulary
from realmctl.artifacts.description import describe_qa_model
from realmctl.errors import ConfigError, MismatchError
from realmctl.models.families.known import positions_of
from realmctl.models.inputs import Collator
from realmctl.models.reader import Reader
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.answering.asking import Asked
from realmctl.retrieval.answering.qa_model import AnsweredQuestion
from realmctl.spans.query import hide_answer
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer

MAX_PROBED = 64
"""Longest answer of a probe, in wordpieces."""


@dataclass(frozen=True)
class Probe:
    """What a model's weights alone say about an answer, without any document.

    `log_probability`: of the answer's wordpieces, each at its own mask, summed. `best` is the most probable filling of the
    same number of masks, with its log-probability.
    """

    model: str
    answer: str
    wordpieces: int
    log_probability: float
    best: str
    best_log_probability: float

    def __str__(self) -> str:
        return (
            f"in the weights alone ({self.model}): {self.answer!r} has log-probability {self.log_probability:.2f}; the most "
            f"probable filling of {self.wordpieces} wordpieces is {self.best!r} with {self.best_log_probability:.2f}"
        )


@dataclass(frozen=True)
class Probed(Asked):
    """An answered question with what the weights of another model say of its best answer."""

    probe: Probe | None = None

    def record(self) -> dict[str, object]:
        """The JSON of `ask`."""
        return {**super().record(), **({"probe": dataclasses.asdict(self.probe)} if self.probe else {})}

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *([str(self.probe)] if self.probe else [])])


def probed(asked: AnsweredQuestion, model: Path, blocks: Path) -> AnsweredQuestion:
    """Return the answered question with what the weights of a model say of its best answer; as it is, without an answer."""
    if not asked.answers:
        return asked
    told = probe_of(open_artifact(model), open_artifact(blocks), asked.question, asked.best.text)
    return Probed(**{each.name: getattr(asked, each.name) for each in dataclasses.fields(asked)}, probe=told)


@torch.no_grad()
def probe_of(model: Artifact, blocks: Artifact, question: str, answer: str) -> Probe:
    """Return the probability of an answer without documents.

    Masks follow the question, one for each wordpiece of the answer. A pre-trained model reads question and null document;
    a closed-book qa-model reads the question as it did in fine-tuning.

    Args:
        model: a pre-trained model, or a qa-model fine-tuned with --retrieval none.
        blocks: blocks of the same vocabulary.
        question: the question.
        answer: the answer.

    Raises:
        MismatchError: the model has no masked-language-model head, or another vocabulary.
        ConfigError: the answer has no wordpiece or too many.
    """
    closed_book = model.kind == "qa-model" and describe_qa_model(model).searcher is None
    if model.kind != "model" and not closed_book:
        raise MismatchError(
            f"--probe {model}: a probe needs a model that can fill masks. Name a pre-trained model, or a qa-model that was "
            "fine-tuned with --retrieval none."
        )
    part = model.part("reader")
    require_same_vocabulary(blocks, part)
    words = Tokenizer.load(blocks.path)
    collator = Collator.of(words)
    ids, wanted = words.tokens([question, answer])
    if not 0 < len(wanted) <= MAX_PROBED:
        raise ConfigError(f"The answer {answer[:80]!r} has {len(wanted)} wordpieces; a probe takes 1 to {MAX_PROBED}.")
    reader = Reader.load(part.path)
    room = positions_of(reader.mlm) - len(collator.frame.between)
    query, nothing = hide_answer(ids, wanted, collator.mask_id, room - AROUND_ONE), np.empty(0, np.int64)
    packed = collator.query([query.tokens], room) if closed_book else collator.joint([query.tokens], [nothing], room, 1)
    position_1M = torch.from_numpy(query.places + 1)[None]
    log_prob_MV = reader.logits(packed, position_1M, 1)[0, 0].float().log_softmax(-1)
    require_finite_scores(log_prob_MV, model)
    own = log_prob_MV.gather(1, torch.from_numpy(wanted)[:, None]).sum()
    log_prob_MV[:, words.not_text(log_prob_MV.shape[-1])] = -torch.inf
    best_M, word_M = log_prob_MV.max(-1)
    return Probe(str(model.path), answer, len(wanted), float(own), words.text_of(word_M.tolist()), float(best_M.sum()))

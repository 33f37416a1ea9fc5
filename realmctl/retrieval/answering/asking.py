"""One question (`realmctl ask`), what its answer is without some blocks, and what a model's weights alone say of it.

The last two are what a takedown request needs: which blocks were left out, what the answer is now, how probable the former
answer still is, and how probable a model finds it without any document. Legend: M masks, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from realmctl.artifacts import Artifact, open_artifact, require_same_vocabulary
from realmctl.artifacts.description import describe_qa_model
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.models.families.known import positions_of
from realmctl.models.inputs import Collator
from realmctl.models.reader import Reader
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.qa_model import AnsweredQuestion, QaModel, answer_record, answers_text
from realmctl.retrieval.search.reranking import Reranking
from realmctl.spans.query import hide_answer
from realmctl.tokens.frame import AROUND_ONE
from realmctl.tokens.tokenizer import Tokenizer

MAX_PROBED = 64
"""Longest answer of a probe, in wordpieces."""


@dataclass(frozen=True)
class AnswerAblation:
    """An answer before and after blocks were left out.

    `blocks`: the ids left out. `answers`: the best answers without them. `text`: the best answer with them, and its
    probability among all spans read, before and after. `blocks_with_answer`: ids of the blocks read afterwards that still
    hold it.
    """

    blocks: tuple[str, ...]
    answers: tuple[Answer, ...]
    text: str | None
    probability_before: float
    probability_after: float
    blocks_with_answer: tuple[str, ...]

    def __str__(self) -> str:
        count, named = len(self.blocks), ", ".join([*self.blocks[:5], *(["..."] if len(self.blocks) > 5 else [])])
        lines = [f"without {count} block{'s' if count > 1 else ''} ({named}):"]
        lines += [f"   {line}" for line in answers_text(self.answers).split("\n")]
        if self.text is not None:
            lines.append(
                f"   probability of {self.text!r}: {self.probability_before:.4f} before, {self.probability_after:.4f} "
                f"without; blocks read that still hold it: {', '.join(self.blocks_with_answer) or 'none'}"
            )
        return "\n".join(lines)


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
class Asked(AnsweredQuestion):
    """An answered question, what its answers are without some blocks, and what the weights of another model say."""

    without: AnswerAblation | None = None
    probe: Probe | None = None

    def record(self) -> dict[str, object]:
        """The JSON of `ask`."""
        found = super().record()
        if self.without is not None:
            found["without"] = {**vars(self.without), "answers": [*map(answer_record, self.without.answers)]}
        if self.probe is not None:
            found["probe"] = dataclasses.asdict(self.probe)
        return found

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(str(one) for one in (self.without, self.probe) if one is not None)])


def ask(
    question: str,
    qa_model: Path,
    blocks: Path,
    top: int,
    *,
    index: Path | None = None,
    without: Sequence[str] = (),
    probe: Path | None = None,
    rerank: str | None = None,
    rerank_depth: int | None = None,
) -> Asked:
    """The `top` best answers to a question, each with its evidence.

    Args:
        question: the question.
        qa_model: the fine-tuned model.
        blocks: the blocks that it was fine-tuned with, or those of `index`.
        top: the number of answers.
        index: index to search instead of the qa-model's own, such as one of revised blocks.
        without: ids of blocks, ids of documents, or titles of documents; the result then has the answers without them too.
        probe: a model whose weights alone are asked for the best answer.
        rerank, rerank_depth: what chooses the blocks that are read, among so many; see `Reranking.of`.

    Raises:
        ConfigError: the question is empty.
        InputError: a name in `without` is that of no block and no document.
    """
    if not question.strip():
        raise ConfigError('ask needs a question, such as realmctl ask "Who wrote it?".')
    qa = QaModel.open(qa_model, blocks=blocks, index=index)
    qa.reranking = Reranking.of(rerank, rerank_depth)
    found = qa.ask(question, top)
    ablation = told = None
    if without:
        ablation = answered_without(qa, question, named_rows(qa.blocks, without), top)
    if probe is not None and found.answers:
        told = probe_of(open_artifact(probe), qa.blocks.artifact, question, found.best.text)
    return Asked(question, found.answers, found.hits, found.reranking, ablation, told)


def answered_without(qa: QaModel, question: str, rows: Sequence[int], top: int) -> AnswerAblation:
    """Answer a question again without the blocks in some rows, ascending.

    Raises ConfigError if the qa-model reads no blocks.
    """
    answerer = qa.answerer
    if not isinstance(answerer, ExtractiveAnswerer):
        raise ConfigError(
            "This qa-model reads no blocks, so none can be left out. `realmctl ask --probe` shows what weights say."
        )
    tokens, k = answerer.tokens([question]), answerer.reader_beam
    before, after = (qa.retrieved([question], tokens, k, left_out) for left_out in ((), rows))
    best = next(iter(answerer.answer(tokens, before, 1)[0]), None)
    text = best.text if best else None
    share_before, share_after = (
        answerer.probability(tokens[0], hits[0], text) if text else 0.0 for hits in (before, after)
    )
    return AnswerAblation(
        tuple(qa.blocks[row].id for row in rows),
        tuple(answerer.answer(tokens, after, top)[0]),
        text,
        share_before,
        share_after,
        tuple(hit.block.id for hit in after[0] if text and answerer.places(hit, text)),
    )


def named_rows(corpus: Corpus, names: Sequence[str]) -> list[int]:
    """Rows of the blocks with these ids, or of documents with these ids or titles, ascending.

    Raises InputError for a name that no block and no document has.
    """
    found: dict[str, list[int]] = {name: [] for name in names}
    for row, block in enumerate(corpus):
        for name in {block.id, block.document, block.title} & found.keys():
            found[name].append(row)
    if unknown := [name for name, rows in found.items() if not rows]:
        raise InputError(
            f"{corpus.artifact} has no block and no document named {', '.join(map(repr, unknown))}. Name the id of a "
            "block, as `ask --json` prints it, or the id or title of a document."
        )
    return sorted({row for rows in found.values() for row in rows})


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

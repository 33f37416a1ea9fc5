"""From a request to its reply: each function computes the replies of several requests together."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.retrieval.answering import receipts
from realmctl.retrieval.answering.answerer import Answer, Answerer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.answering.mask_filling import MASK, MaskPrediction, fill_beside_null, fill_masks
from realmctl.retrieval.search.searcher import Hit
from realmctl.serve.messages import (
    AnswerReply,
    Ask,
    AskReply,
    CandidateReply,
    Fill,
    FillReply,
    LeaveOut,
    LeaveOutReply,
    MaskReply,
    WithoutRetrieval,
)
from realmctl.serve.models import Models

COMPARED_CANDIDATES = 8
MOST_MASKS = 16


def ask(models: Models, asked: Sequence[Ask]) -> list[AskReply]:
    """Answer questions, all with the same `top`, in one batch.

    Raises ConfigError if there is no qa-model.
    """
    answerer = _answerer(models)
    tokens = answerer.tokens([one.question for one in asked])
    searcher, top = answerer.searcher, asked[0].top
    hits = searcher.search(tokens, answerer.reader_beam) if searcher else [[] for _ in tokens]
    found = answerer.answer(tokens, hits, top)
    return [
        AskReply(
            version=models.version.name,
            answers=[_answer(models.corpus, answer) for answer in answers],
            candidates=[_candidate(models.corpus, hit) for hit in own[: answerer.reader_beam]],
            without_retrieval=_without_retrieval(models, one, answers) if one.compare else None,
        )
        for one, own, answers in zip(asked, hits, found, strict=True)
    ]


def fill(models: Models, asked: Sequence[Fill]) -> list[FillReply]:
    """Fill the masks of sentences, one at a time.

    Raises ConfigError if there is no pre-trained model, or a sentence has no mask or is too long.
    """
    return [_fill(models, one) for one in asked]


def leave_out(models: Models, asked: Sequence[LeaveOut]) -> list[LeaveOutReply]:
    """Answer questions again without some blocks, one at a time.

    Raises:
        ConfigError: there is no qa-model, or it reads no blocks.
        InputError: a name is that of no block and no document.
    """
    return [_leave_out(models, one) for one in asked]


def _answerer(models: Models) -> Answerer:
    if models.answerer is None:
        raise ConfigError("This server has no qa-model, so it answers no question. Fill a [MASK] instead.")
    return models.answerer


def _without_retrieval(models: Models, asked: Ask, answers: Sequence[Answer]) -> WithoutRetrieval | None:
    """What the weights say: the closed-book model's answers, or the pre-trained model's filling beside the null document.

    The pre-trained model reads the question with as many masks as the best answer has wordpieces.
    """
    filled = None
    if models.filler is not None and answers:
        [wordpieces] = models.filler.searcher.tokens([answers[0].text])
        masks = " ".join([MASK] * max(1, min(len(wordpieces), MOST_MASKS)))
        sentence = f"{asked.question.replace(MASK, ' ')} {masks}"
        filled = fill_beside_null(models.filler.searcher, models.filler.reader, sentence, COMPARED_CANDIDATES)
    share = None if filled is None else filled.probability
    if models.closed_book is not None:
        found = [_answer(models.corpus, answer) for answer in models.closed_book.ask(asked.question, asked.top)]
        return WithoutRetrieval(source="closed-book model", answers=found, null_document=share)
    if filled is None:
        return None
    return WithoutRetrieval(source="null document", answers=[_joined(models, filled.masks)], null_document=share)


def _joined(models: Models, masks: Sequence[MaskPrediction]) -> AnswerReply:
    """The filling beside the null document as one answer, with its mean log-probability as for a closed-book answer."""
    assert models.filler is not None
    tokenizer = models.filler.searcher.wordpiece.tokenizer
    ids = [tokenizer.token_to_id(mask.wordpiece) for mask in masks]
    score = sum(math.log(max(mask.probability, sys.float_info.min)) for mask in masks) / len(masks)
    return AnswerReply(text=tokenizer.decode([number for number in ids if number is not None]), score=score)


def _fill(models: Models, asked: Fill) -> FillReply:
    if models.filler is None:
        raise ConfigError("This server has no pre-trained model, so it fills no [MASK]. Ask a question instead.")
    if asked.sentence.count(MASK) > MOST_MASKS:
        raise ConfigError(f"The sentence has {asked.sentence.count(MASK)} masks, and at most {MOST_MASKS} are filled.")
    filled = fill_masks(models.filler.searcher, models.filler.reader, asked.sentence, asked.candidates)
    return FillReply(
        version=models.version.name,
        with_retrieval=_masks(filled.with_retrieval),
        without_retrieval=_masks(filled.without_retrieval),
        candidates=[
            _read(models.corpus, one.row, one.probability, _masks(one.masks), one.title) for one in filled.candidates
        ],
    )


def _leave_out(models: Models, asked: LeaveOut) -> LeaveOutReply:
    answerer = _answerer(models)
    if not isinstance(answerer, ExtractiveAnswerer):
        raise ConfigError("This qa-model reads no blocks, so no block can be left out.")
    known = [models.row_of.get(name) for name in asked.without]
    rows = sorted({row for row in known if row is not None})
    if None in known:
        rows = receipts.named_rows(models.corpus, asked.without)
    found = receipts.receipt_of_rows(answerer, asked.question, rows, asked.top)
    return LeaveOutReply(
        version=models.version.name,
        left_out=list(found.blocks),
        answer=found.text,
        probability_before=found.probability_before,
        probability_after=found.probability_after,
        still_held_by=list(found.blocks_with_answer),
        answers=[_answer(models.corpus, answer) for answer in found.answers],
    )


def _answer(corpus: Corpus, answer: Answer) -> AnswerReply:
    evidence = answer.evidence
    if evidence is None:
        return AnswerReply(text=answer.text, score=answer.score)
    block = corpus.block(evidence.hit.row).id
    return AnswerReply(text=answer.text, score=answer.score, block=block, start=evidence.start, end=evidence.end)


def _candidate(corpus: Corpus, hit: Hit) -> CandidateReply:
    return _read(corpus, hit.row, hit.probability, [], "")


def _read(corpus: Corpus, row: int | None, probability: float, masks: list[MaskReply], title: str) -> CandidateReply:
    if row is None:
        return CandidateReply(block=None, document=None, title=title, text="", probability=probability, masks=masks)
    block = corpus.block(row)
    return CandidateReply(
        block=block.id,
        document=block.document,
        title=block.title,
        text=block.text,
        probability=probability,
        masks=masks,
    )


def _masks(masks: Sequence[MaskPrediction]) -> list[MaskReply]:
    return [MaskReply(wordpiece=mask.wordpiece, probability=mask.probability) for mask in masks]

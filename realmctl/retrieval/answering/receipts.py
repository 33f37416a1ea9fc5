"""Receipts of an answer: what it is without some blocks, and what the weights alone say.

A receipt shows what a takedown request needs: which blocks were left out, what the answer is now, how probable the former
answer still is, and how probable a model finds it without any document. Legend: M masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.artifacts.description import describe_qa_model
from realmctl.corpus.corpus import Corpus, TokenIds
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.models.reader import Reader
from realmctl.retrieval.answering.answerer import Answer, Answerer
from realmctl.retrieval.answering.extractive import ExtractiveAnswerer
from realmctl.retrieval.initial_encoder import packer_of
from realmctl.retrieval.search.searcher import Hit, Searcher, hits_of
from realmctl.spans.query import hide_answer
from realmctl.tokens import wordpiece

MAX_PROBED = 64
"""Longest answer of a probe, in wordpieces."""


@dataclass(frozen=True)
class Receipt:
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


def receipt(answerer: Answerer, question: str, without: Sequence[str], top: int) -> Receipt:
    """Answer a question again without some blocks.

    Args:
        answerer: a qa-model that reads blocks.
        question: the question.
        without: ids of blocks, ids of documents, or titles of documents to leave out.
        top: the number of answers.

    Raises:
        ConfigError: the qa-model reads no blocks.
        InputError: a name is that of no block and no document.
    """
    if not isinstance(answerer, ExtractiveAnswerer):
        raise ConfigError(
            "--without leaves out blocks, and this qa-model reads none. Use --probe to see what its weights say."
        )
    return receipt_of_rows(answerer, question, named_rows(answerer.searcher.corpus, without), top)


def receipt_of_rows(answerer: ExtractiveAnswerer, question: str, rows: Sequence[int], top: int) -> Receipt:
    """`receipt` for the rows of the blocks to leave out, ascending."""
    searcher = answerer.searcher
    tokens = answerer.tokens([question])
    before = searcher.search(tokens, answerer.reader_beam)
    after = [hits_without(searcher, tokens[0], answerer.reader_beam, frozenset(rows))]
    best = next(iter(answerer.answer(tokens, before, 1)[0]), None)
    text = best.text if best else None
    share_before, share_after = (
        answerer.probability(tokens[0], found[0], text) if text else 0.0 for found in (before, after)
    )
    block = searcher.corpus.block
    holding = [hit.row for hit in after[0][: answerer.reader_beam] if text and answerer.places(hit.row, text)]
    return Receipt(
        tuple(block(row).id for row in rows),
        tuple(answerer.answer(tokens, after, top)[0]),
        text,
        share_before,
        share_after,
        tuple(block(row).id for row in holding),
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


def hits_without(searcher: Searcher, question: TokenIds, k: int, removed: frozenset[int]) -> list[Hit]:
    """The k best blocks for a question that are not in `removed`, with p(z|x) among them."""
    scores, rows = searcher.nearest([question], k + len(removed))
    kept = [place for place, row in enumerate(rows[0].tolist()) if row not in removed][:k]
    return hits_of(scores[0][kept], rows[0][kept]) if kept else []


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


@torch.inference_mode()
def probe(model: Artifact, blocks: Artifact, question: str, answer: str) -> Probe:
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
    words = wordpiece.load(blocks.path)
    collator = packer_of(words.tokenizer)
    (ids, _), (wanted, _) = words.encode_batch([question, answer])
    if not 0 < len(wanted) <= MAX_PROBED:
        raise ConfigError(f"The answer {answer[:80]!r} has {len(wanted)} wordpieces; a probe takes 1 to {MAX_PROBED}.")
    reader = Reader.load(part.path)
    room = int(reader.mlm.config.max_position_embeddings) - 1
    query, nothing = hide_answer(ids, wanted, collator.mask_id, room - 2), np.empty(0, np.int64)
    packed = collator.query([query.tokens], room) if closed_book else collator.joint([query.tokens], [nothing], room, 1)
    position_1M = torch.from_numpy(query.places + 1)[None]
    log_prob_MV = reader.logits(packed, position_1M, 1)[0, 0].float().log_softmax(-1)
    own = log_prob_MV.gather(1, torch.from_numpy(wanted.astype(np.int64))[:, None]).sum()
    log_prob_MV[:, [words.pad, words.unk, words.cls, words.sep, words.mask]] = -torch.inf
    best_M, word_M = log_prob_MV.max(-1)
    return Probe(
        str(model.path), answer, len(wanted), float(own), words.tokenizer.decode(word_M.tolist()), float(best_M.sum())
    )

"""One question (`ask`) or one sentence with masks (`fill-mask`) at a time, with output for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError
from realmctl.nn.reader import Reader
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.open_answerer import open_answerer
from realmctl.retrieval.corpus import TokenIds
from realmctl.retrieval.search.candidates import NULL, titles_and_bodies
from realmctl.retrieval.search.dense import QUESTION_LENGTH, DenseSearcher
from realmctl.retrieval.search.searcher import Searcher

MASK = "[MASK]"
SHOWN_AROUND = 160


def ask(question: str, qa_model: Path, blocks: Path, top: int) -> dict[str, Any]:
    """The `top` best answers to a question, each with its evidence. Raises ConfigError for an empty question."""
    if not question.strip() or top < 1:
        raise ConfigError('ask needs a question, such as realmctl ask "Who wrote it?", and --top of at least 1.')
    model = open_answerer(open_artifact(qa_model), open_artifact(blocks))
    answers = [_answer(model.searcher, answer) for answer in model.ask(question, top)]
    return {"question": question, "answers": answers}


def _answer(searcher: Searcher | None, answer: Answer) -> dict[str, Any]:
    """The answer, with the block that it was read from, if any."""
    found, evidence = {"answer": answer.text, "score": answer.score}, answer.evidence
    if searcher is None or evidence is None:
        return found
    record = searcher.corpus.record(evidence.hit.row)
    return {
        **found,
        "probability_of_block": evidence.hit.probability,
        "title": record["title"],
        "block": record["id"],
        "text": record["text"],
        "start": evidence.start,
        "end": evidence.end,
    }


def answers_text(value: Mapping[str, Any]) -> str:
    """The output of `ask`: each answer, then its evidence with the answer marked."""
    lines = []
    for rank, found in enumerate(value["answers"], 1):
        line = f"{rank}. {found['answer']}   score {found['score']:.2f}"
        if "text" not in found:
            lines.append(f"{line}   (closed book: no evidence)")
            continue
        lines.append(f"{line}   {found['title']}   p(z|x) {found['probability_of_block']:.3f}")
        lines.append(f"   {_marked(found['text'], found['start'], found['end'])}")
    return "\n".join(lines) or "no answer, because no block was retrieved"


def _marked(text: str, start: int, end: int) -> str:
    before, after = ("\033[1;32m", "\033[0m") if sys.stdout.isatty() else (">>", "<<")
    left, right = max(0, start - SHOWN_AROUND), min(len(text), end + SHOWN_AROUND)
    shown = f"{text[left:start]}{before}{text[start:end]}{after}{text[end:right]}"
    return f"{'... ' if left else ''}{shown}{' ...' if right < len(text) else ''}".replace("\n", " ")


def fill_masks(sentence: str, model: Path, blocks: Path, candidates: int) -> dict[str, Any]:
    """Fill the masks of a sentence under each candidate, without retrieval, and under the marginal (paper, table 3).

    Raises ConfigError for a sentence without a mask.
    """
    if MASK not in sentence or candidates < 2:
        raise ConfigError(
            f'fill-mask needs a sentence with at least one {MASK}, such as "The capital of {MASK} is Paris.", and --candidates of at least 2.'
        )
    artifact, corpus = open_artifact(model), open_artifact(blocks)
    searcher = DenseSearcher(artifact.part("retriever"), artifact.part("index"), corpus, "auto", "auto")
    reader = Reader.load(artifact.part("reader").path).to(searcher.device)
    tokens = _with_masks(searcher, sentence)
    _require_room(tokens, reader, searcher.retriever.block_length)
    rows_N = np.concatenate([[NULL], searcher.nearest([tokens], candidates - 1)[1][0]])
    titles, bodies = titles_and_bodies(searcher.corpus, rows_N)
    prior_N = _prior(searcher, tokens, titles, bodies)
    probability_NMV = _fillings(searcher, reader, tokens, bodies)
    marginal_MV = torch.einsum("n,nmv->mv", prior_N, probability_NMV)
    return {
        "sentence": sentence,
        "without_retrieval": _words(searcher, probability_NMV[0]),
        "with_retrieval": _words(searcher, marginal_MV),
        "candidates": [
            {"title": _title(searcher, row), "probability": float(prior), "masks": _words(searcher, probability_MV)}
            for row, prior, probability_MV in zip(rows_N.tolist(), prior_N, probability_NMV, strict=True)
        ],
    }


def _title(searcher: DenseSearcher, row: int) -> str:
    return "(null document)" if row == NULL else str(searcher.corpus.record(row)["title"])


def _with_masks(searcher: DenseSearcher, sentence: str) -> TokenIds:
    mask = np.array([searcher.collator.mask_id])
    parts = [part for piece in searcher.tokens(sentence.split(MASK)) for part in (piece, mask)]
    return np.concatenate(parts[:-1])


def _require_room(tokens: TokenIds, reader: Reader, block_length: int) -> None:
    room = reader.mlm.config.max_position_embeddings - block_length
    if len(tokens) + 2 > room:
        raise ConfigError(
            f"The sentence has {len(tokens)} wordpieces; beside a block there is room for {room - 2}. Use a shorter one."
        )


@torch.inference_mode()
def _prior(
    searcher: DenseSearcher, tokens: TokenIds, titles: Sequence[TokenIds], bodies: Sequence[TokenIds]
) -> torch.Tensor:
    """p(z|x) with the live retriever, the null document first, [N]."""
    retriever = searcher.retriever
    block_ND = retriever.embed_blocks(
        searcher.collator.block(titles, bodies, retriever.block_length).to(searcher.device)
    )
    query_1D = retriever.embed_queries(searcher.collator.query([tokens], QUESTION_LENGTH).to(searcher.device))
    return retriever.score(query_1D, block_ND[None])[0].softmax(0).cpu()


@torch.inference_mode()
def _fillings(searcher: DenseSearcher, reader: Reader, tokens: TokenIds, bodies: Sequence[TokenIds]) -> torch.Tensor:
    """p(v|z,x) at each mask under each candidate, [N, M, V]."""
    joint = searcher.collator.joint([tokens] * len(bodies), bodies, len(tokens) + 2, searcher.retriever.block_length)
    masks = torch.from_numpy(np.flatnonzero(tokens == searcher.collator.mask_id) + 1)[None]
    return reader.logits(joint.to(searcher.device), masks.to(searcher.device), len(bodies))[0].float().softmax(-1).cpu()


def _words(searcher: DenseSearcher, probability_MV: torch.Tensor) -> list[dict[str, Any]]:
    best, word = probability_MV.max(-1)
    return [
        {"wordpiece": searcher.wordpiece.tokenizer.id_to_token(number), "probability": share}
        for share, number in zip(best.tolist(), word.tolist(), strict=True)
    ]


def filled_text(value: Mapping[str, Any]) -> str:
    """The output of `fill-mask`."""
    lines = [value["sentence"]]
    lines.append(f"  without retrieval   {_masks(value['without_retrieval'])}")
    lines.append(f"  with retrieval      {_masks(value['with_retrieval'])}")
    lines += [
        f"    p(z|x) {found['probability']:.3f}   {_masks(found['masks']):<32} {found['title']}"
        for found in value["candidates"]
    ]
    return "\n".join(lines)


def _masks(masks: Sequence[Mapping[str, Any]]) -> str:
    return "  ".join(f"{mask['wordpiece']} ({mask['probability']:.3f})" for mask in masks)

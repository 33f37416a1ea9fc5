"""One question (`ask`) or one sentence with masks (`fill-mask`) at a time, with output for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.artifacts import open_artifact
from realmctl.errors import ConfigError
from realmctl.nn.reader import Reader
from realmctl.retrieval.answering import mask_filling
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.open_answerer import open_answerer
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.searcher import Searcher

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


def fill_masks(sentence: str, model: Path, blocks: Path, candidates: int, precision: str = "auto") -> dict[str, Any]:
    """Fill the masks of a sentence: without retrieval, with it, and with each candidate alone.

    Raises ConfigError for a sentence without a mask.
    """
    artifact, corpus = open_artifact(model), open_artifact(blocks)
    searcher = DenseSearcher(artifact.part("retriever"), artifact.part("index"), corpus, "auto", precision)
    reader = Reader.load(artifact.part("reader").path).to(searcher.device)
    filled = mask_filling.fill_masks(searcher, reader, sentence, candidates)
    return {
        "sentence": sentence,
        "without_retrieval": _predictions(filled.without_retrieval),
        "with_retrieval": _predictions(filled.with_retrieval),
        "candidates": [
            {"title": found.title, "probability": found.probability, "masks": _predictions(found.masks)}
            for found in filled.candidates
        ],
    }


def _predictions(masks: Sequence[mask_filling.MaskPrediction]) -> list[dict[str, Any]]:
    return [{"wordpiece": mask.wordpiece, "probability": mask.probability} for mask in masks]


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

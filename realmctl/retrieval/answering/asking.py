"""One question (`ask`) or one sentence with masks (`fill-mask`) at a time, with output for people."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError, MismatchError
from realmctl.models.reader import Reader
from realmctl.retrieval.answering import mask_filling, receipts
from realmctl.retrieval.answering.answerer import Answer
from realmctl.retrieval.answering.open_answerer import open_answerer
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.searcher import Searcher

SHOWN_AROUND = 160


def ask(
    question: str,
    qa_model: Path,
    blocks: Path,
    top: int,
    *,
    index: Path | None = None,
    without: Sequence[str] = (),
    probe: Path | None = None,
) -> dict[str, Any]:
    """The `top` best answers to a question, each with its evidence.

    Args:
        question: the question.
        qa_model: the fine-tuned model.
        blocks: the blocks that it was fine-tuned with, or those of `index`.
        top: the number of answers.
        index: index to search instead of the qa-model's own, such as one of revised blocks.
        without: ids of blocks, ids of documents, or titles of documents; the result then has the answers without them too.
        probe: a model whose weights alone are asked for the best answer.

    Raises:
        ConfigError: the question is empty.
        InputError: a name in `without` is that of no block and no document.
    """
    if not question.strip() or top < 1:
        raise ConfigError('ask needs a question, such as realmctl ask "Who wrote it?", and --top of at least 1.')
    held = open_artifact(blocks)
    model = open_answerer(open_artifact(qa_model), held, index=resolve_index(index))
    answers = [_answer(model.searcher, answer) for answer in model.ask(question, top)]
    found: dict[str, Any] = {"question": question, "answers": answers}
    if without:
        found["without"] = _receipt(model.searcher, receipts.receipt(model, question, without, top))
    if probe is not None and answers:
        found["probe"] = dataclasses.asdict(receipts.probe(open_artifact(probe), held, question, answers[0]["answer"]))
    return found


def resolve_index(path: Path | None) -> Artifact | None:
    """The index at a path, or in the model at that path. Raises MismatchError for another kind of artifact."""
    if path is None:
        return None
    artifact = open_artifact(path)
    index = artifact.part("index") if "index" in artifact.manifest["parts"] else artifact
    if index.kind != "index":
        raise MismatchError(f"{artifact} is of kind {artifact.kind}, but an index is needed. Name another artifact.")
    return index


def _receipt(searcher: Searcher | None, found: receipts.Receipt) -> dict[str, Any]:
    answers = [_answer(searcher, answer) for answer in found.answers]
    return {**dataclasses.asdict(found), "answers": answers}


def _answer(searcher: Searcher | None, answer: Answer) -> dict[str, Any]:
    """The answer, with the block that it was read from, if any."""
    found, evidence = {"answer": answer.text, "score": answer.score}, answer.evidence
    if searcher is None or evidence is None:
        return found
    block = searcher.corpus.block(evidence.hit.row)
    return {
        **found,
        "probability_of_block": evidence.hit.probability,
        "title": block.title,
        "block": block.id,
        "text": block.text,
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
    shown = ["\n".join(lines) or "no answer, because no block was retrieved"]
    shown += [_without_text(value["without"])] if "without" in value else []
    shown += [_probe_text(value["probe"])] if "probe" in value else []
    return "\n".join(shown)


def _without_text(found: Mapping[str, Any]) -> str:
    count = len(found["blocks"])
    lines = [
        f"without {count} block{'s' if count > 1 else ''} ({', '.join(found['blocks'][:5])}{', ...' if count > 5 else ''}):"
    ]
    lines += [f"   {line}" for line in answers_text({"answers": found["answers"]}).split("\n")]
    if found["text"] is not None:
        held = ", ".join(found["blocks_with_answer"]) or "none"
        lines.append(
            f"   probability of {found['text']!r}: {found['probability_before']:.4f} before, "
            f"{found['probability_after']:.4f} without; blocks read that still hold it: {held}"
        )
    return "\n".join(lines)


def _probe_text(found: Mapping[str, Any]) -> str:
    return (
        f"in the weights alone ({found['model']}): {found['answer']!r} has log-probability {found['log_probability']:.2f}; "
        f"the most probable filling of {found['wordpieces']} wordpieces is {found['best']!r} with "
        f"{found['best_log_probability']:.2f}"
    )


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

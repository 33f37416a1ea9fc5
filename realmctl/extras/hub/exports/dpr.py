"""Files of DPR (github.com/facebookresearch/DPR): passages as psgs_w100.tsv, and training files for reader and retriever."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.artifacts.disk import copy_file
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.inputs.rows import json_list

RETRIEVED = "retrieved.json"


def write_passages(blocks: Artifact, path: Path) -> dict[str, int]:
    """Write `id`, `text` and `title` of each block with a header. Tabs and line breaks become spaces."""
    corpus = Corpus(blocks)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(["id", "text", "title"])
        for block in corpus:
            fields = block.id, block.text, block.title
            table.writerow([" ".join(value.splitlines()).replace("\t", " ") for value in fields])
    return {"passages": len(corpus)}


def write_reader_training(scores: Artifact, path: Path) -> dict[str, int]:
    """Write what DPR's reader is trained on: questions, answers, and the blocks retrieved with `has_answer`."""
    copy_file(_retrieved(scores), path)
    return {"questions": int(scores.metrics["questions"])}


def write_retriever_training(scores: Artifact, path: Path) -> dict[str, int]:
    """Write what DPR's retriever and `dpr-finetune` are trained on.

    Of the blocks retrieved, those with an answer are positive passages and the others hard negatives, best first. Where a
    question has no answers, the blocks of relevant documents are positive. A question without a positive passage is left out.
    """
    counts: Counter[str] = Counter(questions=0, without_positives=0)
    with path.open("w", encoding="utf-8") as file:
        for entry in _training_entries(_retrieved(scores), counts):
            counts["questions"] += 1
            file.write(("[\n" if counts["questions"] == 1 else ",\n") + json.dumps(entry, ensure_ascii=False))
        file.write("\n]\n" if counts["questions"] else "[]\n")
    return dict(counts)


def _training_entries(retrieved: Path, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    for _, _, entry in json_list(retrieved):
        test = "has_answer" if entry["answers"] else "has_provenance"
        passages: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for context in entry["ctxs"]:
            passages[context[test]].append(
                {
                    "title": context["title"],
                    "text": context["text"],
                    "score": context["score"],
                    "passage_id": context["id"],
                }
            )
        if not passages[True]:
            counts["without_positives"] += 1
            continue
        yield {
            "question": entry["question"],
            "answers": entry["answers"],
            "positive_ctxs": passages[True],
            "negative_ctxs": [],
            "hard_negative_ctxs": passages[False],
        }


def _retrieved(scores: Artifact) -> Path:
    if not scores.has(RETRIEVED):
        raise InputError(f"{scores} has no {RETRIEVED}: its model answers without retrieval. Export other scores.")
    return scores.file(RETRIEVED)

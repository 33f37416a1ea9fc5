"""Triplets for sentence-transformers: JSON lines with anchor, positive and negative, which `datasets` loads as columns."""

from __future__ import annotations

import json
from pathlib import Path

from realmctl.artifacts import Artifact
from realmctl.inputs.rows import json_lines

TRAINING = "train.jsonl"
"""The file of negatives in Tevatron's layout."""


def write_triplets(negatives: Artifact, path: Path) -> dict[str, int]:
    """Write each positive passage of a question with each of its negatives. A title stands before its text."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in json_lines(negatives.file(TRAINING)):
            passages = {
                kind: [f"{one['title']} {one['text']}".strip() for one in row.fields[f"{kind}_passages"]]
                for kind in ("positive", "negative")
            }
            for positive in passages["positive"]:
                for negative in passages["negative"]:
                    record = {"anchor": row.fields["query"], "positive": positive, "negative": negative}
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                    count += 1
    return {"triplets": count}

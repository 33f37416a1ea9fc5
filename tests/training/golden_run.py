"""Twenty inline pre-training steps on the miniature world; prints the loss of every step as JSON.

The steps train on the candidates that `golden.json` records, because the last bits of a sum decide between candidates whose
scores are nearly tied, and these bits differ between processors. The run checks at each search that a recorded candidate
scores as high as the candidate that was found at its rank.
Run by test_golden.py. To record losses and candidates after a change that is meant to move them:

    python tests/training/golden_run.py --record
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from realmctl.index.protocol import Index

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden.json")
TIE = 2e-3
"""Largest difference of two scores that are nearly tied. Scores are near 15. Between processors, rounding in the steps of the retriever
moved them by up to 3e-4 so far."""


class RecordedCandidates:
    """Stands in for the candidate search of `pretrain`: returns recorded rows, after it has checked their scores.

    recorded: the rows of each search, or None to search and record them in `rows`.
    """

    def __init__(self, recorded: list[list[list[int]]] | None) -> None:
        from realmctl.retrieval.search.candidates import candidates

        self.search, self.recorded = candidates, None if recorded is None else iter(recorded)
        self.rows: list[list[list[int]]] = []

    def __call__(
        self, index: Index, query_BD: NDArray[np.float32], *others: object, **named: object
    ) -> NDArray[np.int64]:
        found_BN = self.search(index, query_BD, *others, **named)  # type: ignore[arg-type]
        rows_BN = found_BN if self.recorded is None else np.array(next(self.recorded))
        self.rows.append(rows_BN.tolist())
        score_BZ, id_BZ = index.search(query_BD, index.count)
        for scores, ids, found, rows in zip(score_BZ, id_BZ, found_BN, rows_BN, strict=True):
            score_of = {**dict(zip(ids.tolist(), scores.tolist(), strict=True)), -1: 0.0, -2: 0.0}
            best, used = ([score_of[row] for row in line.tolist()] for line in (found, rows))
            assert best == pytest.approx(used, abs=TIE), f"found {found.tolist()}, recorded {rows.tolist()}"
            assert len(set(rows.tolist())) == len(rows)
        return rows_BN


def losses(folder: Path) -> list[float]:
    """The chain from a world to a model, and what its metrics say."""
    from stages.build_index import BuildIndex
    from stages.chunk import Chunk
    from stages.embed import Embed
    from stages.ict_init import IctInit
    from stages.pretrain import Pretrain
    from stages.tag import Tag

    world = [
        sys.executable,
        str(ROOT / "examples/world/make_world.py"),
        "--out",
        str(folder / "world"),
        "--size",
        "small",
    ]
    subprocess.run([*world, "--parallel-worlds", "0"], check=True, capture_output=True)
    knowledge, sentences = folder / "world/knowledge", folder / "world/sentences"
    blocks = Chunk(corpus=(knowledge,), tokenizer="train:400", max_wordpieces=64, workers=1).make(folder / "blocks")
    texts = Chunk(corpus=(sentences,), tokenizer=str(blocks.path), max_wordpieces=64, workers=1).make(folder / "texts")
    spans = Tag(blocks=texts, query_length=48, workers=1).make(folder / "spans")
    small = {"bert": "scratch:L2-H32-A2", "precision": "fp32", "device": "cpu"}
    retriever = IctInit(blocks=blocks, steps=10, batch_size=16, lr=1e-3, warmup=2, projection=16, **small).make(
        folder / "retriever"
    )
    index = BuildIndex(
        embeddings=Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings"), type="exact"
    ).make(folder / "index")
    model = Pretrain(
        blocks=blocks,
        spans=spans,
        retriever=retriever,
        index=index,
        steps=20,
        batch_size=4,
        lr=1e-3,
        warmup=5,
        candidates=4,
        refresh="inline",
        refresh_every=8,
        seed=7,
        **small,
    ).make(folder / "model")
    return [json.loads(line)["loss"] for line in model.file("metrics.jsonl").read_text().splitlines()]


def losses_on_recorded_candidates(record: bool = False) -> list[float]:
    """The loss of each step. `record`: record losses and candidates instead."""
    from realmctl.training import realm
    from realmctl.training.monitoring.pretrain_watch import PretrainWatch

    candidates = RecordedCandidates(None if record else json.loads(GOLDEN.read_text())["candidates"])
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(realm, "candidates", candidates)
        patch.setattr(PretrainWatch, "change", lambda *_: {})  # its searches only measure
        found = losses(Path(folder))
    if record:
        GOLDEN.write_text(json.dumps({"losses": found, "candidates": candidates.rows}) + "\n")
    return found


if __name__ == "__main__":
    print(json.dumps(losses_on_recorded_candidates(record=sys.argv[1:] == ["--record"])))

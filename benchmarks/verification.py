"""Measure what safety costs: flushing to the disk, hashing, and reading files back, as a share of the time of each stage.

    python benchmarks/verification.py [--blocks 20000] [--policies standard quick full] [--folder DIR]

A corpus of words drawn with a fixed seed is chunked into blocks of at most 64 wordpieces, tagged, embedded with an untrained
encoder (2 layers of 128) and indexed (exact and hnsw). The calls of fsync, SHA-256 and CRC-32 are timed inside the stages. There
is a table for each value of REALMCTL_VERIFY, with a row for all stages together.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch

from realmctl.artifacts import artifact, hashing, manifest
from realmctl.artifacts.artifact import Verification
from realmctl.artifacts.disk import CheckedFile
from realmctl.extras.hnsw import hnsw
from realmctl.models import weights
from realmctl.retrieval.embedding import embedding_file
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.tag import Tag

SENTENCES_OF_A_BLOCK, WORDS_OF_A_SENTENCE = 4, 12


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--blocks", type=int, default=20_000)
    parser.add_argument("--policies", nargs="+", default=["standard", "quick", "full"], choices=list(Verification))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        corpus = write_corpus(folder / "corpus.jsonl", options.blocks)
        for policy in options.policies:
            os.environ["REALMCTL_VERIFY"] = policy
            run(folder / policy, corpus, policy)


def write_corpus(path: Path, blocks: int) -> Path:
    """Write as many documents as blocks; each has about a block of words and some years, which are salient."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    with path.open("w") as file:
        for number in range(blocks):
            sentences = [
                " ".join(draw.choices(words, k=WORDS_OF_A_SENTENCE)).capitalize() + f" in {draw.randint(1500, 2000)}."
                for _ in range(SENTENCES_OF_A_BLOCK)
            ]
            file.write(f'{{"id": "{number}", "title": "Page {number}", "text": "{" ".join(sentences)}"}}\n')
    return path


def run(folder: Path, corpus: Path, policy: str) -> None:
    """Make every artifact once, and print a row for each stage."""
    print(
        f"\nREALMCTL_VERIFY={policy}\n{'stage':<14}{'seconds':>9}{'fsync':>8}{'hash':>8}{'read back':>11}{'together':>10}"
    )
    made: dict[str, Any] = {}
    sums: defaultdict[str, float] = defaultdict(float)

    def row(name: str, total: float, seconds: Mapping[str, float]) -> None:
        shares = [seconds[kind] / total for kind in ("fsync", "hash", "read back")]
        columns = zip([*shares, sum(shares)], (8, 8, 11, 10), strict=True)
        print(f"{name:<14}{total:>9.2f}" + "".join(f"{share:>{width}.1%}" for share, width in columns), flush=True)

    def stage(name: str, make: Callable[[], Any]) -> None:
        with clock() as seconds:
            start = time.perf_counter()
            made[name] = make()
            total = time.perf_counter() - start
        row(name, total, seconds)
        for kind, value in {**seconds, "total": total}.items():
            sums[kind] += value

    stage(
        "chunk",
        lambda: Chunk(corpus=(corpus,), tokenizer="train:4000", max_wordpieces=128, workers=1).make(folder / "blocks"),
    )
    stage("tag", lambda: Tag(blocks=made["chunk"], workers=1).make(folder / "spans"))
    stage(
        "ict-init",
        lambda: IctInit(blocks=made["chunk"], bert="scratch:tiny", steps=0, device="cpu").make(folder / "retriever"),
    )
    stage(
        "embed",
        lambda: Embed(blocks=made["chunk"], retriever=made["ict-init"], device="cpu").make(folder / "embeddings"),
    )
    stage("exact index", lambda: BuildIndex(embeddings=made["embed"], type="exact").make(folder / "exact"))
    stage("hnsw index", lambda: BuildIndex(embeddings=made["embed"], type="hnsw", min_recall=0.0).make(folder / "hnsw"))
    row("together", sums["total"], sums)


@contextmanager
def clock() -> Iterator[dict[str, float]]:
    """Within the block, add up the seconds of fsync, of SHA-256 over files and of reading back. Nested calls count once."""
    seconds: defaultdict[str, float] = defaultdict(float)
    inside: list[str] = []
    plain: list[tuple[Any, str, Any]] = []

    def timed(owner: Any, name: str, kind: str) -> None:
        function = getattr(owner, name)
        plain.append((owner, name, function))

        def call(*arguments: Any, **named: Any) -> Any:
            if inside:
                return function(*arguments, **named)
            inside.append(kind)
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                seconds[kind] += time.perf_counter() - start
                inside.pop()

        setattr(owner, name, call)

    for name in ("fsync", "fdatasync"):
        timed(os, name, "fsync")
    for owner, name in (
        (hashing, "digest_file"),
        (hashing, "digest_regular"),
        (manifest, "digest_regular"),
        (artifact, "digest_regular"),
        (hnsw, "digest_file"),
        (embedding_file.EmbeddingFile, "_hash"),
    ):
        timed(owner, name, "hash")
    timed(CheckedFile, "_compare", "read back")
    timed(weights, "_read_back", "read back")
    try:
        yield seconds
    finally:
        for owner, name, function in plain:
            setattr(owner, name, function)


if __name__ == "__main__":
    main()

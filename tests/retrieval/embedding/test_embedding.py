from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.models.inputs import Collator
from realmctl.retrieval.embedding import embedding
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.blocks import make_blocks
from tests.fixtures.retriever import fresh_retriever

WORDS = ["river", "stone", "lamp", "cloud", "horse", "bread", "music", "winter", "garden", "letter"]


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    """50 blocks of 1 to 25 words, so that batches hold rows of many lengths."""
    texts = [" ".join(WORDS[(i * 7 + j * j) % 10] for j in range(i % 25 + 1)) + "." for i in range(50)]
    return make_blocks(tmp_path_factory.mktemp("w") / "blocks", {"Town": [[text] for text in texts]})


@pytest.fixture
def parts(blocks, monkeypatch):
    monkeypatch.setattr(embedding, "ROWS_PER_RANGE", 8)
    return fresh_retriever(blocks), Collator.of(Tokenizer.load(blocks.path)), Corpus(blocks)


def one_by_one(retriever, collator, corpus):
    with torch.inference_mode():
        rows = [
            retriever.embed_blocks(collator.block([corpus.title(i)], [corpus.tokens(i)], retriever.block_length))
            for i in range(len(corpus))
        ]
    return torch.cat(rows).numpy()


def embedded(parts, folder, batch_size=0, **options):
    folder.mkdir(exist_ok=True)
    embedder = embedding.LocalEmbedder(*parts, precision="fp32", batch_size=batch_size)
    metrics = embedding.embed_corpus(embedder, parts[2], folder / "e.npy", journal=folder / "done.jsonl", **options)
    return np.load(folder / "e.npy", allow_pickle=False), metrics


@pytest.mark.parametrize("batch_size", [0, 1, 3, 100])
def test_every_row_is_its_block_whatever_the_batches(parts, tmp_path, batch_size):
    matrix, _ = embedded(parts, tmp_path, batch_size=batch_size)
    assert (matrix.dtype, matrix.shape) == (np.float32, (50, 8))
    np.testing.assert_allclose(matrix, one_by_one(*parts), atol=1e-5)


class Casts(TorchDispatchMode):
    """Counts how often each parameter is copied in another type."""

    def __init__(self):
        super().__init__()
        self.of = Counter()

    def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
        if operator.overloadpacket is torch.ops.aten._to_copy and isinstance(arguments[0], torch.nn.Parameter):
            self.of[id(arguments[0])] += 1
        return operator(*arguments, **(keywords or {}))


def test_weights_are_rounded_once_for_all_batches(parts):
    """Autocast keeps rounded weights, but not in inference mode."""
    retriever, collator, corpus = parts
    with Casts() as casts:
        embedding.embed_blocks(retriever, collator, corpus, range(20), precision="bf16", batch_size=4)
    assert casts.of and set(casts.of.values()) == {1}


def test_half_precision_storage_is_the_rounded_matrix(parts, tmp_path):
    half, _ = embedded(parts, tmp_path / "half", dtype="float16")
    full, _ = embedded(parts, tmp_path / "full")
    assert (half == full.astype(np.float16)).all()


def test_metrics_describe_the_matrix(parts, tmp_path):
    matrix, metrics = embedded(parts, tmp_path)
    norms = np.linalg.norm(matrix, axis=1)
    assert metrics == {
        "truncated_blocks": 0,
        "rows": 50,
        "dimension": 8,
        "norm_mean": pytest.approx(norms.mean()),
        "norm_cv": pytest.approx(norms.std() / norms.mean()),
        "mean_vector_share": pytest.approx(np.linalg.norm(matrix.mean(axis=0)) / norms.mean()),
    }


class Stopped(Exception):
    pass


@pytest.mark.parametrize("after", [1, 8, 17, 49])
def test_taken_up_after_a_stop_gives_the_same_bytes(parts, tmp_path, after):
    done = 0

    def stop(blocks):
        nonlocal done
        done += blocks
        if done >= after:
            raise Stopped

    with pytest.raises(Stopped):
        embedded(parts, tmp_path / "stopped", on_progress=stop)
    seen: list[int] = []
    embedded(parts, tmp_path / "stopped", on_progress=seen.append)
    embedded(parts, tmp_path / "whole")
    assert (tmp_path / "stopped/e.npy").read_bytes() == (tmp_path / "whole/e.npy").read_bytes()
    assert seen[0] == (after - 1) // 16 * 16 and sum(seen) == 50


def test_ranges_that_are_done_are_not_embedded_again(parts, tmp_path):
    embedded(parts, tmp_path)
    calls: list[int] = []
    embedded(parts, tmp_path, on_progress=calls.append)
    assert calls == [50]


def test_a_done_range_whose_bytes_changed_is_embedded_again(parts, tmp_path):
    whole, _ = embedded(parts, tmp_path)
    data = bytearray((tmp_path / "e.npy").read_bytes())
    data[-20] ^= 1
    (tmp_path / "e.npy").write_bytes(bytes(data))
    calls: list[int] = []
    again, _ = embedded(parts, tmp_path, on_progress=calls.append)
    assert (again == whole).all()
    assert calls == [48, 2]


def test_a_block_whose_vector_is_not_finite_is_named(parts, tmp_path, monkeypatch):
    retriever = parts[0]
    original = retriever.embed_blocks
    monkeypatch.setattr(
        retriever,
        "embed_blocks",
        lambda packed: original(packed).where(packed.lengths_B[:, None] != 30, torch.nan),
    )
    with pytest.raises(InputError, match=r"0-24.*'Town'"):
        embedded(parts, tmp_path, batch_size=1)


def test_overflow_of_float16_is_named_with_its_way_out(parts, tmp_path, monkeypatch):
    original = parts[0].embed_blocks
    monkeypatch.setattr(parts[0], "embed_blocks", lambda packed: 1e6 * original(packed))
    with pytest.raises(InputError, match=r"float16.*--dtype float32"):
        embedded(parts, tmp_path, dtype="float16")


def test_blocks_longer_than_the_retriever_reads_are_counted(blocks, parts, tmp_path, capsys):
    short = (fresh_retriever(blocks, block_length=12), *parts[1:])
    matrix, metrics = embedded(short, tmp_path)
    lengths = [len(parts[2].title(i)) + len(parts[2].tokens(i)) + 3 for i in range(50)]
    assert metrics["truncated_blocks"] == sum(length > 12 for length in lengths) > 0
    assert f"{metrics['truncated_blocks']} blocks are longer" in capsys.readouterr().err
    np.testing.assert_allclose(matrix, one_by_one(*short), atol=1e-5)


def test_a_query_only_retriever_embeds_no_blocks(blocks, parts, tmp_path):
    with pytest.raises(MismatchError, match="query-only"):
        embedded((fresh_retriever(blocks, towers="query-only"), *parts[1:]), tmp_path)


def test_a_retriever_in_training_embeds_without_dropout(parts, tmp_path):
    still, _ = embedded(parts, tmp_path / "still")
    parts[0].train()
    assert (embedded(parts, tmp_path / "training")[0] == still).all()

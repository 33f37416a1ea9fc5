from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError, ResourceError
from realmctl.pipeline import planning
from realmctl.retrieval.embedding import embedding
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile
from stages.embed import Embed
from tests.faults.children import ended, forked
from tests.fixtures.blocks import make_blocks
from tests.fixtures.retriever import make_retriever

ROOT = Path(__file__).parents[2]
WORDS = ["river", "stone", "lamp", "cloud", "horse", "bread", "music", "winter", "garden", "letter"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(blocks, retriever): 40 blocks in eight documents."""
    folder = tmp_path_factory.mktemp("w")
    documents = {
        f"{WORDS[d]} house": [[" ".join(WORDS[(d * i + j) % 10] for j in range(i + 2)) + "."] for i in range(5)]
        for d in range(8)
    }
    blocks = make_blocks(folder / "blocks", documents)
    return blocks, make_retriever(folder / "retriever", blocks)


def stage(made, **settings):
    return Embed(blocks=made[0], retriever=made[1], precision="fp32", device="cpu", **settings)


def test_embeddings_have_a_row_a_block_and_descend_from_blocks_and_retriever(made, tmp_path):
    artifact = stage(made).make(tmp_path / "embeddings")
    matrix = np.load(artifact.file("embeddings.npy"), allow_pickle=False)
    assert (matrix.shape, matrix.dtype) == ((40, 8), np.float32)
    assert artifact.metrics["rows"] == 40 and artifact.metrics["norm_mean"] == pytest.approx(
        np.linalg.norm(matrix, axis=1).mean()
    )
    assert artifact.lineage == {made[0].kind: made[0].content, made[1].kind: made[1].content}
    assert list(artifact.manifest.files) == ["embeddings.npy"]


def test_float16_is_another_version_of_half_the_size(made, tmp_path):
    full, half = (stage(made, dtype=dtype).make(tmp_path / "e") for dtype in ("float32", "float16"))
    assert (full.path.name, half.path.name) == ("v1", "v2")
    assert np.load(half.file("embeddings.npy"), allow_pickle=False).dtype == np.float16


def test_knobs_do_not_make_another_version(made, tmp_path):
    first = stage(made).make(tmp_path / "e")
    assert stage(made, batch_size=3).make(tmp_path / "e").path == first.path


def test_stopped_by_an_error_it_goes_on_and_ends_with_the_same_bytes(made, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "ROWS_PER_RANGE", 8)
    whole = stage(made).make(tmp_path / "whole")
    original, calls = embedding.embed_blocks, []

    def dies_at_the_third(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 3:
            raise ResourceError("the device is gone")
        return original(*arguments, **options)

    monkeypatch.setattr(embedding, "embed_blocks", dies_at_the_third)
    with pytest.raises(ResourceError):
        stage(made).make(tmp_path / "e")
    assert (tmp_path / "e/v1.partial/.scratch/ranges/done.jsonl").read_text().count("sha256") == 2
    resumed = stage(made).make(tmp_path / "e")
    assert len(calls) == 3 + 3
    assert resumed.content == whole.content


def test_killed_it_goes_on_and_ends_with_the_same_bytes(made, tmp_path, monkeypatch, one_thread):
    monkeypatch.setattr(embedding, "ROWS_PER_RANGE", 8)
    write, written = EmbeddingFile.write, []

    def write_and_die(file, start, vectors):
        write(file, start, vectors)
        written.append(start)
        if len(written) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddingFile, "write", write_and_die)
        child = forked(lambda: stage(made).make(tmp_path / "e"), tmp_path / "log")
    assert ended(child) == -signal.SIGKILL, (tmp_path / "log").read_text()
    with pytest.raises(InputError, match="no finished version"):
        open_artifact(tmp_path / "e")
    resumed = stage(made).make(tmp_path / "e")
    assert resumed.content == stage(made).make(tmp_path / "whole").content


def test_a_retriever_with_another_vocabulary_is_refused(made, tmp_path):
    other = make_blocks(tmp_path / "other", {"Elsewhere": [["Quite different words."]]})
    with pytest.raises(MismatchError, match="other"):
        Embed(blocks=other, retriever=made[1]).make(tmp_path / "e")


def test_a_fine_tuned_retriever_is_refused(made, tmp_path):
    retriever = make_retriever(tmp_path / "r", made[0], towers="query-only")
    with pytest.raises(MismatchError, match="query encoder"):
        Embed(blocks=made[0], retriever=retriever).make(tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_a_negative_batch_is_refused(made, tmp_path):
    with pytest.raises(ConfigError, match="--batch-size 0"):
        stage(made, batch_size=0).make(tmp_path / "e")


def test_a_dry_run_estimates_the_time_of_all_blocks_from_some(made, tmp_path, monkeypatch):
    """The clock goes on by a second for each wordpiece that is embedded."""
    now = [0.0]
    embed = embedding.LocalEmbedder.embed
    lengths = Corpus(made[0]).lengths

    def slow(embedder, ranges, on_progress):
        for rows in ranges:
            now[0] += float(lengths[rows].sum())
            yield from embed(embedder, [rows], on_progress)

    monkeypatch.setattr(embedding, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(embedding.LocalEmbedder, "embed", slow)
    planned = planning.plan(stage(made), tmp_path / "embeddings", measure=True)
    assert planned["estimate"]["seconds"] == pytest.approx(lengths.sum() + lengths[0])
    assert now[0] < 0.7 * lengths.sum() and not (tmp_path / "embeddings").exists()
    former = stage(made).make(tmp_path / "former")
    assert stage(made, former=former).trial().seconds < 1, "nothing is left to embed"

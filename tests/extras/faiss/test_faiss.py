from __future__ import annotations

import sys

import numpy as np
import pytest

from realmctl.errors import ConfigError, InputError, QualityError, ResourceError
from realmctl.extras.faiss.faiss_index import FaissIndexType
from realmctl.extras.faiss.options import FaissOptions
from realmctl.index.build import build
from realmctl.index.index_type import open_index, open_part
from realmctl.index.merged import MergedIndex
from tests.fixtures.index import brute_force, built, clustered, folder_with

faiss = pytest.importorskip("faiss")
FACTORY = "IVF8,SQ8"


def of(factory: str = FACTORY, **options: object) -> FaissOptions:
    return FaissOptions(type="faiss", factory=factory, recall_sample=100, **options)  # type: ignore[arg-type]


def test_finds_what_faiss_finds_when_called_directly(tmp_path):
    vectors, queries = clustered(1000), clustered(30, seed=1)
    metrics = build(folder_with(tmp_path, vectors), of(ef=2, min_recall=0.0))
    direct = faiss.index_factory(16, FACTORY, faiss.METRIC_INNER_PRODUCT)
    direct.train(vectors)
    direct.add(vectors)
    direct.nprobe = 2
    found = direct.search(queries, 40)[1]
    scores, ids = open_index(tmp_path).search(queries, 10)
    for query, own, candidates in zip(queries, ids, found, strict=True):
        candidates = candidates[candidates >= 0]
        exact = vectors[candidates] @ query
        assert len(candidates) < 10 or own.tolist() == candidates[np.lexsort((candidates, -exact))][:10].tolist()
    np.testing.assert_allclose(scores, np.einsum("bd,bkd->bk", queries, vectors[ids]), rtol=1e-5)
    assert metrics["ef"] == 2 and 0 < metrics["recall"] < 1


def test_the_search_is_the_narrowest_that_reaches_the_floor_at_both_depths(tmp_path):
    vectors = clustered(1500)
    metrics = build(folder_with(tmp_path / "a", vectors), of(min_recall=0.97))
    assert metrics["recall"] >= 0.97 and 1 < metrics["ef"] <= 8
    with pytest.raises(QualityError):
        build(folder_with(tmp_path / "b", vectors), of(min_recall=0.97, ef=metrics["ef"] // 2))
    queries = vectors[:50] + np.random.default_rng(2).normal(size=(50, 16)).astype(np.float32) / 4
    wanted = brute_force(vectors, queries, 100)[1]
    found = open_index(tmp_path / "a").search(queries, 100)[1]
    assert np.mean([len({*a} & {*b}) for a, b in zip(wanted.tolist(), found.tolist(), strict=True)]) > 93


@pytest.mark.parametrize("factory", ["HNSW16", "Flat", "PCAR8,IVF4,SQ8", "PQ8x4"])
def test_other_factories(tmp_path, factory):
    vectors = clustered(700)
    build(folder_with(tmp_path, vectors), of(factory, min_recall=0.5))
    assert open_index(tmp_path).search(vectors[:9], 3)[1].shape == (9, 3)


@pytest.mark.parametrize(
    "factory", ["Flat", "SQ8", "IVF4,SQ8", "HNSW16", "HNSW16,SQ8", pytest.param("NSG16,Flat", marks=pytest.mark.slow)]
)
def test_the_bytes_are_told_before_the_build(tmp_path, factory):
    vectors = clustered(3000)
    told = FaissIndexType().size(of(factory), *vectors.shape)
    build(folder_with(tmp_path, vectors), of(factory, min_recall=0.0))
    written = sum(path.stat().st_size for path in tmp_path.glob("*.faiss"))
    assert 0.5 < told / written < 2  # NSG writes the links that it has


@pytest.mark.parametrize("factory", ["PQ8x4", "IVF4,PQ8x4", "PCAR8,IVF4,PQ8x4,RFlat"])
def test_the_codes_are_not_annealed_for_a_search_that_nobody_does(tmp_path, factory, capfd):
    """And few rows give no warnings. faiss trains polysemous codes unless `np` stands behind PQ, which took 105 of 126 s of training for PQ64."""
    vectors = clustered(700)
    build(folder_with(tmp_path / "few", vectors[:120]), of(factory, min_recall=0.0))
    assert "WARNING" not in capfd.readouterr().err  # which faiss would give for each of the 8 codebooks
    for name, own in (("a", factory), ("b", factory.replace("PQ8x4", "PQ8x4np"))):
        build(folder_with(tmp_path / name, vectors), of(own, min_recall=0.0))
    assert (tmp_path / "a/trained.faiss").read_bytes() == (tmp_path / "b/trained.faiss").read_bytes()


def test_parts_by_rows_share_one_training_and_any_number_of_processes(tmp_path):
    vectors = clustered(900)
    queries = vectors[:20] + np.random.default_rng(2).normal(size=(20, 16)).astype(np.float32) / 4
    build(folder_with(tmp_path, vectors), of(shards=3, min_recall=0.99))
    whole = open_index(tmp_path).search(queries, 10)[1]
    assert (whole == brute_force(vectors, queries, 10)[1]).mean() > 0.95
    for count in (2, 4):
        parts = [open_part(tmp_path, "cpu", rank, count)[0] for rank in range(count)]
        together = MergedIndex([pair for part in parts for pair in part.parts], vectors)
        assert (together.search(queries, 10)[1] == whole).all()
    read = [faiss.read_index(str(tmp_path / f"part-00{part}.faiss")) for part in range(3)]
    centroids = [faiss.downcast_index(part.quantizer).reconstruct_n(0, 8) for part in read]
    assert (centroids[0] == centroids[1]).all() and (centroids[0] == centroids[2]).all()


def test_equal_builds_have_equal_bytes_and_another_seed_another_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("realmctl.extras.faiss.faiss_index.SAMPLED_ROWS", 400)
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        build(folder_with(tmp_path / name, clustered(600)), of(seed=seed))
    trained, again, other = ((tmp_path / name / "trained.faiss").read_bytes() for name in "abc")
    assert trained == again != other
    assert (tmp_path / "a" / "part-000.faiss").read_bytes() == (tmp_path / "b" / "part-000.faiss").read_bytes()


def test_a_refresh_uses_the_training_again_while_the_recall_holds(tmp_path):
    vectors = clustered(800)
    build(folder_with(tmp_path / "first", vectors), of())
    drifted = (vectors + 0.05 * np.random.default_rng(3).normal(size=vectors.shape)).astype(np.float32)
    metrics = build(folder_with(tmp_path / "second", drifted), of(), former=tmp_path / "first")
    assert metrics["trained_before"] == 1
    trained = [(tmp_path / name / "trained.faiss").read_bytes() for name in ("first", "second")]
    assert trained[0] == trained[1]
    scores = open_index(tmp_path / "second").search(drifted[:5], 3)[0]
    np.testing.assert_allclose(scores, brute_force(drifted, drifted[:5], 3)[0], rtol=1e-4)
    elsewhere = (vectors * 40 + 300).astype(np.float32)  # beyond the range that the scalar quantiser was trained for
    metrics = build(folder_with(tmp_path / "third", elsewhere), of(), former=tmp_path / "second")
    assert metrics["trained_before"] == 0 and metrics["recall"] >= 0.95
    assert build(folder_with(tmp_path / "fourth", vectors), of(), former=tmp_path / "gone")["trained_before"] == 0
    built(tmp_path / "graph", vectors)
    assert build(folder_with(tmp_path / "fifth", vectors), of(), former=tmp_path / "graph")["trained_before"] == 0


@pytest.mark.parametrize("file", ["part-000.faiss", "part-001.faiss"])
def test_a_damaged_part_is_refused(tmp_path, file):
    build(folder_with(tmp_path, clustered(300)), of(shards=2))
    data = bytearray((tmp_path / file).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError, match=file):
        open_index(tmp_path)


def test_what_cannot_work_is_refused(tmp_path, monkeypatch):
    folder = folder_with(tmp_path, clustered(50))
    for options in (
        {"type": "faiss"},
        {"type": "exact", "factory": "Flat"},
        {"type": "faiss", "factory": "Fat"},
        {"type": "faiss", "factory": "IVF64,Flat"},  # more lists than rows
        {"type": "faiss", "factory": "PQ2x12np"},
        {"type": "faiss", "factory": "IDMap,Flat"},
        {"type": "faiss", "factory": "Flat", "shards": 51},
        {"type": "faiss", "factory": "Flat", "option": ("nprobe=8",)},
        {"type": "exact", "option": ("leaves",)},
    ):
        with pytest.raises(ConfigError) as refused:
            build(folder, FaissOptions(**options))
        assert ".cpp" not in str(refused.value) and "::" not in str(refused.value)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ResourceError, match="faiss"):
        build(folder, of("Flat"))


def test_a_large_part_is_mapped_and_a_search_starts_no_threads_that_read_ahead(tmp_path, monkeypatch):
    """faiss reads mapped lists ahead by 32 threads, which took three times as long as the search."""
    vectors, queries = clustered(700), clustered(9, seed=1)
    build(folder_with(tmp_path, vectors), of("IVF8,Flat", ef=8, min_recall=0.0))
    of_memory = open_index(tmp_path).search(queries, 5)
    monkeypatch.setattr("realmctl.extras.faiss.faiss_index.IN_MEMORY", 0)
    index = open_index(tmp_path)
    [(_, part)] = index.parts
    lists = faiss.downcast_InvertedLists(faiss.extract_index_ivf(part._part).invlists)
    assert isinstance(lists, faiss.OnDiskInvertedLists) and lists.prefetch_nthread == 0
    for found, wanted in zip(
        (*index.search(queries, 5), *of_memory), brute_force(vectors, queries, 5) * 2, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)

"""Approximate search and its build, through realmctl and by the library itself.

Both sides search the same files. So the rows show what the layers around a library cost: checks of the queries, exact scores of what was found, and its order. The build
of ours has the recall gate too.

What was found: a mapped faiss index started 32 threads at each search to read its lists ahead. Without them 512 queries take .040 s instead of .107, where faiss takes
.033 with its lists in memory. Then the lists of a part of up to 256 MiB were read into memory, whose pages are larger (.88 of the time), and indexes that keep whole vectors, such
as hnsw and IVF,Flat, give their own scores: to look at the found rows again, in another place of memory, took 4 to 6 of 35 to 70 ms. Now .72 became .96 for faiss, and .94 became .96
for hnsw. A quantizer's rows are still scored with the vectors.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from row import DisagreementError, Result, Row, Side, Work

DIMENSION, BEST, QUERIES, AT_ONCE = 128, 8, 512, 32
FACTORY, NPROBE, M, BEAM, EF = "IVF256,Flat", 16, 16, 200, 64


def vectors_of(folder: Path, quick: bool) -> int:
    """Write vectors around centres, and queries near some of them."""
    rng, rows = np.random.default_rng(0), 5000 if quick else 50_000
    centres = rng.standard_normal((rows // 100, DIMENSION), np.float32)
    vectors = centres[rng.integers(len(centres), size=rows)] + 0.6 * rng.standard_normal((rows, DIMENSION), np.float32)
    np.save(folder / "vectors.npy", vectors)
    queries = vectors[rng.integers(rows, size=QUERIES)] + 0.4 * rng.standard_normal((QUERIES, DIMENSION), np.float32)
    np.save(folder / "queries.npy", queries)
    return rows


def prepare(kind: str, folder: Path, quick: bool) -> str:
    from realmctl.index.build import build
    from realmctl.index.settings import index_settings

    rows = vectors_of(folder, quick)
    settings = {
        "hnsw": index_settings()(type="hnsw", m=M, ef_construction=BEAM, ef=EF, min_recall=0.0),
        "faiss": index_settings()(type="faiss", factory=FACTORY, ef=NPROBE, min_recall=0.0),
        "int8": index_settings()(type="int8", min_recall=0.0),
    }
    build(folder, settings[kind])
    return f"{rows:,} vectors, {QUERIES} queries, {AT_ONCE} at once"


def queries_in(folder: Path) -> list[Result]:
    queries = np.load(folder / "queries.npy")
    return [queries[start : start + AT_ONCE] for start in range(0, QUERIES, AT_ONCE)]


def ours(folder: Path) -> Work:
    from realmctl.index.index_type import open_index

    index, queries = open_index(folder), queries_in(folder)
    return lambda: np.concatenate([index.search(each, BEST)[1] for each in queries])


def hnswlib(folder: Path) -> Work:
    import hnswlib

    from realmctl.extras.hnsw.hnsw import GRAPH_FILE

    graph, queries = hnswlib.Index("ip", DIMENSION), queries_in(folder)
    graph.load_index(str(folder / GRAPH_FILE))
    graph.set_ef(EF)
    return lambda: np.concatenate([graph.knn_query(each, BEST, num_threads=1)[0] for each in queries]).astype(np.int64)


def faiss(folder: Path) -> Work:
    import faiss

    (file,) = folder.glob("part-*.faiss")
    index, queries = faiss.read_index(str(file)), queries_in(folder)
    index.nprobe = NPROBE
    return lambda: np.concatenate([index.search(each, BEST)[1] for each in queries])


def faiss_sq8(folder: Path) -> Work:
    import faiss

    vectors, queries = np.load(folder / "vectors.npy"), queries_in(folder)
    index = faiss.IndexScalarQuantizer(DIMENSION, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    return lambda: np.concatenate([index.search(each, BEST)[1] for each in queries])


def agree(least: float, mine: Result, theirs: Result) -> str:
    shared = float(np.mean([len({*a} & {*b}) / BEST for a, b in zip(mine.tolist(), theirs.tolist(), strict=True)]))
    if shared < least:
        raise DisagreementError(f"{shared:.4f} of the rows are the same")
    return f"{100 * shared:.1f} % of the rows"


def prepare_build(folder: Path, quick: bool) -> str:
    rows = vectors_of(folder, quick)
    return f"{rows:,} vectors, {2 * M} links, beam of {BEAM}"


def build_ours(folder: Path) -> Work:
    from realmctl.index.build import build
    from realmctl.index.index_type import open_index
    from realmctl.index.settings import index_settings

    def work() -> Result:
        build(folder, index_settings()(type="hnsw", m=M, ef_construction=BEAM, ef=EF, recall_k=(BEST,)))
        return open_index(folder).search(np.load(folder / "queries.npy"), BEST)[1]

    return work


def build_hnswlib(folder: Path) -> Work:
    import hnswlib

    vectors = np.load(folder / "vectors.npy")

    def work() -> Result:
        graph = hnswlib.Index("ip", DIMENSION)
        graph.init_index(len(vectors), M=M, ef_construction=BEAM)
        graph.add_items(vectors, num_threads=1)
        graph.save_index(str(folder / "peer.bin"))
        graph.set_ef(EF)
        return graph.knn_query(np.load(folder / "queries.npy"), BEST, num_threads=1)[0].astype(np.int64)

    return work


ROWS = (
    *(
        Row(
            name=f"search-{kind}",
            stage=f"search of {kind}, best {BEST}",
            prepare=partial(prepare, kind),
            ours=(Side(kind, ours),),
            peers=(peer,),
            agree=partial(agree, least),
            needs=needs,
        )
        for kind, peer, least, needs in (
            ("hnsw", Side("hnswlib, the same graph", hnswlib), 0.99, ()),
            ("faiss", Side(f"faiss, the same {FACTORY}", faiss, needs=("faiss",)), 0.99, ("faiss",)),
            ("int8", Side("faiss, 8-bit scalar quantizer", faiss_sq8, needs=("faiss",)), 0.95, ()),
        )
    ),
    Row(
        name="build-hnsw",
        stage="build of an hnsw index",
        prepare=prepare_build,
        ours=(Side("build-index, with the recall gate", build_ours),),
        peers=(Side("hnswlib", build_hnswlib),),
        agree=partial(agree, 0.9),
    ),
)

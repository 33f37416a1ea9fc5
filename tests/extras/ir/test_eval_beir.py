"""`realmctl eval-beir`: collections of three kinds through one command, beside a search by hand."""

from __future__ import annotations

import csv
import io
import json
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

from realmctl.artifacts import open_artifact
from realmctl.extras.ir import collection
from realmctl.extras.ir.beir_shortcut import named_collections
from realmctl.extras.ir.collect import Collect
from realmctl.loading import load_retriever
from tests.fixtures.chain import Chain, documents
from tests.fixtures.collections import hub_folder
from tests.fixtures.encoder_folders import folder_for

pytest.importorskip("ir_measures")
DOCUMENTS = {
    name: " ".join([*birth, *work]).replace("[[", "").replace("]]", "") for name, (birth, work) in documents().items()
}
needs_ir_datasets = pytest.mark.skipif(find_spec("ir_datasets") is None, reason="ir_datasets is not installed")
IDS = {name: f"d{number}" for number, name in enumerate(DOCUMENTS)}
QUERIES = {f"q{number}": f"Where was {name} born?" for number, name in enumerate([*DOCUMENTS][:4])}
JUDGED = [(f"q{number}", f"d{number}", 1) for number in range(3)]


@pytest.fixture(scope="module")
def ir(tmp_path_factory):
    """A dataset of ir_datasets on this machine: `tiny/test`. Its last query is not judged."""
    ir_datasets = pytest.importorskip("ir_datasets")
    folder = tmp_path_factory.mktemp("ir")
    (folder / "docs.tsv").write_text("".join(f"{IDS[name]}\t{name}. {text}\n" for name, text in DOCUMENTS.items()))
    (folder / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    (folder / "qrels").write_text("".join(f"{query} 0 {name} {value}\n" for query, name, value in JUDGED))
    files = {"docs_tsv": "docs.tsv", "queries_tsv": "queries.tsv", "qrels_trec": "qrels"}
    made = ir_datasets.create_dataset(**{kind: str(folder / name) for kind, name in files.items()})
    if "tiny/test" not in ir_datasets.registry._registered:
        ir_datasets.registry.register("tiny/test", made)
    return "ir:tiny/test"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A dataset in NanoBEIR's layout, as the hub's client would have fetched it: `owner/Tiny`."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = hub_folder(tmp_path / "snapshot", {}, QUERIES, [judged[:2] for judged in JUDGED])
    columns = {"_id": [*IDS.values()], "text": [f"{name}. {text}" for name, text in DOCUMENTS.items()]}
    parquet.write_table(pa.table(columns), folder / "corpus" / "train-00000-of-00001.parquet")
    (folder / "corpus" / "train-00000.jsonl").unlink()
    asked = []

    def fetched(name: str, **options: object) -> str:
        asked.append((name, options["repo_type"], options["revision"]))
        return str(tmp_path / "snapshot")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetched)
    yield "hf:owner/Tiny@abc"
    assert asked == [("owner/Tiny", "dataset", "abc")] * len(asked)


def by_hand(retriever) -> float:
    """The mean reciprocal rank of the judged documents by the vectors of whole documents."""
    block_ND = retriever.encode_blocks([""] * len(DOCUMENTS), [f"{name}. {text}" for name, text in DOCUMENTS.items()])
    score_BN = retriever.encode_queries([*QUERIES.values()][: len(JUDGED)]) @ block_ND.T
    return float(np.mean([1 / (1 + (row > row[number]).sum()) for number, row in enumerate(score_BN)]))


def test_two_kinds_of_collections_in_one_table(realmctl, chain: Chain, tmp_path, ir, hub):
    encoder, words = folder_for(chain.blocks, tmp_path / "encoder"), ("--measures", "RR@100 R@100")
    code, out, err = realmctl("eval-beir", ir, hub, "--encoder", encoder, *words, "--json")
    assert code == 0, err
    found = json.loads(out)
    heading, first, second, mean = found["table"]
    assert heading == ["collection", "documents", "queries", "RR@100", "R@100"]
    expected = by_hand(load_retriever(found["retriever"]))
    assert first[:3] == ["tiny-test", "20", "3"] and second[:3] == ["Tiny", "20", "3"]
    assert mean[0] == "mean of 2" and first[3:] == second[3:] == mean[3:] == [f"{expected:.4f}", "1.0000"]
    made = open_artifact(found["path"])
    assert [*csv.reader(io.StringIO(made.file("table.csv").read_text()))] == found["table"]
    assert made.metrics["RR@100"] == pytest.approx(expected, abs=1e-4) and made.metrics["collections"] == 2
    code, out, err = realmctl("eval-beir", ir, hub, "--encoder", encoder, *words, "--format", "csv")
    assert code == 0 and [*csv.reader(io.StringIO(out))] == found["table"]
    assert {path.name for path in Path("artifacts").glob("**/v*") if path.is_dir()} == {"v1"}  # nothing was made again


def test_a_folder_of_beir_folders_by_bm25(realmctl, chain: Chain, tmp_path, ir):
    made = Collect(dataset=ir).make(tmp_path / "made")
    (tmp_path / "sets").mkdir()
    for name in ("one", "two"):
        (tmp_path / "sets" / name).symlink_to(made.path)
    given = ("--retriever", chain.retriever.path, "--method", "bm25", "--measures", "Success@1")
    code, out, err = realmctl("eval-beir", tmp_path / "sets", *given)
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and lines[1:3] == [[name, "20", "3", "1.0000"] for name in ("one", "two")], err
    assert not [*Path("artifacts").glob("beir/*/embeddings")]


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        pytest.param(["ir:nobody/knows"], 2, "nobody/knows", marks=needs_ir_datasets),
        (["empty"], 3, "empty"),
        (["hf:a/Same", "hf:b/Same"], 2, "Same"),
        (["hf:a/X", "--method", "magic"], 2, "magic"),
        (["hf:a/X", "--measures", "P@0"], 2, "cutoff is 0"),
    ],
)
def test_what_cannot_be_measured_is_named(realmctl, chain: Chain, given, code, named):
    Path("empty").mkdir()
    left, _, err = realmctl("eval-beir", *given, "--retriever", chain.retriever.path)
    assert left == code and named in err


def test_nanobeir_has_thirteen_sets():
    assert len(named_collections(["nanobeir"])) == len(collection.NANO_BEIR) == 13


def test_judgements_of_several_splits_ask_for_one(tmp_path, hub):
    folder = tmp_path / "snapshot" / "qrels"
    (folder / "train-00000.jsonl").unlink()
    for split in ("dev", "test"):
        (folder / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\nq0\td0\t{1 if split == 'dev' else 2}\n")
    assert (
        Collect(dataset=hub, split="dev")
        .make(tmp_path / "c")
        .file("qrels/test.tsv")
        .read_text()
        .endswith("q0\td0\t1\n")
    )
    with pytest.raises(collection.InputError, match="dev, test"):
        Collect(dataset=hub, split="train").make(tmp_path / "c")


@pytest.mark.parametrize("form", ["jsonl", "parquet", "tsv"])
def test_a_judgement_of_0_stays_0(tmp_path, hub, form):
    """MTEB's collections judge documents that are not relevant too. The forms hold the same, so they give the same file."""
    folder, judged = tmp_path / "snapshot" / "qrels", {"q0": ("d0", 2), "q1": ("d1", 0), "q2": ("d2", -1)}
    (folder / "train-00000.jsonl").unlink()
    rows = [{"query-id": query, "corpus-id": name, "score": score} for query, (name, score) in judged.items()]
    lines = "".join(f"{query}\t{name}\t{score}\n" for query, (name, score) in judged.items())
    written = "query-id\tcorpus-id\tscore\n" + lines
    if form == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(rows), folder / "test.parquet")
    else:
        text = written if form == "tsv" else "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"test.{form}").write_text(text)
    assert Collect(dataset=hub).make(tmp_path / "c").file("qrels/test.tsv").read_text() == written


@pytest.mark.parametrize("score", [0.5, None, "high"])
def test_a_judgement_that_is_no_whole_number_is_refused(tmp_path, hub, score):
    row = {"query-id": "q0", "corpus-id": "d0", "score": score}
    (tmp_path / "snapshot" / "qrels" / "train-00000.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(collection.InputError, match=r"train-00000\.jsonl:1: .*score"):
        Collect(dataset=hub).make(tmp_path / "c")


def test_a_reranker_reads_the_first_documents(realmctl, chain: Chain, cross_encoder, tmp_path):
    folder = tmp_path / "tiny"
    (folder / "qrels").mkdir(parents=True)
    for name, rows in {
        "corpus": [{"_id": IDS[name], "title": name, "text": text} for name, text in DOCUMENTS.items()],
        "queries": [{"_id": name, "text": text} for name, text in QUERIES.items()],
    }.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{name}\t{value}" for query, name, value in JUDGED)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n")
    given = ("eval-beir", folder, "--retriever", chain.retriever.path, "--measures", "nDCG@10", "--json")
    plain, again = (realmctl(*given, *more) for more in ((), ("--rerank", cross_encoder, "--rerank-depth", 7)))
    assert plain[0] == again[0] == 0, again[2]
    ranking = open_artifact(Path("artifacts/beir/tiny/ranking"))
    before, after = ranking.metrics["nDCG@10 before"], ranking.metrics["nDCG@10"]
    assert json.loads(plain[1])["mean"]["nDCG@10"] == pytest.approx(before, abs=1e-4) != after
    assert json.loads(again[1])["mean"]["nDCG@10"] == pytest.approx(after, abs=1e-4)
    assert json.loads(ranking.file("ranking.json").read_text())["reranked"] == 7
    fused = realmctl(*given, "--rerank", cross_encoder, "--rerank-depth", 7, "--rerank-fused")
    assert fused[0] == 0 and open_artifact("artifacts/beir/tiny/ranking").settings["rerank_fused"], fused[2]
    for unfit, code in ((chain.retriever.path, 4), (tmp_path / "nothing", 3), (folder, 3)):
        assert realmctl(*given, "--workspace", "fresh", "--rerank", unfit)[0] == code
        assert not Path("fresh").exists(), "a collection was read before its reranker was"

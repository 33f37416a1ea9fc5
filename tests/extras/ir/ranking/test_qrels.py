"""Judgements are the same whatever the layout; a file that could mean something else is refused."""

from __future__ import annotations

import json

import pytest

from realmctl.errors import InputError
from realmctl.extras.ir.ranking.beir import qrels_file
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.queries import read_queries

JUDGED = {"q1": {"d1": 2, "d2": 0}, "q2": {"d3": 1}}
ROWS = [(query, document, value) for query, judged in JUDGED.items() for document, value in judged.items()]


def table(*names: str, mark: str = "\t", quoted: bool = False) -> str:
    """A table of the judgements whose header has these names; a name that is none of theirs is a column of zeros."""
    at = {"q": 0, "c": 1, "d": 1, "p": 1, "t": 0, "s": 2, "r": 2, "l": 2, "j": 2}
    cells = [[str(row[at[name.strip("#")[0].lower()]] if name[0] != "0" else 0) for name in names] for row in ROWS]
    write = (lambda cell: f'"{cell}"') if quoted else str
    return "".join(mark.join(map(write, line)) + "\n" for line in [[name.lstrip("0") or "0" for name in names], *cells])


LAYOUTS = {
    "BEIR and ranx, JSON": json.dumps(JUDGED),
    "the same over several lines": "\ufeff" + json.dumps(JUDGED, indent=1),
    "TREC": "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n\n",
    "TREC, tabs and blanks": "q1\t0\td1\t2\nq1 Q0 d2  0\nq2\t0 d3\t1\n",
    "BEIR": table("query-id", "corpus-id", "score"),
    "BEIR, Windows": "\ufeff" + table("query-id", "corpus-id", "score").replace("\n", "\r\n"),
    "BEIR, no header": table("query-id", "corpus-id", "score").partition("\n")[2],
    "no header, blanks": table("query-id", "corpus-id", "score", mark=" ").partition("\n")[2],
    "the document first": table("corpus-id", "query-id", "score"),
    "the relevance first": table("relevance", "doc_id", "query_id"),
    "ir_datasets": table("query_id", "doc_id", "relevance", "0iteration"),
    "PyTerrier": table("qid", "docno", "label", mark=","),
    "TREC with a header": table("qid", "0Q0", "docid", "rel"),
    "blanks": table("query-id", "corpus-id", "score", mark=" "),
    "CSV": table("Query-ID", "Passage ID".replace(" ", "_"), "Score", mark=",", quoted=True),
    "semicolons": table("topic", "doc", "judgement", mark=";"),
    "R": table("QueryId", "CorpusId", "Score", quoted=True),
    "JSON lines": "".join(json.dumps({"corpus-id": d, "query-id": q, "score": float(v)}) + "\n" for q, d, v in ROWS),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_judgements_in_every_layout(tmp_path, layout):
    (tmp_path / "qrels").write_text(LAYOUTS[layout], encoding="utf-8")
    assert read_qrels(tmp_path / "qrels") == JUDGED


def test_judgements_in_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(("query-id", "corpus-id", "score"), map(list, zip(*ROWS, strict=True)), strict=True))
    parquet.write_table(arrow.table(columns), tmp_path / "test.parquet")
    assert read_qrels(qrels_file(tmp_path, "test")) == JUDGED


def test_what_is_named_without_a_relevance_is_relevant(tmp_path):
    (tmp_path / "qrels").write_text("query-id,corpus-id\nq1,d1\nq2,d2\n")
    assert read_qrels(tmp_path / "qrels") == {"q1": {"d1": 1}, "q2": {"d2": 1}}


def test_ids_with_blanks_between_tabs(tmp_path):
    for content in ("query-id\tcorpus-id\tscore\nq 1\td 1\t1\n", "q 1\td 1\t1\n", "q 1\t0\td 1\t1\n"):
        (tmp_path / "qrels").write_text(content)
        assert read_qrels(tmp_path / "qrels") == {"q 1": {"d 1": 1}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "qrels"),
        ("q1 d1\n", "qrels:1: .*query-id"),
        ("q1 0 d1\n", "qrels:1: .*query-id"),
        ("1 0 7\n", "qrels:1: .*query-id"),
        ("1\tQ0\t7\n", "qrels:1: .*query-id"),
        ("q1 d1 high\n", "qrels:1: .*query-id"),
        ("q1 Q0 d1 1 1.5 run\n", "qrels:1: .*query-id"),
        ("q1 0 d1 0.5\n", "qrels:1: .*0.5"),
        ("q1 0 d1 1\nq1 0 d2\n", "qrels:2: "),
        ("query-id\tcorpus-id\tscore\nq1\t0\td1\t1\n", "qrels:2: "),
        ("query-id\tcorpus-id\tscore\nq1\td 1\n", "qrels:2: "),
        ("query-id\tcorpus-id\tmark\nq1\td1\t1\n", "qrels:2: .*mark"),
        ('{"query-id": "q1", "score": 1}\n', "qrels:1: .*corpus-id"),
        ('{"query-id": "q1", "corpus-id": "d1", "score": true}\n', "qrels:1: .*True"),
        ("q1 0 d1 1\nq1 0 d1 0\n", "qrels:2: .*d1"),
        ("q1 0 d1 1\nq1 0 d2 1001\n", "qrels:2: .*1001.* from -1000 to 1000"),
        ("q1 0 d1 1\nq1 0 d2 -1001\n", "qrels:2: .*-1001"),
        ("q1 0 d1 1\nq1 0 d2 1e300\n", "qrels:2: .*1e300"),
        ("q1 0 d1 nan\n", "qrels:1: "),
    ],
)
def test_qrels_that_are_refused(tmp_path, content, says):
    (tmp_path / "qrels").write_text(content)
    with pytest.raises(InputError, match=says):
        read_qrels(tmp_path / "qrels")


def test_judgements_are_no_queries(tmp_path):
    for content in (table("qid", "docno", "label"), LAYOUTS["TREC"], LAYOUTS["TREC"].replace(" ", "\t")):
        (tmp_path / "file").write_text(content)
        with pytest.raises(InputError, match=r"\(qrels\)"):
            list(read_queries(tmp_path / "file"))
    (tmp_path / "file").write_text("qid\tquery\tdocument\n1\twho?\tx\n")
    assert [query.question for query in read_queries(tmp_path / "file")] == ["who?"]


@pytest.mark.parametrize("ending", ["tsv", "txt", "qrels", "csv.gz"])
def test_the_file_of_a_split_has_any_of_the_usual_endings(tmp_path, ending):
    for name in (f"test.{ending}", f"train.{ending}", "README.md"):
        (tmp_path / name).touch()
    assert qrels_file(tmp_path, "test") == tmp_path / f"test.{ending}"

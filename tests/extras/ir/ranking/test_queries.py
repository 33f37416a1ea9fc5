"""Queries in every layout that is read, with the ids that rankings and judgements carry."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from realmctl.errors import InputError
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.questions.questions import Question, read_questions

BOTH = [Question("q1", "who wrote it"), Question("q2", "when was it written")]
TWO = {
    "BEIR": '{"_id": "q1", "text": "who wrote it", "metadata": {}}\n{"_id": "q2", "text": "when was it written"}\n',
    "JSON lines": '{"id": "q1", "question": "who wrote it"}\n\n{"id": "q2", "query": "when was it written", "answer": []}',
    "MS MARCO": "q1\twho wrote it\r\nq2\twhen was it written\r\n",
    "a header": "query_id\ttext\nq1\twho wrote it\nq2\twhen was it written\n",
    "CSV": 'query-id,query\nq1,who wrote it\nq2,"when was it written"\n',
    "TREC": (
        "<top>\n<num> Number: q1\n<title> who wrote it\n\n<desc> Description:\nWhich person <wrote> it?\n<narr> Narrative:\nx\n</top>\n\n"
        "<top>\n<head> Tipster Topic\n<num>q2\n<title> Topic:\n when was it\n written \n<desc> Description:\ny\n</top>\n"
    ),
    "TREC, closed": "<top>\r\n<num>q1</num><title>\r\nwho wrote it</title>\r\n</top>\r\n<top><num>q2</num><title>when was it written</title></top>",
    "CuratedTREC": "q1\tx\twho wrote it\tAda\nq2\tx\twhen was it written\t18\\d\\d\n",
}


@pytest.fixture
def read(tmp_path):
    def read(content: str) -> list[Question]:
        (tmp_path / "queries").write_text(content, encoding="utf-8")
        return list(read_queries(tmp_path / "queries"))

    return read


@pytest.mark.parametrize("layout", TWO)
def test_the_layouts(read, layout: str):
    assert read(TWO[layout]) == BOTH


def test_the_number_of_a_topic_is_that_of_its_judgements(read):
    assert read("<top>\n<num> Number: 051\n<title> Topic: a b\n</top>\n") == [Question("51", "a b")]


def test_compressed(tmp_path):
    (tmp_path / "q").write_bytes(gzip.compress(TWO["BEIR"].encode()))
    assert list(read_queries(tmp_path / "q")) == BOTH


@pytest.mark.parametrize(
    "content",
    [
        '{"question": "a b", "answer": ["x"]}\n{"question": "c", "answer": ["y"]}\n{"question": "a b", "answer": ["x"]}',
        "a b\t['x', \"y\"]\nc\t['z']\n",
        json.dumps([{"question": "a b", "answers": ["x"]}, {"id": "7", "question": "c", "answers": ["y"]}]),
        json.dumps({"data": [{"paragraphs": [{"qas": [{"id": "s", "question": "c", "answers": [{"text": "x"}]}]}]}]}),
    ],
)
def test_question_sets_have_the_ids_that_their_questions_have(tmp_path, read, content: str):
    queries = {query.id: query.question for query in read(content)}
    questions = {question.id: question.question for question in read_questions(tmp_path / "queries")}
    assert questions.items() <= queries.items() and questions


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        ('{"_id": "1", "text": "a"}\n{"_id": "1", "text": "b"}', "queries:2: .*'1'"),
        ('{"_id": "1", "text": "a"}\n{"_id": "2"}', "queries:2: "),
        ('{"_id": "1", "text": "a"}\n[1]', "queries:2: "),
        ('{"_id": "1", "text": "a"}\n{', "queries:2: "),
        ('{"_id": "1", "text": " "}\n', "queries:1: .*'1'"),
        ('{"_id": "1", "text": "\\ud800"}\n', "queries:1: "),
        ("1\ta\n2 b\n", "queries:2: "),
        ("<top>\n<title> a\n</top>\n", "queries:1: .*<num>"),
        ("<top>\n<num> 1\n<title> a\n</top>\n\n<top>\n<num> 2\n<desc> b\n</top>\n", "queries:6: .*'2'"),
        ("<top>\n<num> 1\n<title> a\n", "queries:1: .*</top>"),
        ("who wrote it\tAda\n", "queries:1: "),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\n", "judgements"),
        ("who wrote it\n", "queries"),
    ],
)
def test_what_is_refused(read, content: str, says: str):
    with pytest.raises(InputError, match=says):
        read(content)


@pytest.mark.parametrize(
    "name", ["id", "_id", "qid", "qId", "QID", "query_id", "query-id", "question_id", "QuestionId", "example_id"]
)
@pytest.mark.parametrize("layout", ["JSON lines", "JSON list", "CSV", "semicolons", "Parquet"])
def test_an_id_has_the_same_names_for_questions_and_queries(tmp_path, name, layout):
    """The queries of a search and the questions of an evaluation are one file, and their ids must agree."""
    rows = [
        {name: "q1", "question": "who wrote it", "answer": "Ada"},
        {name: "q2", "question": "when was it written", "answer": "1843"},
    ]
    path = tmp_path / "q"
    match layout:
        case "JSON lines":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case "JSON list":
            path.write_text(json.dumps(rows))
        case "CSV" | "semicolons":
            split = "," if layout == "CSV" else ";"
            path.write_text(
                "".join(split.join(row) + "\n" for row in [rows[0].keys(), *(row.values() for row in rows)])
            )
        case _:
            parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
            parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert [(q.id, q.question) for q in read_queries(path)] == [(q.id, q.question) for q in BOTH]
    assert [(q.id, q.answers) for q in read_questions(path)] == [("q1", ("Ada",)), ("q2", ("1843",))]


def test_an_id_that_is_none_is_named(read):
    with pytest.raises(InputError, match="queries:1: "):
        read('{"id": ["q1"], "query": "who wrote it"}\n')


@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_text_file_has_a_query_on_each_line(tmp_path: Path, start: str) -> None:
    path = tmp_path / "asked.txt"
    path.write_text(f"{start}who wrote it?\n\n  how, and why, was it written  \nwho wrote it?\n", encoding="utf-8")
    assert [(each.id, each.question) for each in read_queries(path)] == [
        ("1", "who wrote it?"), ("2", "how, and why, was it written"), ("3", "who wrote it?")
    ]  # fmt: skip
    (tmp_path / "table.txt").write_text("question,answer\nWho was Ada?,a writer\n", encoding="utf-8")
    assert [each.question for each in read_queries(tmp_path / "table.txt")] == ["Who was Ada?"]

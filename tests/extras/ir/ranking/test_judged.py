"""BEIR folders, and queries with judgements, as question sets and as training sets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from realmctl.corpus.document import Document
from realmctl.errors import InputError
from realmctl.extras.ir.labelled import LabelledQuestion
from realmctl.extras.ir.ranking.beir import is_beir, qrels_file
from realmctl.extras.ir.ranking.judged import judged_alone, training_questions
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.questions.questions import Question

DOCUMENTS = {"d1": ("Rome", "A city."), "d2": ("", "A river."), "d 3": ("Oslo", "Another city.")}
QUERIES = {"q1": "which city?", "q2": "which river?", "q3": "what else?"}
JUDGED = {
    "train": [("q2", "d2", 2), ("q2", "d1", 0), ("q1", "d 3", 1), ("q1", "gone", 1)],
    "test": [("q3", "d1", 0), ("q1", "d1", 1), ("q1", "d 3", 1), ("q1", "d2", 0), ("other", "d1", 1)],
}
ROME, RIVER, OSLO = (Document("", *passage) for passage in DOCUMENTS.values())
TRAINING = [
    LabelledQuestion("which city?", (OSLO,), ()),
    LabelledQuestion("which river?", (RIVER,), (ROME,)),
]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def lines(records) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture(params=["", ".gz"])
def beir(tmp_path, request) -> Path:
    """A folder as BEIR's zip files have it, plain or compressed."""
    documents = [{"_id": name, "title": title, "text": text} for name, (title, text) in DOCUMENTS.items()]
    write(tmp_path / f"beir/corpus.jsonl{request.param}", lines(documents))
    queries = [{"_id": name, "text": text, "metadata": {}} for name, text in QUERIES.items()]
    write(tmp_path / f"beir/queries.jsonl{request.param}", lines(queries))
    for split, judged in JUDGED.items():
        rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in judged)]
        write(tmp_path / f"beir/qrels/{split}.tsv{request.param}", "\n".join(rows) + "\n")
    return tmp_path / "beir"


def ms_marco(folder: Path) -> dict[str, Path]:
    """The same training set as MS MARCO's files: ids without spaces, no titles."""
    judged = "".join(f"{query} 0 {name.replace(' ', '_')} {value}\n" for query, name, value in JUDGED["train"])
    return {
        "passages": write(folder / "queries.train.tsv", "".join(f"{name}\t{text}\n" for name, text in QUERIES.items())),
        "qrels": write(folder / "qrels.train.tsv", judged),
        "corpus": write(
            folder / "corpus.tsv",
            "id\ttext\n" + "".join(f"{name.replace(' ', '_')}\t{text}\n" for name, (_, text) in DOCUMENTS.items()),
        ),
    }


def test_a_folder_is_a_set_of_its_judged_test_queries(beir, capsys):
    judged = {name for name, *_ in JUDGED["test"]}
    asked = [*judged_alone(beir, beir)]
    assert asked == [Question(*query) for query in QUERIES.items() if query[0] in judged]
    assert [*judged_alone(beir, qrels_file(beir, "test"))] == asked
    err = capsys.readouterr().err
    assert "1 judged queries are not in it" in err
    assert list(read_queries(beir)) == [Question(*query) for query in QUERIES.items()] and is_beir(beir)


def test_a_folder_is_a_training_set_of_its_train_queries(beir, capsys):
    assert list(training_questions(beir)) == TRAINING
    assert "1 of 4 passages are not in the corpus" in capsys.readouterr().err


def test_queries_and_judgements_in_files_of_their_own(tmp_path):
    files = ms_marco(tmp_path)
    found = list(training_questions(files["passages"], files["qrels"], (files["corpus"],)))
    untitled = {passage: Document("", "", passage.text) for passage in (ROME, RIVER, OSLO)}
    assert found == [
        LabelledQuestion(each.question, *(tuple(map(untitled.get, some)) for some in (each.positives, each.negatives)))
        for each in TRAINING
    ]


def test_tevatrons_second_version_names_passages_by_id(beir):
    records = [
        {"query_id": "q1", "query_text": "which city?", "positive_document_ids": ["d 3"], "negative_document_ids": []},
        {
            "query_id": "q2",
            "query_text": "which river?",
            "positive_document_ids": ["d2"],
            "negative_document_ids": ["d1"],
        },
    ]
    path = write(beir / "train.jsonl", lines(records))
    [corpus] = beir.glob("corpus*")
    assert list(training_questions(path, corpus=(corpus,))) == TRAINING
    with pytest.raises(InputError, match=r"'d 3'.*--corpus"):
        list(training_questions(path))
    first = [
        {"query": "which city?", "positive_passages": [{"docid": "d 3"}, {"docid": "x", "title": "T", "text": "t"}]}
    ]
    path = write(beir / "first.jsonl", lines(first))
    expected = LabelledQuestion("which city?", (OSLO, Document("", "T", "t")), ())
    assert list(training_questions(path, corpus=(corpus,))) == [expected]
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(pyarrow.Table.from_pylist(records), beir / "train-00000-of-00001.parquet")
    assert list(training_questions(beir / "train-00000-of-00001.parquet", corpus=(corpus,))) == TRAINING


def test_queries_in_parquet(tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    records = [{"_id": name, "title": "", "text": text} for name, text in QUERIES.items()]
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "queries.parquet")
    assert list(read_queries(tmp_path / "queries.parquet")) == [Question(*query) for query in QUERIES.items()]


def test_what_does_not_fit_together_is_refused(beir, tmp_path):
    other = write(tmp_path / "other.tsv", "query-id\tcorpus-id\tscore\n77\td1\t1\n")
    with pytest.raises(InputError, match=r"other\.tsv.*'77'"):
        list(judged_alone(beir, other))
    elsewhere = write(tmp_path / "elsewhere.jsonl", lines([{"id": "z", "text": "x"}]))
    with pytest.raises(InputError, match="no document"):
        list(training_questions(beir, corpus=(elsewhere,)))
    for path in (beir / "qrels").iterdir():
        path.rename(path.with_name(path.name.replace("t", "x", 1)))
    with pytest.raises(InputError, match="split"):
        list(judged_alone(beir, beir))

"""Parquet and Arrow files are written by pyarrow and read back; a hostile one is one error and little memory."""

from __future__ import annotations

import json
import resource
import shutil

import pytest

from realmctl.corpus.document import cleaned
from realmctl.corpus.reading import documents
from realmctl.errors import InputError, ResourceError
from realmctl.inputs import reader_process
from realmctl.inputs.dataset_folders import SHARD, data_files
from realmctl.inputs.rows import columnar, json_lines, json_list
from realmctl.questions.questions import Question, read_questions

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CITIES = [
    {"id": "7", "url": "u", "title": "Rome", "text": "Rome is a city."},
    {"id": "8", "url": "u", "title": "Århus", "text": "Århus, too."},
    {"id": "9", "url": "u", "title": "Oslo", "text": None},
]


def write(path, records, kind="parquet", **options):
    table = pyarrow.Table.from_pylist(records)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        parquet.write_table(table, path, **options)
        return path
    opened = {"stream": pyarrow.ipc.new_stream, "file": pyarrow.ipc.new_file}[kind]
    with pyarrow.OSFile(str(path), "wb") as file, opened(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path


def save_to_disk(folder, records, shards=2):
    """Write what `datasets.Dataset.save_to_disk` writes, with a leftover of `map` beside it."""
    names = [f"data-{number:05}-of-{shards:05}.arrow" for number in range(shards)]
    for number, name in enumerate(names):
        write(folder / name, records[number::shards], "stream")
    write(folder / "cache-0123.arrow", records, "stream")
    (folder / "dataset_info.json").write_text("{}")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))


def corpus(path):
    return [(page.id, page.title, page.text) for page in map(cleaned, documents([path]))]


EXPECTED = [("7", "Rome", "Rome is a city."), ("8", "Århus", "Århus, too.")]


@pytest.mark.parametrize("kind", ["parquet", "stream", "file"])
def test_a_corpus_in_one_file(tmp_path, kind):
    assert corpus(write(tmp_path / "c", CITIES[:2], kind)) == EXPECTED


def test_a_column_may_hold_numbers_lists_and_nothing(tmp_path):
    records = [{"docid": 4, "contents": ["One.", "Two."], "vector": [0.5]}, {"docid": 5, "contents": None}]
    path = write(tmp_path / "c", records, row_group_size=1)
    assert [row.fields for row in columnar(path, ("docid", "contents", "title"), ("contents",))] == [
        {"docid": 4, "contents": ["One.", "Two."]},
        {"docid": 5, "contents": None},
    ]


def test_a_folder_of_the_hub_and_a_saved_dataset(tmp_path):
    write(tmp_path / "hub/data/train-00000-of-00002.parquet", CITIES[:1])
    write(tmp_path / "hub/data/train-00001-of-00002-0a1b.parquet", CITIES[1:2])
    (tmp_path / "hub/README.md").write_text("# Not a document")
    assert corpus(tmp_path / "hub") == EXPECTED
    save_to_disk(tmp_path / "saved/train", CITIES[:2])
    assert corpus(tmp_path / "saved/train") == EXPECTED
    save_to_disk(tmp_path / "saved/test", [{"id": "1", "text": "x"}], shards=1)
    (tmp_path / "saved/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert {name: len(files) for name, files in data_files(tmp_path / "saved").items()} == {"train": 2, "test": 1}


def test_splits_are_told_by_names():
    names = {"train-00000-of-00002": "train", "wiki-en-train-00000-of-00002-ff": "train", "0003": None}
    assert {name: SHARD.fullmatch(name)["split"] for name in names} == names
    assert not SHARD.fullmatch("test")


QA = [
    {"question": "Which city?", "answer": ["Rome", "Roma"]},
    {"question": "Which city?", "answers": {"text": ["Rome", "Roma"], "answer_start": [1, 2]}},
    {"question": "Which city?", "answer": {"value": "Rome", "aliases": ["Roma"], "type": "x"}},
]


@pytest.mark.parametrize("record", QA)
def test_questions_of_the_hub(tmp_path, record):
    """The columns are those of nq_open, squad and trivia_qa."""
    path = write(tmp_path / "d/plain/train-00000-of-00001.parquet", [record])
    assert read_questions(path) == [Question("1", "Which city?", ("Rome", "Roma"))]


def test_questions_come_from_one_split(tmp_path):
    train = write(tmp_path / "d/plain/train-00000-of-00001.parquet", QA[:1])
    assert read_questions(tmp_path / "d") == read_questions(train)
    shutil.copy(train, tmp_path / "d/plain/test-00000-of-00001.parquet")
    with pytest.raises(InputError, match="plain/test, plain/train"):
        read_questions(tmp_path / "d")


def test_a_table_without_the_column_is_named(tmp_path):
    path = write(tmp_path / "c", [{"a": 1, "b": 2}])
    with pytest.raises(InputError, match=r"a, b.*text"):
        corpus(path)
    with pytest.raises(InputError, match="question"):
        read_questions(path)


def test_bytes_are_not_text(tmp_path):
    with pytest.raises(InputError, match="bytes"):
        corpus(write(tmp_path / "c", [{"text": b"\xff"}]))


def test_a_damaged_file_is_an_error(tmp_path):
    for kind, cut in (("parquet", 60), ("stream", 200)):
        path = write(tmp_path / kind, CITIES, kind)
        path.write_bytes(path.read_bytes()[:-cut])
        with pytest.raises(InputError, match=kind):
            corpus(path)


def test_a_small_file_with_a_huge_value_is_an_error(tmp_path):
    path = tmp_path / "bomb"
    parquet.write_table(pyarrow.table({"text": ["x" * (2**24 + 1)]}), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 2**16
    with pytest.raises(InputError, match=r"row 1 .*16 MiB"):
        corpus(path)


def test_memory_is_limited(tmp_path, monkeypatch, capsys):
    limits = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, limit: limits.append((which, limit)))

    def exhausted(*_):
        raise MemoryError

    monkeypatch.setattr(reader_process, "_write_file", exhausted)
    with pytest.raises(SystemExit) as stopped:
        reader_process.main("x", ())
    assert stopped.value.code == reader_process.FAILED and "3 GiB" in capsys.readouterr().err
    assert limits == [(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))]


def test_a_saved_dataset_cannot_name_other_folders(tmp_path):
    save_to_disk(tmp_path / "d", CITIES[:2])
    (tmp_path / "d/state.json").write_text('{"_data_files": [{"filename": "../secret.arrow"}]}')
    with pytest.raises(InputError, match=r"\.\./secret"):
        data_files(tmp_path / "d")
    (tmp_path / "d/state.json").write_text('{"_data_files": [], "_indices_data_files": [{"filename": "i.arrow"}]}')
    with pytest.raises(InputError, match="flatten_indices"):
        data_files(tmp_path / "d")
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d").mkdir()
    assert data_files(tmp_path / "d") == {}


def test_without_pyarrow_one_line_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "c", CITIES)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"realmctl\[parquet\]"):
        corpus(path)


def test_missing_values_are_null_in_every_form_of_json(tmp_path):
    record = '{"a": NaN, "b": [Infinity, -Infinity], "c": 1e999, "d": "NaN"}'
    (tmp_path / "lines").write_text(record + "\n")
    (tmp_path / "list").write_text(f"[{record}]")
    for row in (*json_lines(tmp_path / "lines"), *json_list(tmp_path / "list")):
        assert [row.fields["a"], row.fields["b"], str(row.fields["c"]), row.fields["d"]] == [
            None,
            [None, None],
            "1e999",
            "NaN",
        ]


def test_missing_values_of_parquet_are_null(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"title": [float("nan"), 1.5, float("inf")], "text": ["a", "b", "c"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    found = [row.fields["title"] for row in columnar(tmp_path / "x.parquet", ["title", "text"], ["text"])]
    assert found == [None, 1.5, None]

"""The spans files read back as they were written, whatever the sizes."""

import json

import numpy as np

from realmctl.artifacts.records import Records
from realmctl.spans.salient import SalientSpan
from realmctl.spans.spans_file import SpansWriter
from realmctl.spans.tagged_sentences import TaggedSentence


def sentence(tokens: list[int], *labels: str) -> TaggedSentence:
    spans = [SalientSpan(0, 1, label) for label in labels]
    return TaggedSentence(3, "0-3", "T", 0, "abc", np.array(tokens), spans, [(0, 1)] * len(labels))


def test_files_of_a_spans_artifact(tmp_path):
    with SpansWriter(tmp_path.joinpath, np.uint16) as spans:
        spans.write(sentence([5, 30521], "DATE"), 2**64 - 1)
        spans.write(sentence([6], "ENTITY", "DATE"), 7)
    arrays = {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("tokens", "offsets", "uids", "spans")}
    assert {name: str(array.dtype) for name, array in arrays.items()} == {
        "tokens": "uint16",
        "offsets": "int64",
        "uids": "uint64",
        "spans": "int32",
    }
    assert arrays["tokens"].tolist() == [5, 30521, 6]
    assert arrays["offsets"].tolist() == [0, 2, 3]
    assert arrays["uids"].tolist() == [2**64 - 1, 7]
    assert arrays["spans"].tolist() == [[0, 0, 1, 0], [1, 0, 1, 1], [1, 0, 1, 0]]
    assert json.loads((tmp_path / "labels.json").read_text()) == ["DATE", "ENTITY"]
    common = {"block": 3, "id": "0-3", "title": "T", "sentence": 0, "text": "abc"}
    assert list(Records(tmp_path / "sentences.jsonl.zst")) == [
        {**common, "spans": [[0, 1, "DATE"]]},
        {**common, "spans": [[0, 1, "ENTITY"], [0, 1, "DATE"]]},
    ]


def test_ids_are_stored_as_wide_as_asked(tmp_path):
    with SpansWriter(tmp_path.joinpath, np.uint32) as spans:
        spans.write(sentence([65_536], "X"), 0)
    assert np.load(tmp_path / "tokens.npy").tolist() == [65_536]

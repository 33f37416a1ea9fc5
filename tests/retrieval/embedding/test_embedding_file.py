from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from realmctl.errors import ResourceError
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile, npy_header


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 4)).astype(np.float32)


def opened(folder, count=10, dtype="float32"):
    return EmbeddingFile(folder / "e.npy", folder / "done.jsonl", count, 4, dtype)


def test_the_header_is_the_one_that_numpy_writes(tmp_path):
    np.save(tmp_path / "n.npy", np.zeros((1234, 77), np.float16))
    assert (tmp_path / "n.npy").read_bytes().startswith(npy_header(np.dtype("float16"), (1234, 77)))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ranges_in_any_order_make_the_matrix(tmp_path, dtype):
    matrix = rows(10).astype(dtype)
    with opened(tmp_path, dtype=dtype) as file:
        file.write(6, matrix[6:])
        file.write(0, matrix[:6])
        assert file.done() == {(0, 6), (6, 10)}
    np.save(tmp_path / "whole.npy", matrix)
    assert (tmp_path / "e.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_the_file_has_its_final_size_from_the_start(tmp_path):
    with opened(tmp_path):
        assert (tmp_path / "e.npy").stat().st_size == len(npy_header(np.dtype("float32"), (10, 4))) + 160


def test_what_was_done_is_known_after_opening_again(tmp_path):
    with opened(tmp_path) as file:
        file.write(2, rows(3))
    with opened(tmp_path) as file:
        assert file.done() == {(2, 5)}


@pytest.mark.parametrize("size", [0, 1, 30, -1])
def test_a_torn_line_of_the_journal_counts_for_nothing(tmp_path, size):
    with opened(tmp_path) as file:
        file.write(0, rows(3))
        file.write(3, rows(3))
    _, first, second = (tmp_path / "done.jsonl").read_bytes().split(b"\n")
    (tmp_path / "done.jsonl").write_bytes(b"\n" + first + b"\n" + second[:size])
    with opened(tmp_path) as file:
        assert file.done() == {(0, 3)}
        file.write(3, rows(3))
        assert file.done() == {(0, 3), (3, 6)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"sha256"', b'"sha\xb556"'),
        (b": 3,", b": 9,"),
        (b": 3,", b": -3,"),
        (b": 3,", b": 3.5,"),
        (b": 6,", b": 7777777,"),
        (b": 6,", b': "6",'),
    ],
)
def test_a_damaged_line_of_the_journal_counts_for_nothing(tmp_path, old, new):
    with opened(tmp_path) as file:
        file.write(0, rows(3))
        file.write(3, rows(3))
    journal = tmp_path / "done.jsonl"
    _, first, second = journal.read_bytes().split(b"\n")
    journal.write_bytes(b"\n" + first + b"\n" + second.replace(old, new))
    with opened(tmp_path) as file:
        assert file.done() == {(0, 3)}


@pytest.mark.parametrize("change", ["other shape", "cut", "header"])
def test_a_file_of_another_shape_is_begun_anew(tmp_path, change):
    with opened(tmp_path) as file:
        file.write(0, rows(3))
    data = (tmp_path / "e.npy").read_bytes()
    if change == "cut":
        (tmp_path / "e.npy").write_bytes(data[:-1])
    if change == "header":
        (tmp_path / "e.npy").write_bytes(b"X" + data[1:])
    with opened(tmp_path, count=11 if change == "other shape" else 10) as file:
        assert file.done() == set()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT])
def test_a_disk_without_room_is_refused_before_anything_is_embedded(tmp_path, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(ResourceError), opened(tmp_path):
        pass


def test_writes_that_take_only_a_part_are_gone_on_with(tmp_path, monkeypatch):
    whole = os.pwrite
    monkeypatch.setattr(
        os,
        "pwrite",
        lambda handle, data, at: whole(handle, data[:7], at) if len(data) <= 40 else whole(handle, data, at),
    )
    with opened(tmp_path) as file:
        file.write(1, rows(2))
    assert (np.load(tmp_path / "e.npy")[1:3] == rows(2)).all()

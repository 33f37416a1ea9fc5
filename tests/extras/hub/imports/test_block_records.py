"""Block records: NumPy's own files come back as they went in, and nothing else gets anywhere."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.errors import InputError
from realmctl.extras.hub.imports.block_records import read_records


def npy(shape: tuple[int, ...], pickled: bytes, descr: str = "|O") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + pickled


def objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def read(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    count, records = read_records(path)
    found = list(records)
    assert len(found) == count
    return found


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("kind", [str, bytes])
@settings(max_examples=25)
@given(texts=st.lists(st.text(max_size=400), min_size=1, max_size=30))
def test_what_numpy_pickled_is_read(tmp_path_factory, protocol: int, kind: type, texts: list[str]):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    array = objects([text if kind is str else text.encode() for text in texts])
    path = tmp_path_factory.mktemp("records") / "r.npy"
    assert read(path, npy((len(texts),), pickle.dumps(array, protocol))) == texts


def test_what_numpy_saves_is_read_and_many_at_that(tmp_path):
    texts = [f"Block {number} of Zoë. " * (number % 40) for number in range(5000)] + ["x" * 70_000, "", ""]
    np.save(tmp_path / "r.npy", objects([text.encode() for text in texts]), allow_pickle=True)
    count, records = read_records(tmp_path / "r.npy")
    assert count == len(texts) and list(records) == texts


def test_one_object_many_times(tmp_path):
    same = b"the same object"
    assert read(tmp_path / "r.npy", npy((300,), pickle.dumps(objects([same] * 300), 4))) == [same.decode()] * 300


def test_the_old_name_of_numpys_core_is_known(tmp_path):
    pickled = pickle.dumps(objects([b"a"]), 3)
    for name in (b"numpy._core.multiarray", b"numpy.core.multiarray"):
        assert read(tmp_path / "r.npy", npy((1,), pickled.replace(b"numpy._core.multiarray", name))) == ["a"]


def test_memory_does_not_grow_with_the_texts(tmp_path):
    np.save(tmp_path / "r.npy", objects([bytes([65 + n % 26]) * 4000 for n in range(5000)]), allow_pickle=True)
    tracemalloc.start()
    count, records = read_records(tmp_path / "r.npy")
    assert sum(map(len, records)) == 4000 * count == 20_000_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_500_000


class Attack:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.how = call, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.how


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("place", ["alone", "a record", "the last record"])
@pytest.mark.parametrize(
    ("call", "named"),
    [(os.system, "system"), (os.mkdir, "mkdir"), (eval, "eval"), (np.load, "load"), (bytearray, "bytearray")],
)
def test_an_attack_is_refused_by_name_and_not_executed(tmp_path, call: Any, named: str, place: str, protocol: int):
    canary = tmp_path / "canary"
    argument = {"system": f"touch {canary}", "eval": f"open({str(canary)!r}, 'w')"}.get(named, str(canary))
    attack = Attack(call, argument) if named != "bytearray" else bytearray(b"x")
    values: Any = attack if place == "alone" else objects([attack] if place == "a record" else [b"x"] * 2000 + [attack])
    pickled, count = pickle.dumps(values, protocol), 1 if place != "the last record" else 2001
    with pytest.raises(InputError, match=r"byte \d") as refusal:
        read(tmp_path / "r.npy", npy((count,), pickled))
    assert not canary.exists() and "\n" not in str(refusal.value)
    if 3 <= protocol < 5 and named != "bytearray":
        assert named in str(refusal.value)


@pytest.mark.parametrize(
    "values",
    [
        [1],
        [None],
        [["a"]],
        [(b"a",)],
        [{}],
        [b"a", 1.5],
        [objects([b"a"])],
        [np.float32(1)],
        [b"\xff\xfe"],
        [{1}],
        [True],
    ],
)
def test_other_records_are_refused(tmp_path, values: list[Any]):
    array = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        array[number] = value
    with pytest.raises(InputError, match=r"byte \d"):
        read(tmp_path / "r.npy", npy((len(values),), pickle.dumps(array, 4)))


def test_other_arrays_are_refused(tmp_path):
    path = tmp_path / "r.npy"
    for array in (np.zeros(3), np.array(["a"]), np.array([b"a"]), objects([b"a", b"b"]).reshape(2, 1)):
        np.save(path, array, allow_pickle=True)
        with pytest.raises(InputError):
            read_records(path)
    for content in (
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00",
        pickle.dumps([b"a"]),
        npy((0,), pickle.dumps(objects([]))),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError):
            read_records(path)
    with pytest.raises(InputError):
        read_records(tmp_path / "missing.npy")


@pytest.mark.parametrize("claimed", [1, 3, 2**40])
def test_the_header_must_tell_the_number_of_records(tmp_path, claimed: int):
    with pytest.raises(InputError):
        read(tmp_path / "r.npy", npy((claimed,), pickle.dumps(objects([b"a", b"b"]), 4)))


def test_every_cut_is_noticed_and_every_flip_is_harmless(tmp_path):
    whole = npy((3,), pickle.dumps(objects([b"first", b"second", b"third"]), 4))
    texts = ["first", "second", "third"]
    for end in range(len(whole)):
        with pytest.raises(InputError):
            read(tmp_path / "r.npy", whole[:end])
    with pytest.raises(InputError, match="something follows"):
        read(tmp_path / "r.npy", whole + b".")
    for at in range(128, len(whole)):
        for bit in (1, 16, 128):
            flipped = bytearray(whole)
            flipped[at] ^= bit
            try:
                assert len(read(tmp_path / "r.npy", bytes(flipped))) == len(texts)
            except InputError as error:
                assert "\n" not in str(error)


def test_bombs_are_refused(tmp_path):
    head, _, tail = pickle.dumps(objects([b"xx", b"yy"]), 4).partition(b"C\x02xx\x94C\x02yy\x94")
    memo = head.count(b"\x94")
    big = b"B" + struct.pack("<I", 2**20) + b"x" * 2**20 + b"\x94"
    again = b"h" + bytes([memo])
    for middle, count in (
        (big + again * 3000, 3001),  # three gigabytes of text from one megabyte
        (b"C\x01x" * 5000, 5000),
        (b"B" + struct.pack("<I", 2**31) + b"x", 1),
        (b"r" + struct.pack("<I", 2**31), 1),
        (b"(" * 5000, 1),
    ):
        with pytest.raises(InputError, match=r"byte \d"):
            read(tmp_path / "r.npy", npy((count,), head + middle + tail))

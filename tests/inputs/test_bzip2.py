"""bzip2 on several threads against Python's own reader, on files that are cut, damaged, or hold marks where no stream begins."""

from __future__ import annotations

import bz2
import io
import random
import re
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.inputs import bzip2
from realmctl.inputs.bzip2 import decompressed_streams
from realmctl.inputs.streams import head

TEXT = "".join(f"line {n} " + "é" * (n % 7) + "\n" for n in range(3000)).encode()


def read(data: bytes, threads: int = 2) -> bytes:
    return b"".join(decompressed_streams(io.BytesIO(data), threads))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(bzip2, "READ_BYTES", 257)
    monkeypatch.setattr(bzip2, "PIECE_BYTES", 1000)
    monkeypatch.setattr(bzip2, "OUTPUT_BYTES", 5000)
    monkeypatch.setattr(bzip2, "STEP_BYTES", 300)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 9000), max_size=8), st.integers(1, 9), st.integers(0, 3))
def test_streams_of_any_size_are_read_as_by_python(sizes, level, threads):
    data = b"".join(bz2.compress(TEXT[:size], level) for size in sizes)
    assert read(data, threads) == bz2.decompress(data)


def test_a_stream_that_is_longer_than_a_piece_goes_on_in_the_next():
    noise = random.Random(0).randbytes(20_000)
    data = bz2.compress(noise) + bz2.compress(TEXT) + bz2.compress(noise)
    assert read(data) == noise + TEXT + noise


def test_a_mark_inside_a_stream_begins_no_stream(monkeypatch):
    """Every byte string that looks like this mark is one: the file is cut in the middle of its streams."""
    data = bz2.compress(TEXT) + bz2.compress(TEXT[::-1])
    inside = data[200:210]
    monkeypatch.setattr(bzip2, "MARK", re.compile(rb"BZh[1-9]1AY&SY|" + re.escape(inside)))
    assert read(data) == TEXT + TEXT[::-1]


def test_every_cut_is_found_unless_it_is_between_streams():
    first = bz2.compress(TEXT[:400])
    data = first + bz2.compress(TEXT[400:800])
    for size in range(1, len(data)):
        if size == len(first):
            assert read(data[:size]) == TEXT[:400]
        else:
            with pytest.raises((EOFError, OSError)):
                read(data[:size])


def test_damage_is_found_wherever_it_is():
    data = bytearray(bz2.compress(TEXT[:5000]) + bz2.compress(TEXT[5000:9000]))
    for place in random.Random(1).sample(range(14, len(data)), 60):
        broken = bytearray(data)
        broken[place] ^= 0x10
        with pytest.raises((EOFError, OSError, ValueError)):
            read(bytes(broken))


def test_a_stream_that_expands_without_end_is_made_in_small_steps():
    pieces = decompressed_streams(io.BytesIO(bz2.compress(b"\0" * 10**6)), 2)
    lengths = [len(piece) for piece in pieces]
    assert sum(lengths) == 10**6 and max(lengths) <= 5000


def test_a_reader_that_stops_early_leaves_no_thread():
    before = threading.active_count()
    pieces = decompressed_streams(io.BytesIO(b"".join(bz2.compress(TEXT) for _ in range(40))), 2)
    next(pieces)
    pieces.close()
    assert threading.active_count() == before


def test_the_head_of_a_file_costs_one_small_step(monkeypatch, tmp_path):
    """Whoever looks at the beginning of each file of a dump waits for no thread, and decompresses no whole stream."""
    sizes: list[int] = []

    class Counting:
        def __init__(self) -> None:
            self.inner = bz2.BZ2Decompressor()

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def decompress(self, data, most):
            made = self.inner.decompress(data, most)
            sizes.append(len(made))
            return made

    monkeypatch.setattr(bzip2, "ThreadPoolExecutor", None)
    monkeypatch.setattr(bzip2, "bz2", SimpleNamespace(BZ2Decompressor=Counting))
    (tmp_path / "a.bz2").write_bytes(bz2.compress(TEXT))
    assert head(tmp_path / "a.bz2", 200) == TEXT[:200]
    assert sum(sizes) <= 300

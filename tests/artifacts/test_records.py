"""Records: they are read back as they were written, in any order. A file that was cut or changed is refused."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.artifacts import records
from realmctl.artifacts.records import RECORDS_PER_FRAME, Records, RecordWriter, frames_path
from realmctl.errors import InputError
from realmctl.inputs.streams import decompressed

ODD = "line one\nline two\r\n\u2028\u2029\x85\x0b\x0c\t\x00 \U0001f600 ­ \ufeff é"


def write(path: Path, items: list[dict]) -> Path:
    with RecordWriter(path) as writer:
        for item in items:
            writer.write(item)
    return path


@pytest.fixture
def many(tmp_path) -> Path:
    return write(tmp_path / "x.jsonl.zst", [{"n": n, "text": ODD * (n % 3)} for n in range(2 * RECORDS_PER_FRAME + 7)])


def test_random_access_slices_and_iteration(many):
    found = Records(many)
    assert len(found) == 2 * RECORDS_PER_FRAME + 7
    places = [0, 1, RECORDS_PER_FRAME - 1, RECORDS_PER_FRAME, len(found) - 1]
    places += random.Random(0).choices(range(len(found)), k=50)
    assert [found[i]["n"] for i in places] == places
    assert found[-1]["n"] == len(found) - 1
    assert found[: RECORDS_PER_FRAME + 3 : 5] == [found[i] for i in range(0, RECORDS_PER_FRAME + 3, 5)]
    assert found[:3:-1] == list(found)[:3:-1]
    assert [one["n"] for one in found] == list(range(len(found)))
    for place in (len(found), -len(found) - 1):
        with pytest.raises(IndexError):
            found[place]


def test_one_record_of_a_frame_is_parsed_and_no_other(many, monkeypatch):
    found, parsed, decode = Records(many), [], json.loads
    monkeypatch.setattr(records.json, "loads", lambda line: parsed.append(line) or decode(line))
    assert [found[place]["n"] for place in (3, 3, 4, 3)] == [3, 3, 4, 3]
    assert [decode(line)["n"] for line in parsed] == [3, 4]


def test_standard_decompression_gives_json_lines(many):
    with zstandard.open(many, "rb") as file:
        lines = file.read().split(b"\n")
    assert lines.pop() == b"" and [json.loads(line)["n"] for line in lines] == list(range(len(Records(many))))


@pytest.mark.skipif(shutil.which("zstdcat") is None, reason="needs the zstd command")
def test_zstdcat_reads_it(many):
    text = subprocess.run(["zstdcat", many], capture_output=True, check=True).stdout
    assert text.count(b"\n") == len(Records(many))


def test_an_empty_file_is_a_corpus_of_none(tmp_path):
    found = Records(write(tmp_path / "x.jsonl.zst", []))
    assert (len(found), list(found)) == (0, [])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=9), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_what_goes_in_comes_out(tmp_path_factory, items, per_frame):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "RECORDS_PER_FRAME", per_frame)
        found = Records(write(tmp_path_factory.mktemp("r") / "x.jsonl.zst", items))
        assert list(found) == items
        assert [found[i] for i in reversed(range(len(found)))] == items[::-1]


def test_half_a_character_is_refused_by_name(tmp_path):
    path = tmp_path / "x.jsonl.zst"
    with pytest.raises(InputError, match=r"x\.jsonl\.zst, record 1: '\\ud83d'") as error:
        write(path, [{"text": "good"}, {"text": "bad \ud83d"}])
    str(error.value).encode()
    assert not frames_path(path).exists()


def test_what_is_no_json_is_a_bug(tmp_path):
    for value in (float("nan"), {1, 2}, b"x"):
        with pytest.raises((ValueError, TypeError)):
            write(tmp_path / "x.jsonl.zst", [{"value": value}])


def readable(path: Path) -> bool:
    try:
        list(Records(path))
    except InputError:
        return False
    return True


def test_cut_at_any_byte_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS_PER_FRAME", 3)
    path = write(tmp_path / "x.jsonl.zst", [{"n": n} for n in range(8)])
    for file in (path, frames_path(path)):
        whole = file.read_bytes()
        for length in range(len(whole)):
            file.write_bytes(whole[:length])
            assert not readable(path), (file.name, length)
        file.write_bytes(whole + b"0")
        assert not readable(path)
        file.write_bytes(whole)
    assert readable(path)
    for file in (path, frames_path(path)):
        file.rename(tmp_path / "away")
        assert not readable(path)
        (tmp_path / "away").rename(file)


def test_every_flipped_bit_of_the_data_is_noticed(tmp_path):
    path = write(tmp_path / "x.jsonl.zst", [{"n": n} for n in range(5)])
    whole = path.read_bytes()
    for position, bit in itertools.product(range(len(whole)), range(8)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << bit]) + whole[position + 1 :])
        # 0x08 of a frame's descriptor is a reserved bit, and 0x10 an unused one: neither changes what is read
        assert not readable(path) or list(Records(path)) == [{"n": n} for n in range(5)]


TABLES = [
    {"records": -1},
    {"records": True},
    {"records": 4},
    {"records": 6},
    {"records": 10**18},
    {"records_per_frame": 0},
    {"records_per_frame": 4},
    {"records_per_frame": 6},
    {"offsets": []},
    {"offsets": [0]},
    {"offsets": "all"},
    {"offsets": [0, 10.0]},
    {"offsets": None},
]


@pytest.mark.parametrize("change", TABLES)
def test_a_table_that_lies_is_refused(tmp_path, change, monkeypatch):
    monkeypatch.setattr(records, "RECORDS_PER_FRAME", 5)
    path = write(tmp_path / "x.jsonl.zst", [{"n": n} for n in range(5)])
    table = json.loads(frames_path(path).read_text())
    frames_path(path).write_text(json.dumps({**table, **change}))
    if change == {"records_per_frame": 6}:
        assert len(list(Records(path))) == 5
    else:
        assert not readable(path)


def test_a_table_without_the_first_frame_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS_PER_FRAME", 5)
    path = write(tmp_path / "x.jsonl.zst", [{"n": n} for n in range(10)])
    table = json.loads(frames_path(path).read_text())
    frames_path(path).write_text(json.dumps({**table, "records": 5, "offsets": table["offsets"][1:]}))
    assert not readable(path)


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "[" * 100_000, "\xff"])
def test_a_table_that_is_none_is_refused(tmp_path, text):
    path = write(tmp_path / "x.jsonl.zst", [{"n": 1}])
    frames_path(path).write_text(text, encoding="latin-1")
    assert not readable(path)


def with_frame(path: Path, frame: bytes, count: int = 1) -> Path:
    path.write_bytes(frame)
    table = {"records": count, "records_per_frame": RECORDS_PER_FRAME, "offsets": [0, len(frame)]}
    frames_path(path).write_text(json.dumps(table))
    return path


def test_a_frame_that_would_fill_the_memory_is_refused(tmp_path):
    blank = b" " * 2**20
    compressor = zstandard.ZstdCompressor(level=1)
    sink = compressor.compressobj(size=300 * 2**20)
    bomb = b"".join(sink.compress(blank) for _ in range(300)) + sink.flush()
    assert len(bomb) < 10**6
    with pytest.raises(InputError, match="314572800"):
        list(Records(with_frame(tmp_path / "x.jsonl.zst", bomb)))
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(blank)
    with pytest.raises(InputError, match="-1"):
        list(Records(with_frame(tmp_path / "x.jsonl.zst", unsized)))


def test_a_frame_of_more_or_fewer_records_than_promised_is_refused(tmp_path):
    frame = zstandard.ZstdCompressor().compress(b'{"n":1}\n{"n":2}\n')
    assert len(list(Records(with_frame(tmp_path / "x.jsonl.zst", frame, 2)))) == 2
    for count in (1, 3):
        with pytest.raises(InputError, match=str(count)):
            list(Records(with_frame(tmp_path / "x.jsonl.zst", frame, count)))
    with pytest.raises(InputError):
        list(Records(with_frame(tmp_path / "x.jsonl.zst", frame + frame, 2)))


def test_the_writer_refuses_what_the_reader_would(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_FRAME_BYTES", 1000)
    with pytest.raises(InputError, match="1000"):
        write(tmp_path / "x.jsonl.zst", [{"text": "x" * 600}] * 2)


def test_a_file_without_records_is_one_that_other_readers_read(tmp_path):
    """zstd refuses a file of no bytes."""
    path = tmp_path / "x.jsonl.zst"
    with RecordWriter(path):
        pass
    assert zstandard.frame_content_size(path.read_bytes()) == 0
    assert zstandard.ZstdDecompressor().decompress(path.read_bytes()) == b"" == b"".join(decompressed(path))
    assert list(Records(path)) == []
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"x\.jsonl\.zst"):
        Records(path)

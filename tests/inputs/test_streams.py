from __future__ import annotations

import bz2
import gzip
import random

import pytest
import zstandard

from realmctl.errors import InputError
from realmctl.inputs import streams

TEXT = "".join(f"line {n} " + "é" * (n % 7) + "\n" for n in range(4000)).encode()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


COMPRESS = {"plain": lambda data: data, "gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd}
COMPRESSED = sorted(set(COMPRESS) - {"plain"})


@pytest.mark.parametrize("kind", COMPRESS)
def test_every_compression_gives_the_same_bytes_whatever_the_name(tmp_path, kind):
    path = tmp_path / "corpus.weird"
    path.write_bytes(COMPRESS[kind](TEXT))
    assert b"".join(streams.decompressed(path)) == TEXT
    assert streams.head(path, 100) == TEXT[:100]


@pytest.mark.parametrize("kind", COMPRESSED)
def test_members_one_after_the_other_are_one_file(tmp_path, kind):
    path = tmp_path / "multi"
    path.write_bytes(COMPRESS[kind](TEXT[:10_000]) + COMPRESS[kind](TEXT[10_000:]))
    assert b"".join(streams.decompressed(path)) == TEXT


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_cut_file_is_never_a_shorter_one(tmp_path, kind):
    whole = COMPRESS[kind](TEXT[:300])
    path = tmp_path / "cut"
    for size in range(5, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="cut"):
            list(streams.decompressed(path))


@pytest.mark.parametrize("kind", COMPRESSED)
def test_cuts_at_random_places_of_a_larger_file(tmp_path, kind):
    whole, path = COMPRESS[kind](TEXT), tmp_path / "cut"
    places = random.Random(0).sample(range(5, len(whole)), 40)
    for size in places:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="cut"):
            list(streams.decompressed(path))


@pytest.mark.parametrize("kind", COMPRESSED)
def test_damage_is_named(tmp_path, kind):
    path = tmp_path / "damaged"
    path.write_bytes(COMPRESS[kind](TEXT) + b"garbage behind the end")
    with pytest.raises(InputError, match="damaged"):
        list(streams.decompressed(path))


@pytest.mark.parametrize("kind", COMPRESSED)
def test_a_bomb_comes_in_bounded_pieces(tmp_path, kind):
    path = tmp_path / "bomb"
    path.write_bytes(COMPRESS[kind](bytes(50_000_000)))
    sizes = [len(piece) for piece in streams.decompressed(path)]
    assert sum(sizes) == 50_000_000
    assert max(sizes) <= 2**25


def test_lines_are_numbered_and_lose_their_ends(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes("\ufeffone\r\ntwo\n\nfour é".encode())
    assert list(streams.lines(path)) == [(1, "one"), (2, "two"), (3, ""), (4, "four é")]


def test_lines_across_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "READ_BYTES", 7)
    path = tmp_path / "lines"
    path.write_bytes(TEXT[:2000])
    assert [line for _, line in streams.lines(path)] == TEXT[:2000].decode(errors="ignore").split("\n")


def test_invalid_utf8_names_file_and_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\nna\xef\xef\xefve\n")
    with pytest.raises(InputError, match=r"latin\.txt:2: .*byte 2"):
        list(streams.lines(path))
    with pytest.raises(InputError, match=r"latin\.txt:2: "):
        streams.whole_text(path, 2**20)


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MAX_LINE_BYTES", 2**20)
    path = tmp_path / "endless.gz"
    path.write_bytes(gzip.compress(b"short\n" + b"x" * 10_000_000))
    with pytest.raises(InputError, match=r"endless\.gz:2: .*1 MiB"):
        list(streams.lines(path))


def test_missing_files_folders_and_large_documents(tmp_path):
    with pytest.raises(InputError, match="nothing"):
        list(streams.decompressed(tmp_path / "nothing"))
    with pytest.raises(InputError, match="is a folder"):
        list(streams.decompressed(tmp_path))
    (tmp_path / "long").write_text("x" * 2000)
    with pytest.raises(InputError, match="long"):
        streams.whole_text(tmp_path / "long", 1000)

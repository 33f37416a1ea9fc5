"""Texts in UTF-16 by their mark, and in Windows-1252 where they can be nothing else."""

from __future__ import annotations

import gzip

import pytest

from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.inputs import streams

TABLE = "id;title;text\r\n1;L\u00e4rche;Sie kostet 5 \u20ac \u2013 gr\u00f6\u00dfer als 3 m\u00b2.\r\n2;Ulme;D\u00e9j\u00e0 vu \u201cd\u2019\u00e9t\u00e9\u201d.\r\n"
ROWS = [("1", "L\u00e4rche"), ("2", "Ulme")]


def read(path) -> list[tuple[str, str]]:
    return [(each.id, each.title) for each in documents([path], CorpusSettings())]


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be", "cp1252", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_table_as_programs_for_tables_export_it(tmp_path, capsys, charset, compressed):
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(charset, b"")
    data = mark + TABLE.encode(charset)
    (tmp_path / "a.csv").write_bytes(gzip.compress(data) if compressed else data)
    assert read(tmp_path / "a.csv") == ROWS
    assert [line for _, line in streams.lines(tmp_path / "a.csv")] == TABLE.replace("\r", "").splitlines()
    assert ("Windows-1252" in capsys.readouterr().err) is (charset == "cp1252")


def test_a_long_text_of_utf_16_whose_pieces_end_within_letters(tmp_path):
    text = "id,text\n" + "".join(f"{number},\U0001f600 x\u00e4{'y' * (number % 7)}\n" for number in range(60_000))
    (tmp_path / "a.csv").write_text(text, encoding="utf-16", newline="")
    assert "\n".join(line for _, line in streams.lines(tmp_path / "a.csv")) + "\n" == text
    assert streams.whole_text(tmp_path / "a.csv", 2**24) == text


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("\u6771\u4eac\u306f\u5927\u304d\u3044", "shift-jis"), ("a,\u5c71", "shift-jis"), ("\u041c\u043e\u0441\u043a\u0432\u0430", "cp1251"),
        ("\u0391\u03b8\u03ae\u03bd\u03b1", "cp1253"), ("by\u0142o", "cp1250"), ("\uc11c\uc6b8\uc2dc", "euc-kr"), ("\u5317\u4eac\u5e02", "gbk"),
    ],
)  # fmt: skip
def test_other_charsets_are_refused_and_not_guessed(tmp_path, text, charset):
    (tmp_path / "a.txt").write_bytes(f"Some words. {text}\n".encode(charset))
    with pytest.raises(InputError, match="not UTF-8"):
        read(tmp_path / "a.txt")


def test_a_damaged_text_of_utf_8_is_not_taken_for_another(tmp_path):
    (tmp_path / "a.txt").write_bytes("gr\u00f6\u00dfer ".encode() + b"\xf6\n")
    with pytest.raises(InputError, match=r"a.txt:1: not UTF-8"):
        read(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes("words".encode("utf-16") + b"\x00")
    with pytest.raises(InputError, match="not UTF-16"):
        read(tmp_path / "b.txt")

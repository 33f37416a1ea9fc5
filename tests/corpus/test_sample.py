"""Samples are the first documents, whole, and the size of the corpus is estimated from them."""

import bz2
import json

import pytest

from realmctl.corpus import sample as samples
from realmctl.corpus.sample import sample_of
from realmctl.errors import InputError


def pages(count):
    body = "".join(f"<page><title>P{n}</title><text>{'word ' * 40}</text></page>\n" for n in range(count))
    return f'<mediawiki xmlns="x">\n{body}</mediawiki>\n'.encode()


def test_a_small_file_is_taken_whole(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one line\n" * 10)
    found = sample_of([tmp_path / "a.txt"], tmp_path / "s", 10**6)
    assert found.files[0].read_bytes() == b"one line\n" * 10
    assert found.nbytes == found.corpus_bytes == 90


def test_a_dump_is_cut_behind_a_page_and_stays_xml(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "LEAST_BYTES", 1)
    data = pages(1000)
    (tmp_path / "dump.xml").write_bytes(data)
    found = sample_of([tmp_path / "dump.xml"], tmp_path / "s", 10_000)
    cut = found.files[0].read_bytes()
    assert len(cut) < 10_100 and cut.endswith(b"</page>\n</mediawiki>\n")
    assert cut.count(b"<page>") == cut.count(b"</page>") > 30
    assert found.corpus_bytes == len(data)


def test_the_size_of_a_compressed_file_follows_from_its_head(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "LEAST_BYTES", 1)
    monkeypatch.setattr(samples, "HEAD_BYTES", 3000)
    data = b"".join(json.dumps({"id": n, "text": f"{n * n} words"}).encode() + b"\n" for n in range(20_000))
    stream = b"".join(bz2.compress(data[start : start + 5000]) for start in range(0, len(data), 5000))
    (tmp_path / "a.jsonl.bz2").write_bytes(stream)
    found = sample_of([tmp_path / "a.jsonl.bz2"], tmp_path / "s", 4000)
    assert found.corpus_bytes == pytest.approx(len(data), rel=0.5)
    lines = found.files[0].read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == list(range(len(lines)))


def test_a_folder_gives_some_of_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "MOST_FILES", 4)
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.txt").write_text("a line\n" * 10)
    found = sample_of([folder], tmp_path / "s", 10**6)
    assert len(found.files) == 4 and found.nbytes == 4 * 70 and found.corpus_bytes == 700


def test_one_long_json_document_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "LEAST_BYTES", 1)
    (tmp_path / "squad.json").write_text(json.dumps({"data": ["x" * 100] * 100}, indent=1))
    with pytest.raises(InputError, match="a part of it"):
        sample_of([tmp_path / "squad.json"], tmp_path / "s", 500)

"""Parts of a plain dump are read by workers. The blocks are those of a single reader, which a compressed copy has."""

from __future__ import annotations

import gzip
import re
from itertools import groupby
from pathlib import Path

import pytest

from realmctl.corpus import work_units
from realmctl.corpus.reading import CorpusFiles, PageCounts
from realmctl.corpus.settings import CorpusSettings
from realmctl.corpus.wiki import dump
from realmctl.corpus.work_units import PartOfDump, WholeFiles, corpus_units
from realmctl.errors import InputError
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.training import train
from stages.chunk import Chunk

HEAD = '<mediawiki>\n  <siteinfo><namespaces><namespace key="6">Datei</namespace></namespaces></siteinfo>\n  '


def page(number: int, title: str = "", text: str = "") -> str:
    title = title or f"Page {number}"
    text = (
        text
        or f"Ada {number} met [[Ben]] in London. [[Datei:x.png|The picture.]] " + f"They stayed {number} days. " * 9
    )
    body = (
        f"<title>{title}</title>\n<ns>{number % 9 // 8}</ns><id>{number}</id><revision><text>{text}</text></revision>"
    )
    return f"<page>\n{body}\n</page>\n  "


def pages(count: int) -> list[str]:
    return [page(number, "List of towns" if number % 20 == 3 else "") for number in range(count)]


def write(path: Path, *content: str, end: str = "</mediawiki>\n") -> Path:
    path.write_text(HEAD + "".join(content) + end, encoding="utf-8")
    return path


def compressed(path: Path) -> Path:
    copy = path.with_suffix(".xml.gz")
    copy.write_bytes(gzip.compress(path.read_bytes()))
    return copy


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(work_units, "PART_BYTES", 3000)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Path:
    """A tokenizer, because the pass that learns one reads the whole corpus in one process and finds errors first."""
    folder = tmp_path_factory.mktemp("tokenizer")
    train(["ada met ben in london they stayed days page"] * 3, TokenizerRecipe("wordpiece", 200)).save(folder)
    return folder


def made(corpus: Path, tokenizer: Path, out: Path, workers: int = 1, **settings):
    stage = Chunk(corpus=(corpus,), tokenizer=str(tokenizer), max_wordpieces=64, workers=workers, **settings)
    return stage.make(out)


def message(corpus: Path, tokenizer: Path, out: Path, workers: int = 1) -> str:
    with pytest.raises(InputError) as error:
        made(corpus, tokenizer, out, workers)
    assert not list(out.glob("v*"))
    return str(error.value).replace(".xml.gz", ".xml")


@pytest.mark.parametrize("middle", ["", "<!-- a comment -->"])
def test_blocks_and_counts_are_those_of_a_single_reader(tokenizer, tmp_path, monkeypatch, middle):
    """Some pages are lists, of another namespace, or too long."""
    monkeypatch.setattr(dump, "MAX_PAGE_BYTES", 2000)
    path = write(tmp_path / "d.xml", *pages(50), middle, page(50, "Long", "x" * 2001), *pages(100)[51:])
    units = list(corpus_units(CorpusFiles([path], CorpusSettings(), PageCounts())))
    assert sum(isinstance(unit, PartOfDump) for unit in units) > (4 if middle else 9)
    assert any(isinstance(unit, list) for unit in units) == bool(middle)
    here, alone = made(path, tokenizer, tmp_path / "parts"), made(compressed(path), tokenizer, tmp_path / "alone")
    assert here.content == alone.content and here.metrics == alone.metrics
    assert here.metrics["quarantined"] == 1 and here.metrics["dropped"] == {"list": 5, "namespace": 11}


@pytest.mark.usefixtures("workers_at_once")
def test_several_workers_make_the_same_blocks_of_a_folder_of_dumps(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(work_units, "WHOLE_FILE_BYTES", 5000)
    (tmp_path / "corpus").mkdir()
    everything = pages(120)
    write(tmp_path / "corpus/a.xml", *everything[:50])
    write(tmp_path / "corpus/b.xml", *everything[50:55])
    write(tmp_path / "corpus/c.xml", *everything[55:])
    units = list(corpus_units(CorpusFiles([tmp_path / "corpus"], CorpusSettings(), PageCounts()), local=False))
    assert [kind for kind, _ in groupby(map(type, units))] == [PartOfDump, WholeFiles, PartOfDump]
    there = made(tmp_path / "corpus", tokenizer, tmp_path / "two", workers=2, keep_lists=True)
    alone = made(compressed(write(tmp_path / "d.xml", *everything)), tokenizer, tmp_path / "alone", keep_lists=True)
    assert there.content == alone.content and there.metrics == alone.metrics


def test_a_dump_that_was_named_is_not_cut_for_workers_of_other_machines(tmp_path):
    path = write(tmp_path / "d.xml", *pages(30))
    units = list(corpus_units(CorpusFiles([path], CorpusSettings(), PageCounts()), local=False))
    assert [type(unit) for unit in units] == [list], "on Ray, a worker may not see it"


def test_a_dump_that_is_to_be_read_as_text_is_not_cut(tmp_path):
    path = write(tmp_path / "d.xml", *pages(30))
    ((document,),) = corpus_units(CorpusFiles([path], CorpusSettings(format="text"), PageCounts()))
    assert document.text == path.read_text()


@pytest.mark.parametrize(
    ("content", "end", "expected"),
    [
        (
            [*pages(60), page(7, "Again")],
            "</mediawiki>",
            "page 'Again': the document id '7' is already used by .*'Page 7'",
        ),
        (
            [*pages(40), "<page>&nothing;</page>", *pages(60)[40:]],
            "</mediawiki>",
            r"d.xml:\d+: broken XML \(undefined entity",
        ),
        (pages(60), "", r"no element found at the end of the file, byte \d+"),
        ([page(number, "List of towns") for number in range(40)], "</mediawiki>", "this corpus has no document"),
    ],
    ids=["an id comes twice", "broken", "cut", "no document"],
)
def test_errors_are_those_of_a_single_reader(tokenizer, tmp_path, content, end, expected):
    path = write(tmp_path / "d.xml", *content, end=end)
    found = message(path, tokenizer, tmp_path / "parts")
    assert re.search(expected, found) and found == message(compressed(path), tokenizer, tmp_path / "alone")


@pytest.mark.usefixtures("workers_at_once")
def test_an_id_that_comes_twice_is_found_across_workers(tokenizer, tmp_path):
    path = write(tmp_path / "d.xml", *pages(60), page(7, "Again"), *pages(80)[60:])
    found = message(path, tokenizer, tmp_path / "parts", workers=2)
    assert re.search("page 'Again': the document id '7' is already used by .*'Page 7'", found)

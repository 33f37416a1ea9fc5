"""Parsers in processes of their own: one for many documents, limits for each document, and nothing that is left behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from realmctl.corpus.corpus_file import CorpusFile
from realmctl.corpus.document import Document, SkippedPage
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.settings import CorpusSettings
from realmctl.extras.documents import apart, pages
from realmctl.extras.documents.apart import LARGE, ManyParses
from tests.faults.counting import count


@pytest.fixture
def parser() -> Iterator[ManyParses]:
    made = ManyParses("tests.extras.documents.parser_with_faults")
    yield made
    made.end()


def told(parser: ManyParses, text: str) -> str:
    """Why a document was not read."""
    reply, why = parser.parse({"kind": "text"}, text.encode())
    assert reply is None
    return why


def pid_of(parser: ManyParses, text: str = "words") -> int:
    reply, why = parser.parse({"kind": "text"}, text.encode())
    assert not why and (reply["text"], reply["asked"]) == (text, "text")
    return int(reply["pid"])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_many_documents_have_one_process_and_a_large_one_is_its_last(parser):
    pids = {pid_of(parser, f"\u00e9 {number}" * number) for number in range(100)}
    assert len(pids) == 1 and os.getpid() not in pids
    assert {pid_of(parser, "x" * LARGE)} == pids
    assert pid_of(parser) not in pids


LIMITS = {
    "compute": ({"MAX_PARSE_SECONDS": 0.2}, "it takes more than 0.2 s of a core"),
    "sleep": ({"MAX_PARSE_WAIT": 2}, "it takes longer than 2 s"),
    "expand": ({"MAX_PARSE_MEMORY": 2**28}, "more than 0.3 GiB of memory"),
    "fail": ({}, "fails at it"),
    "long text": ({"MAX_PARSE_OUTPUT": 10}, "its text has more than 0 MiB"),
}


@pytest.mark.parametrize("text", LIMITS)
def test_a_document_that_meets_a_limit_ends_its_process_and_the_next_is_read(parser, monkeypatch, text):
    before = pid_of(parser)
    limits, why = LIMITS[text]
    for name, value in limits.items():
        monkeypatch.setattr(apart, name, value)
    assert why in told(parser, text)
    assert not is_alive(before)
    monkeypatch.undo()
    assert pid_of(parser) != before
    count("documents that met a limit of their parser", 1)


def test_a_bug_is_a_bug(parser):
    before = pid_of(parser)
    with pytest.raises(RuntimeError, match="LookupError: of the parser"):
        parser.parse({"kind": "text"}, b"bug")
    assert pid_of(parser) == before


def test_a_process_that_was_killed_meanwhile_is_begun_again(parser):
    os.kill(pid_of(parser), signal.SIGKILL)
    assert is_alive(pid_of(parser))


def test_threads_get_their_own_replies(parser):
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(lambda number: pid_of(parser, f"text {number}"), range(200))}) == 1


def test_an_interruption_leaves_no_process(parser):
    pid = pid_of(parser)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            parser.parse({"kind": "text"}, b"sleep")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not is_alive(pid)
    assert pid_of(parser)


def test_a_forked_process_has_a_parser_of_its_own(parser):
    own = pid_of(parser)
    reads, writes = os.pipe()
    if not (child := os.fork()):
        os.write(writes, str(pid_of(parser)).encode())
        parser.end()
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reads, 99)) != own == pid_of(parser)


def test_a_program_that_waits_is_ended_on_a_clock(monkeypatch):
    """Its seconds of a core are few. So those that it computes are no limit on a busy machine."""
    monkeypatch.setattr(apart, "MAX_PARSE_WAIT", 0.3)
    found = apart.parse([sys.executable, "-c", "import time; time.sleep(60)"], b"x")
    assert found.stopped == "it takes longer than 0.3 s" and found.code == -signal.SIGKILL


def read(path: Path, text: str) -> Document | SkippedPage:
    path.write_text(text)
    file = CorpusFile(path, CorpusSettings(), path.name)
    (found,) = format_of(file).read(file)
    assert isinstance(found, Document | SkippedPage)
    return found


@pytest.mark.parametrize("name", ["a.html", "a.md", "a.eml"])
def test_html_of_every_format_is_parsed_under_these_limits(tmp_path, monkeypatch, name):
    """A page that meets one is set aside with the reason, and the corpus is read on."""
    pytest.importorskip("selectolax")
    many = "<p>Some <b>words</b> of a page.</p>\n\n" * 20_000
    text = {
        "a.eml": f"From: a@b.example\nTo: c@d.example\nSubject: Pages\nDate: Mon, 1 Jan 2024 10:00:00 +0000\nContent-Type: text/html\n\n{many}",
    }.get(name, many)
    whole = read(tmp_path / name, text)
    assert isinstance(whole, Document) and "words of a page." in whole.text
    monkeypatch.setattr(apart, "MAX_PARSE_SECONDS", 0.005)
    found = read(tmp_path / name, text)
    assert isinstance(found, SkippedPage) and "more than 0.005 s of a core" in found.reason
    monkeypatch.undo()
    assert read(tmp_path / name, text) == whole


def test_ctrl_c_is_for_the_command_alone(tmp_path):
    pytest.importorskip("selectolax")
    assert isinstance(read(tmp_path / "a.html", "<p>Words."), Document)
    process = pages.PARSER._process
    assert process is not None and os.getpgid(process.pid) == process.pid

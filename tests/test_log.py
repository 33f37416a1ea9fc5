"""Progress in a log file: counts, the current values, the rate and the time left."""

from __future__ import annotations

import sys

import pytest

from realmctl import log


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    return now


def test_a_line_has_the_values_the_rate_and_the_time_left(clock, capsys):
    with log.progress(100, "pretrain", "steps") as bar:
        clock[0] = 29.0
        bar.advance(10, "loss 2.000")
        assert capsys.readouterr().err == ""
        clock[0] = 40.0
        bar.advance(10, "loss 1.000, utility 0.500")
    line = "pretrain: 20/100 steps, loss 1.000, utility 0.500, 2.0 s each, about 2 min 40 s left\n"
    assert capsys.readouterr().err == line


def test_without_a_total_and_without_values(clock, capsys):
    with log.progress(None, "chunk", "documents") as bar:
        clock[0] = 31.0
        bar.advance(62)
    assert capsys.readouterr().err == "chunk: 62 documents, 2.0/s\n"


def test_quiet_progress_prints_nothing(clock, capsys):
    log.set_quiet(True)
    with log.progress(10, "chunk", "documents") as bar:
        clock[0] = 100.0
        bar.advance(5, "loss 1")
    assert capsys.readouterr().err == ""


def test_the_bar_of_a_terminal_takes_values(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with log.progress(2, "pretrain", "steps") as bar:
        bar.advance(1, "[bold]")
        bar.advance(1, "[bold]")
    assert "[bold]" in capsys.readouterr().err, "values are not taken for markup"


def test_what_a_terminal_obeys_is_escaped(capsys):
    every = "".join(map(chr, [*range(0x100), 0x202E, 0x2067, 0x3042, 0x1F600]))
    log.say(every)
    printed = capsys.readouterr().err.removesuffix("\n")
    assert all(each.isprintable() or each in "\t\n\xa0\xad" for each in printed)
    assert printed.encode().decode("unicode_escape", "ignore")[:3] == "\0\1\2"
    for plain in "tab\t", "two\nlines", "é あ 😀 \xa0":
        assert log.printable(plain) == plain


def test_the_mark_of_an_answer_is_not_escaped():
    assert log.printable(f"a {log.BOLD}b{log.PLAIN}\x1b[2J") == f"a {log.BOLD}b{log.PLAIN}\\x1b[2J"

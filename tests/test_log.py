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
        clock[0] = 20.0
        bar.advance(1, "loss 3.000")  # the first step, with all that is loaded, tells nothing
        clock[0] = 29.0
        bar.advance(9, "loss 2.000")
        assert capsys.readouterr().err == ""
        clock[0] = 39.0
        bar.advance(10, "loss 1.000, utility 0.500")
    line = "pretrain: 20/100 steps, loss 1.000, utility 0.500, 1.0/s, about 1 min 20 s left\n"
    assert capsys.readouterr().err == line


def test_without_a_total_and_without_values(clock, capsys):
    with log.progress(None, "chunk", "documents") as bar:
        bar.advance(2)
        clock[0] = 31.0
        bar.advance(62)
    assert capsys.readouterr().err == "chunk: 64 documents, 2.0/s\n"


def test_resumed_work_is_no_speed(clock, capsys):
    with log.progress(1000, "embedding", "blocks") as bar:
        bar.skip(800)
        clock[0] = 10.0
        bar.advance(10)
        clock[0] = 50.0
        bar.advance(40)
    assert capsys.readouterr().err == "embedding: 850/1000 blocks, 1.0/s, about 2 min 30 s left\n"


def test_a_first_line_without_a_measured_speed_promises_nothing(clock, capsys):
    with log.progress(100, "pretrain", "steps") as bar:
        clock[0] = 300.0
        bar.advance(1)
    assert capsys.readouterr().err == "pretrain: 1/100 steps\n"


@pytest.mark.parametrize("slow", [0, 1])
def test_the_speed_follows_a_machine_that_became_slower_or_faster(clock, slow):
    pace = log.Pace(100_000)
    for tenth in range(20_000):
        clock[0] += 1.0 if (tenth < 5000) == bool(slow) else 0.1
        pace.advance(1)
    now = 10 if slow else 1
    assert pace.rate == pytest.approx(now, rel=0.05)
    assert len(pace._marks) < 500, "a run of days needs no more memory"


def test_one_bar_for_several_steps(clock, capsys):
    with log.one_bar("index-docs"):
        log.name_step("2/3 embeddings")
        log.say("a line of a step")
        with log.progress(10, "embedding", "blocks") as bar:
            bar.advance(1)
            clock[0] = 31.0
            bar.advance(3)
        log.warn("what nobody should miss")
    assert capsys.readouterr().err == (
        "index-docs 2/3 embeddings, embedding: 4/10 blocks, 10.3 s each, about 1 min 02 s left\nwarning: what nobody should miss\n"
    )


@pytest.mark.parametrize(("total", "left"), [(10, ", about 7 s left"), (None, "")])
def test_a_time_left_of_one_step_names_the_steps_after_it(clock, capsys, total, left):
    with log.one_bar("index-docs"):
        log.name_step("1/3 blocks", ["embeddings"])
        with log.progress(total, "chunk", "documents") as bar:
            bar.advance(1)
            clock[0] = 2.0
            bar.advance(2)
            clock[0] = 31.0
            log.name_step("2/3 embeddings")
            bar.advance(0)
    assert (
        capsys.readouterr().err
        == f"index-docs 1/3 blocks, chunk: 3{f'/{total}' if total else ''} documents, 1.0/s{left}, then embeddings\n"
    )


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
    assert printed.startswith(r"\x00\x01\x02")
    for plain in "tab\t", "two\nlines", "é あ 😀 \xa0":
        assert log.printable(plain) == plain


def test_the_mark_of_an_answer_is_not_escaped():
    assert log.printable(f"a {log.BOLD}b{log.PLAIN}\x1b[2J") == f"a {log.BOLD}b{log.PLAIN}\\x1b[2J"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.2, "3.2 s"),
        (59.96, "60.0 s"),
        (250, "4 min 10 s"),
        (7500, "2 h 05 min"),
        (2 * 86_400 + 5 * 3600, "2 d 5 h"),
        (86_400, "1 d 0 h"),
    ],
)
def test_a_time_has_two_suitable_units(seconds, text):
    assert log.duration_text(seconds) == text

"""The benchmark of whole commands: what a process takes is seen, and its table has a row for each command."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELD = """
import subprocess, sys, time
held = bytearray(b"x") * ({} << 20)
if sys.argv[1:]:
    subprocess.run([sys.executable, "-c", sys.argv[1]])
time.sleep(.2)
"""


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("commands")


def test_memory_of_a_process_and_its_children_is_added(bench, tmp_path, monkeypatch):
    alone, both = (
        bench.run_words([sys.executable, "-c", *words], tmp_path)
        for words in ([HELD.format(40)], [HELD.format(40), HELD.format(80)])
    )
    assert 40 < alone.anonymous < 80 < 120 < both.anonymous < 170 and both.resident > both.anonymous
    assert 0 < alone.seconds < 5


def test_a_command_that_fails_is_told(bench, tmp_path):
    with pytest.raises(SystemExit, match="does not exist"):
        bench.run("show", tmp_path / "nothing", folder=tmp_path)


@pytest.mark.slow
def test_every_command_is_measured(bench, tmp_path, capsys):
    for package in ("pyarrow", "bm25s", "fastapi"):
        pytest.importorskip(package)
    found = bench.main(["--blocks", "20", "--table", "30", "--folder", str(tmp_path)])
    assert [*found["`index-docs`"]] == [20] and len(found) == 8
    assert all(taken.seconds > 0 and taken.anonymous > 5 for row in found.values() for taken in row.values())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| | 20 | 30 |" and len(lines) == 2 + len(found) and [*tmp_path.iterdir()] == []

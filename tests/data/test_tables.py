"""The tables of realmctl/data: that they are read, say where they are from, and are read only when they are needed."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import pytest

from realmctl.data import names, table, words

FILES = sorted(file.name for file in resources.files("realmctl.data").iterdir() if file.name.endswith(".toml"))


def test_lists():
    assert words("a b\n c ") == {"a", "b", "c"}
    assert names("page  needed,\ncn, x") == ["page needed", "cn", "x"]
    assert names([",", "a, b"]) == [",", "a, b"]


@pytest.mark.parametrize("file", FILES)
def test_a_table_is_read_once_and_says_its_source_and_licence(file):
    found = table(file.removesuffix(".toml"))
    assert found and table(file.removesuffix(".toml")) is found
    head = []
    for line in (resources.files("realmctl.data") / file).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        head.append(line.lstrip("# "))
    assert any(licence in " ".join(head) for licence in ("Apache-2.0", "MIT License", "GPL-2.0-or-later"))


def test_help_reads_no_table():
    code = (
        "import sys, runpy, realmctl.data as data\n"
        "sys.argv = ['realmctl', 'chunk', '--help']\n"
        "try:\n    runpy.run_module('realmctl', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert data.table.cache_info().misses == 0, data.table.cache_info()\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

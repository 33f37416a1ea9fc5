"""The page in a real browser, where one is installed: the script runs under the page's policy and filters."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.browser import BROWSER, needs_browser

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [pytest.mark.slow, needs_browser]


def shown(fragment: str, folder: Path) -> tuple[list[str], list[str]]:
    """Outcomes of the questions that are visible under this fragment, and what the page says of their number."""
    address = f"{Path('report.html').resolve().as_uri()}#{fragment}"
    command = [str(BROWSER), *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", address]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    items = re.findall(r'<li data-failure="(\w+)"( hidden="")?>', dom)
    return [failure for failure, hidden in items if not hidden], re.findall(r"<output>([^<]*)</output>", dom)


def test_filters(realmctl, scores, chain, tmp_path):
    assert realmctl("report", scores.path, "--blocks", chain.blocks.path)[0] == 0
    every, said = shown("", tmp_path)
    assert len(every) == 21 and said == ["21 of 21 shown"]
    for failure in set(every):
        wanted = [failure] * every.count(failure)
        assert shown(f"failed={failure}", tmp_path) == (wanted, [f"{len(wanted)} of 21 shown"])
    assert shown("q=nowhere%20AT", tmp_path)[0] == ["corpus"]
    assert shown("failed=right&q=nowhere", tmp_path) == ([], ["0 of 21 shown"])
    assert len(shown("questions", tmp_path)[0]) == 21

"""Shell completion: what bash is offered for artifacts, presets and choices, through the application itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from realmctl.cli import app
from realmctl.pipeline import presets
from tests.fixtures.small_stages import Plain


@pytest.fixture
def offered(monkeypatch, capsys, tmp_path):
    """The lines that bash gets for a command line whose last word is being written."""
    monkeypatch.chdir(tmp_path)

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setattr(sys, "argv", ["realmctl"])
        monkeypatch.setenv("_REALMCTL_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as left:
            app.main()
        assert not left.value.code
        return capsys.readouterr().out.split()

    return ask


def test_presets_and_choices(offered):
    assert offered("realmctl pretrain --preset ") == presets.names_for("pretrain")
    assert offered("realmctl pretrain --preset no") == []
    assert offered("realmctl build-index --type ex") == ["exact"]
    assert offered("realmctl pretrain --refresh in") == ["inline"]


def test_artifacts_of_the_kinds_that_fit(offered, chain, monkeypatch):
    folder = chain.folder
    assert offered(f"realmctl embed -w {folder} --blocks ") == [f"{folder}/blocks"]
    assert offered(f"realmctl embed -w {folder} --retriever {folder}/re") == [f"{folder}/retriever"]
    assert offered(f"realmctl embed -w {folder} --blocks {folder}/blocks/") == [f"{folder}/blocks/v1"]
    monkeypatch.setenv("REALMCTL_WORKSPACE", str(folder))
    assert offered("realmctl tag --blocks ") == [f"{folder}/blocks"]
    series = [f"{folder}/{name}" for name in ("blocks", "embeddings", "encoder", "index", "retriever", "spans")]
    assert set(series) <= set(offered("realmctl show "))


def test_versions_of_a_series_in_the_default_workspace(offered):
    for text in "ab":
        Plain(text=text).make("artifacts/plain")
    assert offered("realmctl verify artifacts/plain") == ["artifacts/plain/v1", "artifacts/plain/v2"]
    assert offered("realmctl verify ") == ["artifacts/plain"]
    assert offered("realmctl ask q --qa-model ") == []


def test_nothing_to_offer_is_no_error(offered):
    assert offered("realmctl embed --blocks ") == []
    Path("artifacts/blocks/v1").mkdir(parents=True)
    Path("artifacts/blocks/v1/manifest.json").write_text("{")
    assert offered("realmctl embed --blocks ") == []
    assert offered("realmctl show \\0") == []

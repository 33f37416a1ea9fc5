"""`realmctl pin`, `compare` and `ls`: a pinned version is what its series stands for, and sweeps are seen as tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from realmctl.cli import app
from realmctl.errors import InputError
from realmctl.pipeline import Named, choose
from tests.fixtures.small_stages import Child, Plain


@pytest.fixture
def realmctl(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for text in ("one", "three", "fifteen"):
        Plain(text=text).make("artifacts/plain")

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            app.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return run


def test_a_series_stands_for_its_pinned_version(realmctl):
    series = Path("artifacts/plain")
    assert open_artifact(series).path.name == "v3" and open_artifact(series).named_as_newest
    assert realmctl("pin", "plain/v2")[:2] == (0, "artifacts/plain/v2\n")
    assert open_artifact(series).path.name == "v2" and not open_artifact(series).named_as_newest
    assert Child(plain=series).make("artifacts/child").lineage["plain"] == open_artifact(series / "v2").content
    assert choose({"plain": Named(series, ("plain",))})["plain"].path.name == "v2"
    assert realmctl("pin", "artifacts/plain/v1")[0] == 0 and open_artifact(series).path.name == "v1"
    assert realmctl("pin", "plain", "--remove")[0] == 0 and open_artifact(series).path.name == "v3"
    assert realmctl("pin", "plain/v9")[0] == 3 and realmctl("pin", "nothing", "--remove")[0] == 3


def test_a_pin_that_leads_nowhere_is_told(realmctl):
    Path("artifacts/plain/.pinned").write_text("v7\n")
    with pytest.raises(InputError, match="v7"):
        open_artifact("artifacts/plain")
    Path("artifacts/plain/.pinned").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match="pin"):
        open_artifact("artifacts/plain")
    assert realmctl("pin", "plain", "--remove")[0] == 0 and open_artifact("artifacts/plain").path.name == "v3"


def test_ls_shows_what_varies_and_what_is_pinned(realmctl):
    Child(plain=Path("artifacts/plain")).make("artifacts/child")
    realmctl("pin", "plain/v2")
    lines = realmctl("ls")[1].splitlines()
    [pinned] = [line for line in lines if line.startswith("plain/v2*")]
    assert "text=three" in pinned and max(map(len, lines)) <= 80
    columns = realmctl("ls", "plain")[1].splitlines()
    assert columns[1].split()[-2:] == ["text", "RESULT"] and "fifteen" in columns[-1]
    entries = json.loads(realmctl("ls", "--json")[1])["artifacts"]
    assert [entry["differs"] for entry in entries] == [{}, {"text": "one"}, {"text": "three"}, {"text": "fifteen"}]
    assert [entry["pinned"] for entry in entries] == [False, False, True, False]


@pytest.mark.house
def test_compare_prints_a_table_as_text_csv_and_json(realmctl):
    code, text, _ = realmctl("compare", "plain")
    assert code == 0 and [line.split()[0] for line in text.splitlines()[2:]] == [
        f"artifacts/plain/v{number}" for number in (1, 2, 3)
    ]
    lines = realmctl("compare", "plain", "--format", "csv")[1].splitlines()
    assert lines[0].startswith("stage,versions,runs,text") and len(lines) == 4
    [table] = json.loads(realmctl("compare", "plain", "--json")[1])["tables"]
    assert [row["settings"]["text"] for row in table["rows"]] == ["one", "three", "fifteen"]
    assert [row["numbers"]["length"]["mean"] for row in table["rows"]] == [3, 5, 7]
    assert realmctl("compare", "plain/v1")[0] == 4

"""The seal of a JSON file covers its names and its values."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts.hashing import digest_source, files_below, read_sealed, write_sealed
from tests.fixtures.small_stages import Plain

TABLE = {"step": 3, "loss": float("inf"), "parts": {"a": [1, 2]}}


def test_what_was_sealed_is_read(tmp_path):
    write_sealed(tmp_path / "x.json", TABLE)
    assert read_sealed(tmp_path / "x.json") == TABLE


@pytest.mark.parametrize(
    "change",
    [{"step": 4}, {"parts": {"a": [2, 1]}}, {"more": 1}, {"seal": "0" * 64}, {"seal": None}],
)
def test_a_table_that_was_changed_is_damaged(tmp_path, change):
    path = tmp_path / "x.json"
    write_sealed(path, TABLE)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match="SHA-256"):
        read_sealed(path)


def test_a_table_without_a_seal_or_an_entry_is_damaged(tmp_path):
    path = tmp_path / "x.json"
    for left_out in ("seal", "step"):
        write_sealed(path, TABLE)
        table = json.loads(path.read_text())
        del table[left_out]
        path.write_text(json.dumps(table))
        with pytest.raises(ValueError, match="SHA-256"):
            read_sealed(path)


def test_series_below_a_folder_are_no_part_of_it(tmp_path):
    """A workspace in the folder of the documents changes nothing; a folder v1 with a manifest.json of another program is read."""
    folder = tmp_path / "docs"
    (folder / "api" / "v1").mkdir(parents=True)
    (folder / "api" / "v1" / "manifest.json").write_text('{"name": "an extension"}')
    (folder / "a.md").write_text("Text.")
    before, files = digest_source(folder), [*files_below(folder)]
    assert [path.name for path in files] == ["a.md", "manifest.json"]
    Plain(text="x").make(folder / "artifacts" / "plain")
    (folder / "artifacts" / "plain" / "quarantine").mkdir()
    (folder / "artifacts" / "plain" / "quarantine" / "old.txt").write_text("set aside")
    unfinished = folder / "artifacts" / "other" / "v1.partial"
    unfinished.mkdir(parents=True)
    write_sealed(unfinished / "recipe.json", TABLE)
    (unfinished / "half.txt").write_text("half")
    assert digest_source(folder) == before and [*files_below(folder)] == files
    inside = [*files_below(folder / "artifacts" / "plain" / "v1")]
    assert "manifest.json" in {path.name for path in inside}  # an artifact that is named itself is read

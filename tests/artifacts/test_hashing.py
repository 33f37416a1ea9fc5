"""The seal of a JSON file covers its names and its values."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts.hashing import read_sealed, write_sealed

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

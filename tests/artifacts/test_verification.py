"""REALMCTL_VERIFY: what is hashed again under each policy."""

from __future__ import annotations

import pytest

from realmctl.artifacts import artifact, open_artifact
from realmctl.artifacts.artifact import VARIABLE, Verification, verification
from realmctl.errors import ConfigError, InputError
from tests.faults.tampering import overwrite
from tests.fixtures.small_stages import Child, Plain


@pytest.fixture
def rotten(tmp_path):
    """A version one byte of which has changed."""
    made = Plain(text="hello").make(tmp_path / "plain")
    overwrite(made.file("text.txt"), b"jello")
    return made


def test_the_default_is_standard_and_a_wrong_value_is_refused(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert verification() is Verification.STANDARD
    monkeypatch.setenv(VARIABLE, "")
    assert verification() is Verification.STANDARD
    monkeypatch.setenv(VARIABLE, "sometimes")
    with pytest.raises(ConfigError, match="REALMCTL_VERIFY=sometimes"):
        verification()


@pytest.mark.parametrize(
    ("policy", "opens", "taken_for_done", "read_by_a_stage"),
    [("quick", True, True, True), ("standard", True, False, False), ("full", False, False, False)],
)
def test_when_a_changed_byte_is_noticed(rotten, tmp_path, monkeypatch, policy, opens, taken_for_done, read_by_a_stage):
    child = Child(plain=rotten)
    monkeypatch.setenv(VARIABLE, policy)
    monkeypatch.setattr(artifact, "_hashed", set())
    if opens:
        assert open_artifact(rotten.path) == rotten
    else:
        with pytest.raises(InputError, match=r"text\.txt"):
            open_artifact(rotten.path)
    if read_by_a_stage:
        assert child.make(tmp_path / "child")
    else:
        with pytest.raises(InputError, match=r"text\.txt"):
            child.make(tmp_path / "child")
    assert (Plain(text="hello").make(tmp_path / "plain").path == rotten.path) == taken_for_done


def test_with_full_each_version_is_hashed_once_in_a_process(tmp_path, monkeypatch):
    made, hashed = Plain(text="hello").make(tmp_path / "plain"), []
    plain = artifact._verify_files
    monkeypatch.setattr(artifact, "_verify_files", lambda opened: hashed.append(opened.path) or plain(opened))
    monkeypatch.setattr(artifact, "_hashed", set())
    monkeypatch.setenv(VARIABLE, "full")
    for _ in range(3):
        open_artifact(made.path)
    assert hashed == [made.path]

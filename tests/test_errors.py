"""Errors: the codes that scripts branch on, and the system's errors as a user understands them."""

from __future__ import annotations

import errno

import pytest

from realmctl import errors
from realmctl.corpus.formats.records import document_of
from realmctl.errors import (
    AccessError,
    InputError,
    RealmctlError,
    ResourceError,
    as_realmctl_error,
    error_of,
    listed,
    one_line,
)
from realmctl.inputs.rows import Row

CODES = {
    "RealmctlError": 1,
    "ConfigError": 2,
    "AccessError": 3,
    "InputError": 3,
    "NotFiniteError": 3,
    "MismatchError": 4,
    "ResourceError": 5,
    "QualityError": 6,
    "LockedError": 7,
    "InterruptedRun": 75,
}


def test_codes_never_change():
    found = {
        name: kind.exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, RealmctlError)
    }
    assert found == CODES


@pytest.mark.parametrize(
    "number",
    [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.EIO, errno.ESTALE, errno.ENOTCONN],
)
def test_want_of_something_is_a_resource_error(number):
    known = as_realmctl_error(OSError(number, "why", "/some/where"))
    assert isinstance(known, ResourceError) and str(known).startswith("/some/where: why. ")
    assert str(as_realmctl_error(OSError(number, "why"), "w/blocks")).startswith("w/blocks: why. ")


@pytest.mark.parametrize("number", [errno.ELOOP, errno.ENOTDIR, errno.EISDIR])
def test_a_path_that_cannot_be_used_is_an_input_error(number):
    assert isinstance(as_realmctl_error(OSError(number, "why", "x")), InputError)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_what_a_user_may_not_do_is_no_damage(number):
    """Code that sets damaged files aside catches InputError."""
    known = as_realmctl_error(OSError(number, "why", "x"))
    assert isinstance(known, AccessError) and not isinstance(known, InputError)
    assert isinstance(error_of(3, "a child ended so"), InputError)


def test_memory_and_packages():
    class OutOfMemoryError(RuntimeError):
        """As torch has it."""

    assert isinstance(as_realmctl_error(MemoryError()), ResourceError)
    assert "CUDA out of memory" in str(as_realmctl_error(OutOfMemoryError("CUDA out\nof memory")))
    missing = as_realmctl_error(ModuleNotFoundError("No module named 'hnswlib'", name="hnswlib"))
    assert isinstance(missing, ResourceError) and "hnswlib is not installed" in str(missing)


def test_memory_that_runs_out_on_the_cpu():
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError) as torchs:
        torch.empty(2**55)
    with pytest.raises(MemoryError) as numpys:
        pytest.importorskip("numpy").empty(2**55)
    for error in (torchs.value, numpys.value, RuntimeError("can't start new thread"), RuntimeError("std::bad_alloc")):
        assert isinstance(as_realmctl_error(error), ResourceError), error


def test_bugs_stay_bugs():
    ours = ModuleNotFoundError("no", name="realmctl.text")
    for bug in (ValueError("x"), KeyError("x"), RuntimeError("x"), FileNotFoundError(2, "x"), ours, OSError(9, "x")):
        assert as_realmctl_error(bug) is None


def test_our_own_errors_stay_themselves():
    error = InputError("x")
    assert as_realmctl_error(error) is error


@pytest.mark.parametrize(
    "text",
    [
        "unable to open file </tmp/x> in read-only mode: Too many open files (24)",
        "Error while opening: I/O error: Too many open files (os error 24)",
        "unable to mmap 4 bytes from file </tmp/x>: Cannot allocate memory (12)",
    ],
)
def test_errors_of_the_system_in_the_words_of_a_library(text):
    assert isinstance(as_realmctl_error(RuntimeError(text), "x"), ResourceError)


def test_a_number_in_brackets_is_no_error_of_the_system():
    assert as_realmctl_error(RuntimeError("expected 3 dimensions, got (24)"), "x") is None


def test_a_copy_that_finds_no_space_names_the_full_place():
    full = OSError(errno.ENOSPC, "why", "from", None, "to")  # as `shutil.copyfile` raises it
    assert str(as_realmctl_error(full)).startswith("to: why.")
    denied = OSError(errno.EACCES, "why", "from", None, "to")
    assert str(as_realmctl_error(denied)).startswith("from -> to: why.")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It failed.", "It failed"),
        ("It\n failed.  Twice.", "It failed. Twice"),
        ("", "ValueError"),
        (f"It failed. {'Because ' * 100}", "It failed"),
        ("word " * 100, " ".join(["word"] * 60) + " ..."),
        ("x" * 1000, "x" * 300 + " ..."),
    ],
)
def test_a_long_reason_ends_with_a_sentence_or_a_word(text, shown):
    assert one_line(ValueError(text)) == shown


def test_names_out_of_a_file_are_listed_within_bounds():
    assert listed(["key", "story"]) == "key, story" and listed([]) == "nothing"
    assert listed(str(number) for number in range(500)).endswith(", 18, 19 and 480 more")
    row = Row("numbers.jsonl:1", 1, {f"{'n' * 1000}{number}": 1 for number in range(500)})
    with pytest.raises(InputError, match="and 480 more") as raised:
        document_of(row, "1")
    assert len(str(raised.value)) < 10_000

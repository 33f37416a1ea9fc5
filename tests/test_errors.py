"""Errors: the codes that scripts branch on, and the system's errors as a user understands them."""

from __future__ import annotations

import errno

import pytest

from realmctl import errors
from realmctl.errors import InputError, RealmctlError, ResourceError, explained

CODES = {
    "RealmctlError": 1,
    "ConfigError": 2,
    "InputError": 3,
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.EIO])
def test_want_of_something_is_a_resource_error(number):
    known = explained(OSError(number, "why", "/some/where"))
    assert isinstance(known, ResourceError) and str(known).startswith("/some/where: why. ")
    assert str(explained(OSError(number, "why"), "w/blocks")).startswith("w/blocks: why. ")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR])
def test_a_path_that_cannot_be_used_is_an_input_error(number):
    assert isinstance(explained(OSError(number, "why", "x")), InputError)


def test_memory_and_packages():
    class OutOfMemoryError(RuntimeError):
        """As torch has it."""

    assert isinstance(explained(MemoryError()), ResourceError)
    assert "CUDA out of memory" in str(explained(OutOfMemoryError("CUDA out\nof memory")))
    missing = explained(ModuleNotFoundError("No module named 'hnswlib'", name="hnswlib"))
    assert isinstance(missing, ResourceError) and "hnswlib is not installed" in str(missing)


def test_bugs_stay_bugs():
    ours = ModuleNotFoundError("no", name="realmctl.text")
    for bug in (ValueError("x"), KeyError("x"), RuntimeError("x"), FileNotFoundError(2, "x"), ours, OSError(9, "x")):
        assert explained(bug) is None


def test_our_own_errors_stay_themselves():
    error = InputError("x")
    assert explained(error) is error

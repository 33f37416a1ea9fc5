"""Every error that a user can meet, with its exit code.

The message is one paragraph that says what happened, where, why, and what to do. Scripts depend on the codes,
so the meaning of a code never changes.
"""

import errno
import importlib.util

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DEVICE_FAILED = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EREMOTEIO)
NO_ACCESS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.ENOTDIR,
)
OUR_PACKAGES = ("realmctl", "stages")


class RealmctlError(Exception):
    """Base of all errors that are raised on purpose. The message of each is written for the user."""

    exit_code = 1


class ConfigError(RealmctlError):
    """A setting or a combination of settings that cannot work."""

    exit_code = 2


class InputError(RealmctlError):
    """An input is missing, malformed or corrupt."""

    exit_code = 3


class MismatchError(RealmctlError):
    """Artifacts that do not belong together."""

    exit_code = 4


class ResourceError(RealmctlError):
    """Not enough memory, disk or device, or a package that is not installed."""

    exit_code = 5


class QualityError(RealmctlError):
    """A quality gate failed, and nothing was published."""

    exit_code = 6


class LockedError(RealmctlError):
    """Another run holds the series."""

    exit_code = 7


class InterruptedRun(RealmctlError):
    """The run saved its progress and stopped on a signal. The same command continues it."""

    exit_code = 75


def error_of(exit_code: int, message: str) -> RealmctlError:
    """The error of a process that ended with this exit code."""
    kinds = {kind.exit_code: kind for kind in RealmctlError.__subclasses__()}
    return kinds.get(exit_code, RealmctlError)(message)


def require_package(name: str, extra: str, what: str) -> None:
    """Raise ResourceError unless the Python package `name`, which comes with an extra of ours, is installed."""
    if importlib.util.find_spec(name) is None:
        raise ResourceError(
            f"{what} needs the Python package {name}, which is not installed. Install it with the extra it is in: "
            f"pip install 'realmctl[{extra}]'."
        )


def explained(error: BaseException, where: object = "") -> RealmctlError | None:
    """The user's error that an exception of Python or the system means; None when it can only be a bug.

    Args:
        error: The exception.
        where: What was being written or read, for exceptions that do not name a file.
    """
    if isinstance(error, RealmctlError):
        return error
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] not in OUR_PACKAGES:
        return ResourceError(
            f"the Python package {error.name} is not installed. Install it, or install realmctl again."
        )
    if isinstance(error, OSError):
        return _of_system(error, f"{error.filename or where}")
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return ResourceError(f"not enough memory ({_one_line(error)}). Use smaller batches, or free some memory.")
    return None


def _of_system(error: OSError, where: str) -> RealmctlError | None:
    what = f"{where}: {error.strerror}" if where else str(error.strerror)
    if error.errno in NO_SPACE:
        return ResourceError(f"{what}. Free some disk space and run the same command again.")
    if error.errno in (errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN):
        return ResourceError(f"{what}. Use fewer --workers, or free what other processes hold.")
    if error.errno in DEVICE_FAILED:
        return ResourceError(f"{what}. The disk failed. Check it (dmesg), then run the same command again.")
    if error.errno in NO_ACCESS:
        return InputError(f"{what}. Check the path and its permissions.")
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__

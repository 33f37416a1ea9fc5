"""Every error that a user can meet, with its exit code.

A message is one paragraph. It says what happened, where, why, and what to do. Scripts branch on the exit codes, so the meaning
of a code never changes.
"""

import errno
import importlib.util
import os
from collections.abc import Iterable

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
DEVICE_FAILED = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EREMOTEIO, errno.ESTALE, errno.ENOTCONN)
"""ESTALE and ENOTCONN come from network file systems: of NFS whose server has another file there, and of FUSE whose program has ended."""
NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS)
NO_SUCH_PLACE = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
NAME_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)
NO_HANDLES = (errno.EMFILE, errno.ENFILE)
NO_MEMORY_OR_PROCESSES = (errno.ENOMEM, errno.EAGAIN)
MEMORY_MESSAGES = (
    "defaultcpuallocator: can't allocate memory",  # PyTorch on the CPU
    "defaultcpuallocator: not enough memory",
    "cannot allocate memory",  # memory maps
    "std::bad_alloc",  # C++ libraries
    "not enough memory",  # hnswlib
)
INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes as of a command that SIGINT or SIGPIPE ended: Ctrl-C, and a reader of stdout that went away."""
EXIT_CODES = {
    0: "done, or nothing to do",
    1: "a bug",
    2: "wrong usage or a setting that cannot work",
    3: "an input is missing, malformed or corrupt, or a file may not be read or written",
    4: "artifacts do not belong together",
    5: "not enough memory, disk or device, or a package is missing",
    6: "a quality gate failed",
    7: "another run is writing the series",
    75: "interrupted, run the command again",
    INTERRUPTED: "Ctrl-C",
    BROKEN_PIPE: "the reader of stdout closed it",
}
"""{exit code: what it means}, as `--help` lists them. docs/reference/exit-codes.md says more about each."""
THREAD_MESSAGE = "can't start new thread"
LONGEST_REASON = 300
"""Characters of what another library says that a message repeats."""
LISTED = 20
FEWER_PROCESSES = "End other processes, or use fewer --workers where the command has that option."
OUR_PACKAGES = ("realmctl", "stages")


def listed(names: Iterable[str]) -> str:
    """Names out of a user's file, for a message: the first twenty, each with its first characters."""
    known = [name[:LONGEST_REASON] for name in names]
    more = f" and {len(known) - LISTED:,} more" if len(known) > LISTED else ""
    return ", ".join(known[:LISTED]) + more or "nothing"


class RealmctlError(Exception):
    """Base of all errors that are raised on purpose. The message is written for the user."""

    exit_code = 1


class ConfigError(RealmctlError):
    """A setting, or a combination of settings, cannot work."""

    exit_code = 2


class AccessError(RealmctlError):
    """This user may not read or write a file. It is no InputError, because callers take one for damage."""

    exit_code = 3


class InputError(RealmctlError):
    """An input is missing, malformed or corrupt."""

    exit_code = 3


class NotFiniteError(InputError):
    """Vectors or scores that a model computed hold NaN or infinite numbers. In a training it means that the run diverged.

    `step`: the training steps that the model had taken, where another process found it some steps later.
    """

    step: int | None = None


class MismatchError(RealmctlError):
    """Artifacts do not belong together."""

    exit_code = 4


class ResourceError(RealmctlError):
    """There is not enough memory, disk space or device, or a package is not installed."""

    exit_code = 5


class QualityError(RealmctlError):
    """A quality gate failed. Nothing was published but `made`: scores that are kept, and that a command tells all the same."""

    exit_code = 6
    made: object = None


class LockedError(RealmctlError):
    """Another run is writing the series."""

    exit_code = 7


class InterruptedRun(RealmctlError):
    """The run saved its progress and stopped on a signal. The same command continues it."""

    exit_code = 75


class StoppedBySignal(KeyboardInterrupt):
    """A signal stops the run at once.

    Like KeyboardInterrupt, which SIGINT raises, it is no Exception. It may come at any place, and code that handles failures must not
    take it for one.
    """

    exit_code = InterruptedRun.exit_code


def interruption(stop: KeyboardInterrupt) -> str:
    """What to tell of a run that was stopped at once."""
    return str(stop) or "interrupted. Run the same command again; a resumable stage continues."


def error_of(exit_code: int, message: str) -> RealmctlError:
    """Return the error that belongs to the exit code of a child process."""
    kinds = {kind.exit_code: kind for kind in RealmctlError.__subclasses__()}  # InputError comes after AccessError
    return kinds.get(exit_code, RealmctlError)(message)


def require_package(name: str, extra: str, what: str) -> None:
    """Check that an optional Python package is installed.

    Args:
        name: The package as it is imported.
        extra: The extra of realmctl that installs it.
        what: The command or option that needs it, for the message.

    Raises:
        ResourceError: The package is not installed.
    """
    if importlib.util.find_spec(name) is None:
        raise ResourceError(
            f"{what} needs the Python package {name}, which is not installed. Install the extra that contains it: "
            f"pip install 'realmctl[{extra}]'."
        )


def as_realmctl_error(error: BaseException, where: object = "") -> RealmctlError | None:
    """Translate an exception of Python, the system or a library into an error that a user understands.

    Args:
        error: Any exception.
        where: The path that was being read or written, for errors that do not contain it.

    Returns:
        The error to show, or None if `error` can only be a bug.
    """
    if isinstance(error, RealmctlError):
        return error
    if is_panic(error):
        return InputError(
            f"a library cannot handle one of the inputs ({one_line(error)}). A file that it reads, such as a tokenizer.json, may be damaged. Get it again."
        )
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] not in OUR_PACKAGES:
        return ResourceError(
            f"the Python package {error.name} is not installed. Install it, or install realmctl again."
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error, _place_of(error) or f"{where}")
    for number in (*NO_SPACE, *NO_HANDLES, *NO_MEMORY_OR_PROCESSES, *DEVICE_FAILED):
        # As libraries say it that are written in Rust, and PyTorch.
        if f"(os error {number})" in str(error) or f"{os.strerror(number)} ({number})" in str(error):
            return _of_system(OSError(number, os.strerror(number)), f"{where}")
    if _is_out_of_memory(error):
        return ResourceError(
            f"not enough memory ({one_line(error)}). Use a smaller model or smaller batches, or free some memory."
        )
    if isinstance(error, RuntimeError) and THREAD_MESSAGE in str(error):
        return ResourceError(f"{error}. {FEWER_PROCESSES}")
    return None


def is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust gave up. Its error is no Exception, and its class is in no module, so that it cannot be sent between processes."""
    return type(error).__name__ == "PanicException"


def at_the_end(error: BaseException, where: object = "") -> RealmctlError | None:
    """Translate like `as_realmctl_error` where nobody is left who knows more about a path that is missing or taken."""
    known = as_realmctl_error(error, where)
    if known is None and isinstance(error, OSError) and error.filename:
        if error.errno == errno.ENOENT:
            return InputError(
                f"{error.filename}: {error.strerror}. It was removed meanwhile, or a link leads nowhere. Check the path."
            )
        if error.errno in NAME_TAKEN:
            return InputError(f"{error.filename}: {error.strerror}. Move it away, or write to another place.")
    return known


def one_line(error: BaseException) -> str:
    """Return the message of an exception in one line without its full stop, or else its class.

    Of a message that is longer than LONGEST_REASON, the whole sentences that fit, or else the whole words.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) > LONGEST_REASON:
        within = text[:LONGEST_REASON]
        sentences, stop, _ = within.rpartition(". ")
        return sentences if stop else f"{within.rpartition(' ')[0] or within} ..."
    return text.rstrip(".")


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out. PyTorch's error class is matched by name because this module does not import torch."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in MEMORY_MESSAGES)


def _place_of(error: OSError) -> str:
    """The file of an error. Of a copy that found no space it is the target, which is full, and else both files."""
    files = [
        os.fsdecode(name) if isinstance(name, bytes) else str(name)
        for name in (error.filename, error.filename2)
        if name
    ]
    return " -> ".join(files[-1:] if error.errno in NO_SPACE else files)


def _of_system(error: OSError, where: str) -> RealmctlError | None:
    what = f"{where}: {error.strerror}" if where else str(error.strerror)
    if error.errno in NO_SPACE:
        return ResourceError(f"{what}. Free some disk space and run the same command again.")
    if error.errno in NO_HANDLES:
        return ResourceError(f"{what}. Allow more open files (ulimit -n). {FEWER_PROCESSES}")
    if error.errno in NO_MEMORY_OR_PROCESSES:
        return ResourceError(f"{what}. {FEWER_PROCESSES}")
    if error.errno == errno.EPIPE:
        return ResourceError(
            f"{what}. A process that this command needs has ended, most likely because memory ran out. {FEWER_PROCESSES}"
        )
    if error.errno in DEVICE_FAILED:
        return ResourceError(
            f"{what}. The disk or its network failed. Check it (dmesg, mount), then run the same command again."
        )
    if error.errno in NO_ACCESS:
        return AccessError(f"{what}. Use another user or another place, or change the permissions.")
    if error.errno in NO_SUCH_PLACE:
        return InputError(f"{what}. Check the path.")
    return None

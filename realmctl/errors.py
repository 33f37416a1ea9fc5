"""Every error a user can meet, with its exit code.

The message is one paragraph that says what happened, where, why, and what to do. Scripts branch on the codes, so a
code never changes its sense (docs/exit-codes.md; tests/test_errors.py).
"""


class RealmctlError(Exception):
    """Root of all errors raised on purpose. One of them uncaught by name is still a user-facing paragraph."""

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
    """Stopped by SIGTERM after saving; the same command goes on where it stopped."""

    exit_code = 75

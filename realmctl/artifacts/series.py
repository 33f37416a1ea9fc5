"""A series: the numbered versions of one kind of artifact, with one writer at a time.

The lock is a kernel lock (flock) on the file `.lock`, so that the kernel frees it when a writer is killed. The file
`.last` holds the highest number that was given, so that no number is given again after a version was deleted. The file `.newest`
names a version that is newer than those after it: a run of its recipe found it. `versions_in` gives the order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from realmctl.artifacts.artifact import (
    FOUND_BYTES,
    VERSION_NAME,
    Artifact,
    Verification,
    newest_again,
    newest_version,
    open_artifact,
    open_unfinished,
    pinned_version,
    verification,
    verify,
    version_numbers,
    versions_in,
)
from realmctl.artifacts.disk import (
    NO_LOCKS,
    OUTPUT_OPTIONS,
    lock_file,
    make_folders,
    read_small,
    rename_to_fresh,
    require_regular,
    write_file,
)
from realmctl.artifacts.folder import LAST, LOCK, MANIFEST, NEWEST, PINNED
from realmctl.artifacts.hashing import write_sealed
from realmctl.artifacts.manifest import Origin, read_manifest
from realmctl.artifacts.place import OWN_NAMES, require_place, series_below
from realmctl.artifacts.unfinished import (
    delete_hint,
    new_partial,
    partial_folders,
    remove_half_written,
    remove_or_set_aside,
    unfinished_run,
)
from realmctl.artifacts.writer import Writer, publish
from realmctl.errors import ConfigError, InputError, LockedError, MismatchError
from realmctl.log import say, warn

MAX_VERSION = 999_999_999


def series_folder(out: Path | str, kind: str) -> Path:
    """Return the folder that a user named for an output, after checking that it can contain versions of this kind.

    Raises:
        ConfigError: The name is not usable, it is a file or lies in an artifact, or it holds versions of another kind.
    """
    text = str(out)
    if not text.strip() or not text.isprintable():
        raise ConfigError(
            f"the output folder {text!r} is empty or has characters that cannot be printed. Name another."
        )
    try:
        series = Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"the output folder {out}: {error}. Write the whole path.") from None
    place = require_place(series, f"the output folder {out}")
    if place.exists() and not place.is_dir():
        raise ConfigError(
            f"the output folder {out} is a file, and a series is a folder of versions. Name another ({OUTPUT_OPTIONS})."
        )
    if OWN_NAMES.fullmatch(place.name):
        raise ConfigError(
            f"the output folder {out}: {place.name} is a name that realmctl uses within a series. Name another ({OUTPUT_OPTIONS})."
        )
    if held := [child.name for child in series_below(series)]:
        raise ConfigError(
            f"the output folder {out} is a workspace, which holds the series {', '.join(held[:5])}. To write into it, use "
            f"-w {out}. Or name another folder ({OUTPUT_OPTIONS}), such as {series / kind}."
        )
    kinds = set(_kinds(series))
    if kinds - {kind}:
        raise ConfigError(
            f"the output folder {out} holds versions of {min(kinds - {kind})}, not of {kind}. Name another ({OUTPUT_OPTIONS})."
        )
    return series


def _kinds(series: Path) -> Iterator[str]:
    for number in version_numbers(series):
        with suppress(InputError, MismatchError):
            yield read_manifest(series / f"v{number}").kind


def readable_versions(series: Path) -> Iterator[Artifact]:
    """Yield the committed versions, newest first. A damaged version is left out with a warning.

    One version is open at a time, so that the file handles do not grow with the versions.

    Raises:
        ResourceError: Memory or file handles ran out, or the disk failed. Such a version is not damaged.
    """
    for path in reversed(versions_in(series)):
        try:
            artifact = open_artifact(path)
        except (InputError, MismatchError) as error:
            warn(str(error))
        else:
            yield artifact


def find_version(series: Path, origin: Origin, inputs: Iterable[Artifact] = ()) -> Artifact | None:
    """Return the newest undamaged version with the recipe of `origin`, or None.

    The version is hashed again as REALMCTL_VERIFY says. A damaged version is left out with a warning.

    inputs: What the run reads. A version is not made from one of its series with a higher number: an edit that was made, undone and is
        made again has the recipe of the first time, and is a new version.
    """
    here = series.absolute()
    first = max([0, *(_number(each.path) for each in inputs if each.path.absolute().parent == here)])
    for each in readable_versions(series):
        if _number(each.path) > first and each.recipe == origin.recipe and is_whole(each):
            return each
    return None


def meant_version(series: Path) -> Path:
    """Path of the version that a series stands for: the pinned one, or else the newest. Raises InputError when there is none."""
    return pinned_version(series) or newest_version(series)


def warn_if_not_meant(version: Artifact) -> None:
    """Warn where a series is pinned to another version than the one that a run made or found."""
    series = version.path.parent
    try:
        pinned = pinned_version(series)
    except InputError as error:  # the version is there all the same
        warn(str(error))
        return
    if pinned not in (None, version.path):
        own = version.path.name
        warn(
            f"{series} is pinned to {pinned.name}, not {own}. To use {own}, name it, or run `realmctl pin {version.path}`"
        )


def is_newest(version: Artifact) -> bool:
    """Whether a version is the newest of its series."""
    return newest_version(version.path.parent).name == version.path.name


def make_newest(version: Artifact) -> None:
    """Let a version be the newest of its series again, until one with a higher number than all of now is committed.

    So what a run found is what the next one takes. One small file is replaced, so a kill leaves the old order or the new one.
    Call it with the lock held.
    """
    series, number = version.path.parent, _number(version.path)
    write_sealed(series / NEWEST, {"newest": number, "among": max(version_numbers(series))})


def pin(version: Artifact) -> None:
    """Let the series of a version stand for it, instead of for the newest. `gc` keeps it.

    Raises ConfigError for an artifact that is not a version of a series.
    """
    if not VERSION_NAME.fullmatch(version.path.name):
        raise ConfigError(f"{version.path} is not a version of a series, such as artifacts/qa-model/v2. Name one.")
    write_file(version.path.parent / PINNED, f"{version.path.name}\n".encode(), shared=True)


def unpin(series: Path) -> None:
    """Let a series stand for its newest version again."""
    (series / PINNED).unlink(missing_ok=True)


def require_newest(base: Artifact) -> None:
    """Check that a version is the newest of its series. Call it with the lock of the series held.

    Raises LockedError: another run wrote a newer version, which a revision of `base` would leave behind.
    """
    newest = newest_version(base.path.parent)
    if newest.name != base.path.name:
        raise LockedError(
            f"Another run wrote {newest.name} of {newest.parent.name}, and this revision was made from {base.path.name}: "
            f"what {newest.name} changed would be lost. Look at {newest.name}, and make the revision again."
        )


def is_whole(artifact: Artifact) -> bool:
    """Hash a version again as REALMCTL_VERIFY says, and return whether it is undamaged. A damaged one is warned of."""
    policy = verification()
    large = artifact.total_bytes() > FOUND_BYTES
    if policy is Verification.QUICK or (large and policy is not Verification.FULL):
        return True
    try:
        verify(artifact)
    except InputError as error:
        warn(str(error))
        return False
    return True


@contextmanager
def locked(series: Path) -> Iterator[None]:
    """Hold the lock of a series. The folder is made if it is missing.

    Raises:
        LockedError: Another process holds it. The message names the process.
        ConfigError: No folder can be made there.
    """
    try:
        make_folders(series)
    except FileNotFoundError as error:
        raise ConfigError(
            f"the output folder {series} cannot be made ({error.strerror}). Name a folder on a disk ({OUTPUT_OPTIONS})."
        ) from None
    path = series / LOCK
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        require_regular(path, os.fstat(handle))
        _lock(handle, series)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, series: Path) -> None:
    try:
        lock_file(handle)
    except BlockingIOError:
        holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "unknown"
        raise LockedError(
            f"{series} is being written by another run (process {holder}). Wait for it, or write elsewhere ({OUTPUT_OPTIONS})."
        ) from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        warn(f"{series} cannot be locked ({error.strerror}): start no second run on it")


def commit_finished_runs(series: Path) -> None:
    """Commit runs that were killed after they wrote their manifest. Call it with the lock held.

    Raises:
        InputError: Such a run is damaged. Every byte is checked.
    """
    for partial in partial_folders(series):
        if not (partial / MANIFEST).is_file():
            continue
        try:
            verify(open_unfinished(partial), unfinished=True)
        except InputError as error:
            raise InputError(
                f"{partial} is a finished run that was not committed and is damaged: {error} Or {delete_hint(partial)}"
            ) from None
        say(f"committing {commit(partial).path}, which a killed run had finished")


def start_or_resume(series: Path, origin: Origin, resumable: bool) -> Writer:
    """A writer for the unfinished run of this recipe, or for the next number.

    Call it with the lock held, after `commit_finished_runs`. A run whose recipe.json is damaged is moved to the quarantine
    folder of the series.

    Raises:
        MismatchError: There is an unfinished run of another recipe, whose progress would be lost.
    """
    resumed = unfinished_run(series, origin)
    for partial in partial_folders(series):
        if partial != resumed:
            remove_or_set_aside(partial)
    if resumed:
        say(f"resuming {resumed}")
        remove_half_written(resumed)
        return Writer(resumed, origin)
    return new_partial(series / f"v{next_number(series)}.partial", origin, resumable)


def adopt(series: Path, made: Artifact) -> Artifact:
    """Make a committed version of a temporary series, on the same disk, the next version of this one, by one rename.

    Call it with the lock held.
    """
    number = next_number(series)
    write_file(series / LAST, f"{number}\n".encode())
    rename_to_fresh(made.path, series / f"v{number}")
    return open_artifact(series / f"v{number}")


def commit(partial: Path) -> Artifact:
    """Commit the `vN.partial` of a series, which has its manifest, as version vN, or as the next one if there are newer ones.

    So the newest version is the one that was finished last. The number is recorded before, so that it is never given again.

    Raises:
        InputError: The version exists, or the folder does not pass the checks.
        OSError: A flush or the rename failed. Then the version is not visible.
    """
    series, number = partial.parent, int(partial.stem.removeprefix("v"))
    if os.path.lexists(series / partial.stem):
        raise InputError(
            f"{partial} is finished, but {series / partial.stem} exists already. Move one of the two away."
        )
    if number < max([0, *version_numbers(series)]):
        number = next_number(series)
    if number > _last_number(series):
        write_file(series / LAST, f"{number}\n".encode())
    return publish(partial, series / f"v{number}")


def next_number(series: Path) -> int:
    """One more than any number that is there or was given before.

    Raises:
        InputError: There are no numbers left.
    """
    given = [_last_number(series), *(newest_again(series) or ()), *(_number(path) for path in series.glob("v*"))]
    number: int = max(given) + 1
    if number > MAX_VERSION:
        raise InputError(
            f"{series} holds version {MAX_VERSION}, which is the last number. Write elsewhere ({OUTPUT_OPTIONS})."
        )
    return number


def _number(version: Path) -> int:
    """The number of a version or of an unfinished run; 0 for another name."""
    match = VERSION_NAME.fullmatch(version.name.removesuffix(".partial"))
    return int(match[1]) if match else 0


def _last_number(series: Path) -> int:
    """Return the highest number given, according to `.last`. It is 0 when the file is missing or damaged."""
    try:
        text = read_small(series / LAST, limit=20).decode().strip()
    except (OSError, ValueError, InputError):
        return 0
    return int(text) if text.isascii() and text.isdigit() and int(text) <= MAX_VERSION else 0

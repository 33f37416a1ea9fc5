"""A disk that forgets: the calls of a run are recorded, and replayed up to a power cut under a model of what fsync promises.

The model. The bytes of a file are safe from its fsync until it is opened for writing again. An entry of a folder (a file made,
a rename, a removal) is safe from the next fsync of that folder. Of everything else any part may be lost: bytes are lost, cut
or kept, and entries are kept or not. They are kept in order (a journal) or in any combination.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Event = tuple[Any, ...]
_recording: list[Event] | None = None
WRITES = os.O_WRONLY | os.O_RDWR


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _recording is None:
        return
    if event == "open" and isinstance(arguments[0], str | os.PathLike) and arguments[2] & WRITES:
        _recording.append(("write", str(Path(os.fspath(arguments[0])).absolute())))
    elif event in ("os.mkdir", "os.remove", "os.rmdir") and isinstance(arguments[0], str | os.PathLike):
        if os.fspath(arguments[0]).startswith("/"):
            _recording.append((event.removeprefix("os."), os.fspath(arguments[0])))
    elif event in ("os.rename", "os.link"):
        _recording.append((event.removeprefix("os."), os.fspath(arguments[0]), os.fspath(arguments[1])))


sys.addaudithook(_hook)


@contextmanager
def recorded() -> Iterator[list[Event]]:
    """Within the block, record what changes files and folders, and every fsync with the bytes that it makes safe."""
    global _recording
    log: list[Event] = []
    fsync = os.fsync

    def flushed(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        fsync(handle)
        log.append(("fsync", path, Path(path).read_bytes() if Path(path).is_file() else None))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", flushed)
        _recording = log
        try:
            yield log
        finally:
            _recording = None


@dataclass
class Node:
    """A file or folder. `safe` are its bytes after a power cut, None when they are not safe; `entries` what it holds."""

    is_folder: bool
    safe: bytes | None = None
    latest: bytes = b""
    entries: dict[str, Node] = field(default_factory=dict)


Change = tuple[Node, str, Node | None]
"""(folder, name, what the name means from now on)"""


class Disk:
    """The folder `root` and all below it, as the log leaves it: safe entries, and the changes that are not safe yet."""

    def __init__(self, root: Path) -> None:
        self.root, self.top = str(root), Node(True)
        self.live: dict[str, Node] = {self.root: self.top}
        self.unsafe: list[list[Change]] = []

    def replay(self, log: list[Event]) -> None:
        """Apply recorded calls."""
        for name, *arguments in log:
            if all(not isinstance(each, str) or each.startswith(self.root) for each in arguments):
                getattr(self, f"_{name}")(*arguments)

    def after_cut(self, draw: random.Random) -> dict[str, bytes]:
        """Return {path: bytes} of the files that are found after a power cut."""
        kept = [draw.random() < 0.5 for _ in self.unsafe]
        if draw.random() < 0.5:  # in order
            kept = [number < draw.randint(0, len(kept)) for number in range(len(kept))]
        tables: dict[int, dict[str, Node]] = {}
        for group in (group for group, keep in zip(self.unsafe, kept, strict=True) if keep):
            for folder, name, node in group:
                table = tables.setdefault(id(folder), dict(folder.entries))
                if node is None:
                    table.pop(name, None)
                else:
                    table[name] = node
        return dict(self._files(self.top, self.root, tables, draw))

    def _files(
        self, folder: Node, path: str, tables: dict[int, dict[str, Node]], draw: random.Random
    ) -> Iterator[tuple[str, bytes]]:
        for name, node in tables.get(id(folder), folder.entries).items():
            if node.is_folder:
                yield from self._files(node, f"{path}/{name}", tables, draw)
            elif node.safe is not None:
                yield f"{path}/{name}", node.safe
            else:
                yield f"{path}/{name}", draw.choice([b"", node.latest[: len(node.latest) // 2], node.latest])

    def _at(self, path: str, is_folder: bool) -> Node:
        if path not in self.live:
            self.live[path] = Node(is_folder)
            self._change([(self._at(_folder(path), True), _name(path), self.live[path])])
        return self.live[path]

    def _change(self, group: list[Change]) -> None:
        self.unsafe.append(group)

    def _write(self, path: str) -> None:
        node = self._at(path, False)
        node.safe = None

    def _mkdir(self, path: str) -> None:
        self._at(path, True)

    def _fsync(self, path: str, data: bytes | None) -> None:
        node = self._at(path, data is None)
        if data is not None:
            node.safe = node.latest = data
            return
        rest = []
        for group in self.unsafe:
            if any(folder is node for folder, _, _ in group):
                for folder, name, child in group:
                    folder.entries.pop(name, None)
                    if child is not None:
                        folder.entries[name] = child
            else:
                rest.append(group)
        self.unsafe = rest

    def _rename(self, source: str, target: str) -> None:
        node = self._at(source, Path(target).is_dir())
        old, new = self._at(_folder(source), True), self._at(_folder(target), True)
        self._change([(old, _name(source), None), (new, _name(target), node)])
        moved = {
            path: self.live.pop(path) for path in list(self.live) if path == source or path.startswith(source + "/")
        }
        self.live |= {target + path.removeprefix(source): each for path, each in moved.items()}

    def _link(self, source: str, target: str) -> None:
        node = self._at(source, False)
        self.live[target] = node
        self._change([(self._at(_folder(target), True), _name(target), node)])

    def _remove(self, path: str) -> None:
        if path in self.live:
            del self.live[path]
            self._change([(self._at(_folder(path), True), _name(path), None)])

    _rmdir = _remove


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def fault(found: dict[str, bytes], version: Path, expected: dict[str, bytes], acknowledged: bool) -> str | None:
    """Say what is wrong after a power cut: a version that is torn, or that is gone although its run had ended."""
    manifest = found.get(f"{version}/manifest.json")
    if manifest is None:
        return "lost" if acknowledged else None
    whole = all(found.get(f"{version}/{name}") == data for name, data in expected.items())
    return None if whole else "torn"

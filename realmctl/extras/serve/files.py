"""Addresses of the files that documents were read from. An id of a document may say anything, so only files in one folder have an address."""

from __future__ import annotations

from pathlib import Path

from realmctl.errors import InputError


class Files:
    """The files in a folder.

    Raises:
        InputError: It is no folder.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder. Name with --files the one that index-docs or chunk has read.")
        self._folder = folder.resolve()

    def address(self, document: str | None) -> str | None:
        """Return the file: address of a document of this id, or None if it names no file in the folder. Links that lead out of it are no files in it."""
        try:
            path = (self._folder / (document or "")).resolve()
            return path.as_uri() if path.is_relative_to(self._folder) and path.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a name that is too long, with a zero byte, or a circle of links
            return None

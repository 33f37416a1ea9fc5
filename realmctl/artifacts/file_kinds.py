"""The format of a file, by its first bytes and its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

MAGIC = (
    (b"\x93NUMPY", "NumPy array"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip archive"),
    (b"PAR1", "Parquet table"),
    (b"ARROW1", "Arrow table"),
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"RIFF", "image, sound or video (RIFF)"),
    (b"ID3", "MP3 sound"),
    (b"%PDF", "PDF file"),
    (b"{\\rtf", "RTF document"),
    (b"\xd0\xcf\x11\xe0", "document of an old Office format"),
    (b"SQLite format 3", "SQLite database"),
    (b"7z\xbc\xaf", "7z archive"),
    (b"Rar!", "RAR archive"),
    (b"\x7fELF", "program (ELF)"),
    (b"\x89HDF", "HDF5 file"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)
HEAD_BYTES = 4096
TAR = slice(257, 262)
MAX_SAFETENSORS_HEADER = 100_000_000
SUFFIXES = {
    ".jsonl": "JSON lines",
    ".json": "JSON",
    ".yaml": "YAML",
    ".yml": "YAML",
    ".tsv": "tab-separated text",
    ".csv": "comma-separated text",
    ".xml": "XML",
    ".html": "HTML page",
    ".md": "Markdown",
    ".txt": "text",
}


def kind_of_file(path: Path) -> str:
    """Return the format of a file in words, such as `zstandard records (JSON lines)`.

    Nothing is decompressed or executed.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        return "empty file"
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if binary := binary_kind(head):
        return binary + _detail(path, head, binary)
    return SUFFIXES.get(path.suffix, "text" if _is_text(head) else "binary file")


def binary_kind(head: bytes) -> str:
    """Return what a file with these first bytes is, such as "PNG image"; "" if it may be UTF-8 text.

    A null byte makes a file binary, because no text of a corpus has one.
    """
    if head[TAR] == b"ustar":
        return "tar archive"
    known = next((name for magic, name in MAGIC if head.startswith(magic)), "")
    return known or ("binary file" if b"\0" in head[:HEAD_BYTES] else "")


def _detail(path: Path, head: bytes, name: str) -> str:
    if name == "NumPy array":
        dtype, shape = re.search(rb"'descr': '([^']+)'", head), re.search(rb"'shape': \(([0-9, ]*)\)", head)
        return f" of {dtype[1].decode()}, shape ({shape[1].decode()})" if dtype and shape else ""
    inner = SUFFIXES.get(Path(path.stem).suffix, "")
    return f", compressed {inner}" if inner else ""


def _safetensors(path: Path) -> str:
    """Count the tensors in the JSON header, whose length is in the first 8 bytes."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(MAX_SAFETENSORS_HEADER, path.stat().st_size):
                return "damaged safetensors file"
            tensors = set(json.loads(file.read(length))) - {"__metadata__"}
    except (ValueError, TypeError, RecursionError):
        return "damaged safetensors file"
    return f"safetensors with {len(tensors)} tensors"


def _is_text(head: bytes) -> bool:
    """Whether bytes are UTF-8; the last character may be cut."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4
    return True

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
)
HEAD_BYTES = 4096
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
    for magic, name in MAGIC:
        if head.startswith(magic):
            return name + _detail(path, head, name)
    if b"\0" in head:
        return "binary file"
    return SUFFIXES.get(path.suffix, "text" if _is_text(head) else "binary file")


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

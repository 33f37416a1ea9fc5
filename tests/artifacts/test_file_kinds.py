"""Formats of files by their bytes: what libraries write is recognised, and damage is not taken for it."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pytest
import torch
import zstandard
from safetensors.torch import save

from realmctl.artifacts.file_kinds import kind_of_file

FILES = {
    "a.bin": (b"", "empty file"),
    "notes": (b"hello", "text"),
    "cut.log": (("a" * 4095 + "é").encode(), "text"),
    "latin": (b"caf\xe9 au lait", "binary file"),
    "a.jsonl": (b"{}\n", "JSON lines"),
    "a.jsonl.zst": (zstandard.compress(b"{}\n"), "zstandard, compressed JSON lines"),
    "a.xml.bz2": (bz2.compress(b"<a>"), "bzip2, compressed XML"),
    "a.gz": (gzip.compress(b"x"), "gzip"),
    "a.safetensors": (save({"x": torch.zeros(2), "y": torch.zeros(1)}), "safetensors with 2 tensors"),
    "b.safetensors": (b"\xff" * 20, "damaged safetensors file"),
    "c.safetensors": (b"\x02" + b"\0" * 7 + b"\xff\xfe", "damaged safetensors file"),
    "d.json": (b"{\0}", "binary file"),
    "picture": (b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
    "a.tar": (b"a" * 257 + b"ustar\x0000", "tar archive"),
}


@pytest.mark.parametrize("name", FILES)
def test_formats(tmp_path, name):
    (tmp_path / name).write_bytes(FILES[name][0])
    assert kind_of_file(tmp_path / name) == FILES[name][1]


def test_arrays_say_type_and_shape(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4), np.float16))
    assert kind_of_file(tmp_path / "a.npy") == "NumPy array of <f2, shape (3, 4)"

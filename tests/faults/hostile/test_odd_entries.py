"""What is no file, or cannot be read, as the first entry of a folder of documents: nothing of it is opened before it is known to be a file."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.faults.counting import count
from tests.faults.hostile.test_every_place import KINDS
from tests.fixtures.encoder_folders import folder_for

ODD = {
    "pipe": os.mkfifo,
    **{kind: KINDS[kind] for kind in ("socket", "device", "dangling", "loop", "truncated")},
    "cut UTF-16": lambda path: path.write_bytes("a line".encode("utf-16") + b"\0"),
    "a folder that it lies in": lambda path: path.symlink_to("."),
    "not to be read": lambda path: path.touch(0),
    "bytes of gzip": lambda path: path.write_bytes(gzip.compress(b"\x00\x01" * 2000)),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("command", "kind"),
    [
        pytest.param(command, kind, marks=pytest.mark.slow if command == "index-docs" and kind != "pipe" else ())
        for command in ("chunk", "index-docs")
        for kind in ODD
    ],
)
def test_an_odd_first_entry_is_refused_or_skipped(realmctl, chain, tmp_path, command, kind):
    """An entry that is opened before it is looked at would hang here, or end the command in spite of `skip`."""
    Path("documents").mkdir()
    Path("documents/more.txt").write_text("Ada was born in Ashby. She met Ben in Rome.")
    ODD[kind](Path("documents/0.txt"))
    more = (
        ["--tokenizer", "train:100"] if command == "chunk" else ["--encoder", folder_for(chain.blocks, tmp_path / "e")]
    )
    given = [command, "documents", "-w", "w", *more]
    code, _, err = realmctl(*given, "--bad-files", "fail")
    is_read = kind == "not to be read" and os.access("documents/0.txt", os.R_OK)  # as root
    assert code == (0 if is_read else 3) and (is_read or "0.txt" in err)
    code, _, err = realmctl(*given, "--bad-files", "skip")
    assert code == 0, err
    count("odd first entries of a folder", 1)

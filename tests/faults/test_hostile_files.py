"""Hostile files through the command line: one clear error or a result; no traceback, no code executed, no hang, bounded memory."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from typer.testing import CliRunner

from realmctl.cli.app import build
from tests.faults.counting import count, rounds

SEED, FILES = 22, 40
CPU_SECONDS, MEMORY_BYTES = 5, 2**30
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstandard.compress,
}  # fmt: skip
SUFFIXES = [".jsonl", ".json", ".xml", ".txt", ".csv", ".tsv", ".yaml", ".npy", ".safetensors", ""]
CODES = {0, 2, 3, 4, 5}


class Bomb:
    """Unpickled, it writes the canary file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.canary}",)


def contents(draw: random.Random, canary: Path) -> list[bytes]:
    """One hostile content of each sort."""
    deep, wide = draw.randint(50, 100_000), draw.randint(10, 2_000_000)
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(9))
    header = json.dumps(
        {"descr": draw.choice(["|O", "<f4", "<U9999999"]), "fortran_order": False, "shape": (wide, deep)}
    )
    return [
        draw.randbytes(draw.randint(1, 5000)),
        b"[" * deep + b"]" * deep,
        b'{"a":' * deep + b"1" + b"}" * deep,
        b'{"id": 1, "title": "t", "text": "' + b"x" * wide + b'"}\n',
        b'{"id": "1", "id": "2", "title": null, "text": NaN}\n',
        b'{"title": "\\ud800", "text": "\\udfff a"}\n' * 3,
        b"\xff\xfe" + "x\n".encode("utf-16-le") * 50,
        b"a\0b\r\n\x1b[31m" * 100,
        f'<?xml version="1.0"?><!DOCTYPE m [<!ENTITY e0 "x">{entities}]><mediawiki>&e9;</mediawiki>'.encode(),
        b'<mediawiki xmlns="x"><page><title>' + b"t" * wide + b"</title>",
        b"<mediawiki>" + b"<page>" * deep,
        b'<!DOCTYPE m SYSTEM "file:///etc/passwd"><mediawiki><page></page></mediawiki>',
        b"a: &a [x]\n" + b"".join(b"b%d: &b%d [*a, *a, *a]\n" % (n, n) for n in range(50)),
        b"stages: !!python/object/apply:os.system ['touch " + str(canary).encode() + b"']\n",
        b'question,answer\n"' + b"q" * wide,
        b'{"question": "q", "answer": ["(a+)+$", "(", "a{99999999}"]}\n' * 5,
        b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode(),
        pickle.dumps(Bomb(canary)),
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }" + b" " * 60 + b"\n" + pickle.dumps([Bomb(canary)]),
        (2**62).to_bytes(8, "little") + b"{}",
        (100).to_bytes(8, "little") + b'{"a": {"dtype": "F32", "shape": [9999999999], "data_offsets": [0, 4]}}'.ljust(100),
        bytes(draw.randint(1, 50_000_000)),
    ]  # fmt: skip


def commands(draw: random.Random, file: Path, folder: Path) -> list[str]:
    """A command that reads the file."""
    out = ["--out", str(folder / "out")]
    return draw.choice(
        [
            ["chunk", str(file), "--tokenizer", "train:200", "--workers", "1", *out],
            ["chunk", str(file), "--tokenizer", "train:200", "--workers", "1", *out],
            ["show", str(file)],
            ["verify", str(file)],
            ["ls", str(file)],
            ["run", str(file), "--dry-run"],
            ["split", str(file), "--out", str(folder / "split")],
            ["score", str(file), str(file)],
            ["import", str(file), "-w", str(folder / "w")],
        ]
    )


def in_child(arguments: list[str], told: Path) -> int:
    """Run a command in a child process with limits. Returns its wait status; `told` receives what it printed."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = CliRunner().invoke(build(), arguments)
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        told.write_text(
            json.dumps(
                {"code": result.exit_code, "output": result.output, "grown": grown, "error": repr(result.exception)}
            )
        )
        os._exit(0)
    return os.waitpid(child, 0)[1]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_hostile_files_end_in_one_clear_error(tmp_path):
    draw, canary, number = random.Random(SEED), tmp_path / "canary", 0
    while number < FILES * rounds():
        for content in contents(draw, canary):
            folder = tmp_path / str(number)
            folder.mkdir()
            packer = draw.choice(list(PACKERS))
            data = PACKERS[packer](content)
            data = data[: draw.randint(1, len(data))] if draw.random() < 0.3 else data
            file = folder / f"file{draw.choice(SUFFIXES)}{packer}"
            file.write_bytes(data)
            arguments = commands(draw, file, folder)
            status = in_child(arguments, tmp_path / "told")
            assert os.waitstatus_to_exitcode(status) == 0, f"{arguments}: ended by {status}"
            found = json.loads((tmp_path / "told").read_text())
            what = f"{' '.join(arguments)} with {content[:60]!r}: {found['error']} {found['output'][-300:]}"
            assert found["code"] in CODES and "Traceback" not in found["output"], what
            assert found["grown"] < MEMORY_BYTES, what
            assert not canary.exists(), what
            file.unlink()
            number += 1
    outside = {path.name for path in tmp_path.iterdir()} - {*map(str, range(number)), "told"}
    assert outside == set()
    count("hostile files", number, seed=SEED)


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    chunk = ["--tokenizer", "train:200", "--out", str(tmp_path / "out")]
    for command in (
        *(["show", str(tmp_path / f"{name}.jsonl")] for name in ("fifo", "zero", "loop")),
        *(["chunk", str(tmp_path / f"{name}.jsonl"), *chunk] for name in ("zero", "loop")),  # a pipe may be read
    ):
        assert os.waitstatus_to_exitcode(in_child(command, tmp_path / "told")) == 0, command
        assert json.loads((tmp_path / "told").read_text())["code"] in CODES - {0}, command


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Import what the commands need before the fork, so that its memory is not counted."""
    build()
    np.zeros(1)

"""Hostile files through the command line: one clear error or a result; no traceback, no code executed, no hang, bounded memory."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

from realmctl.cli.app import build
from tests.faults.counting import count, rounds
from tests.faults.hostile.limited import outcome

SEED, FILES = 22, 8
"""FILES of a round."""
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}
SUFFIXES = [
    *(".jsonl", ".json", ".xml", ".txt", ".csv", ".tsv", ".yaml", ".npy", ".safetensors", ""),
    *(".html", ".md", ".eml", ".mbox"),
]


MAIL = b"From: a\nDate: b\nSubject: =?utf-8?q?c?=\n"


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
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
        + b" " * 60
        + b"\n"
        + pickle.dumps([Bomb(canary)]),
        (2**62).to_bytes(8, "little") + b"{}",
        (100).to_bytes(8, "little")
        + b'{"a": {"dtype": "F32", "shape": [9999999999], "data_offsets": [0, 4]}}'.ljust(100),
        bytes(draw.randint(1, 50_000_000)),
        b"<!DOCTYPE html><body>" + draw.choice([b"<ul><li>", b"<div>", b"<table><tr><td>", b"<h1><button>"]) * deep,
        b"---\ntitle: &a [x]\n"
        + b"".join(b"b%d: &b%d [*a, *a]\n" % (n, n) for n in range(50))
        + b"---\n"
        + b"> " * deep,
        MAIL + b"Content-Type: text/plain; " + b"a=b; " * wide + b"\n\nx\n",
        MAIL + b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(deep)),
        b"From a@b Thu Jan  1 00:00:00 1970\n" + MAIL + b"\n" + b"x" * wide,
    ]


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
            ["import", str(file), *out],
            ["import-realm", str(file), "-w", str(folder / "w")],
        ]
    )


def mutated(draw: random.Random, valid: list[bytes]) -> bytes:
    """A file that realmctl reads, with a part of it changed, left out, repeated, or taken from another one."""
    data, other = draw.choice(valid), draw.choice(valid)
    start, stop = sorted(draw.randrange(len(data)) for _ in range(2))
    middle = draw.choice(
        [
            draw.randbytes(draw.randint(1, 40)),
            b"",
            data[start:stop] * 3,
            other[: stop - start],
            b"\xff",
            b'"',
            b"[" * 5000,
        ]
    )
    return data[:start] + middle + data[stop if draw.random() < 0.5 else start :]


VALID = [
    '{"id": 1, "title": "Ada", "text": "Ada was born in June 1815. She met Charles."}\n' * 3,
    '{"question": "Where was Ada born?", "answer": ["London", "in London"]}\n' * 3,
    "id\ttext\ttitle\n1\tAda was born.\tAda\n2\tBen too.\tBen\n",
    "stages:\n  blocks: {stage: chunk, corpus: c.jsonl, tokenizer: 'train:200'}\n  spans: {stage: tag, blocks: blocks}\n",
    "<mediawiki><page><title>Ada</title><ns>0</ns><id>7</id><revision><id>8</id><text>''Ada'' was [[born]] {{in|London}}."
    "</text></revision></page></mediawiki>\n",
    '[{"question": "q", "answers": ["a"], "positive_ctxs": [{"title": "t", "text": "x"}]}]',
    '{"data": [{"title": "t", "paragraphs": [{"context": "c d", "qas": [{"id": "1", "question": "q", "answers": '
    '[{"text": "c", "answer_start": 0}]}]}]}]}',
    "0 Q0 d1 1 0.5 run\n0 Q0 d2 2 0.25 run\n",
    "<!DOCTYPE html><title>Ada</title><main><h1>Ada</h1><ul><li>born<li>in London</ul></main>",
    "---\ntitle: Ada\n---\n# Ada\n\n- born\n- in *London*\n",
    "From a@b Thu Jan  1 00:00:00 1970\nFrom: a\nDate: b\nSubject: c\nContent-Type: text/html\n\n<p>Ada was born.\n",
]


@pytest.fixture(scope="module")
def valid(chain) -> list[bytes]:
    """Files of every format that a command reads."""
    binary = [
        chain.blocks.file("tokens.npy"),
        chain.blocks.file("blocks.jsonl.zst"),
        chain.encoder.file("model.safetensors"),
    ]
    return [text.encode() for text in VALID] + [path.read_bytes() for path in binary]


@pytest.mark.timeout(7200)
def test_hostile_files_end_in_one_clear_error(valid, tmp_path):
    canary, problems = tmp_path / "canary", list[str]()
    for number in range(FILES * rounds()):
        draw, folder = random.Random(f"{SEED}-{number}"), tmp_path / str(number)
        folder.mkdir()
        packer = draw.choice(list(PACKERS))
        content = mutated(draw, valid) if number % 2 else draw.choice(contents(draw, canary))
        data = PACKERS[packer](content)
        data = data[: draw.randint(1, len(data))] if draw.random() < 0.3 else data
        file = folder / f"file{draw.choice(SUFFIXES)}{packer}"
        file.write_bytes(data)
        _, problem = outcome(commands(draw, file, folder), tmp_path / "told")
        problem = "executed" if canary.exists() else problem
        problems += [f"number {number}, {content[:60]!r}: {problem}"] if problem else []
        shutil.rmtree(folder)
    assert not problems and {path.name for path in tmp_path.iterdir()} == {"told"}, "\n".join(problems)
    count("hostile files", FILES * rounds(), seed=SEED)


def test_special_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    chunk = ["--tokenizer", "train:200", "--out", str(tmp_path / "out")]
    for command in (
        *(["show", str(tmp_path / f"{name}.jsonl")] for name in ("fifo", "zero", "loop")),
        *(["chunk", str(tmp_path / f"{name}.jsonl"), *chunk] for name in ("zero", "loop")),  # a pipe may be read
    ):
        code, problem = outcome(command, tmp_path / "told")
        assert code and not problem, problem


MERGES = "\n".join(f"a{n}: &a{n} {{!!merge <<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 20))


@pytest.mark.parametrize("front", [f"a0: &a0 {{x: 1}}\n{MERGES}", "title: !!bool zz"], ids=["10^19 entries", "a tag"])
def test_hostile_front_matter_of_one_page_ends_no_run(tmp_path, front):
    pytest.importorskip("selectolax")
    pytest.importorskip("markdown_it")
    (tmp_path / "a.md").write_text(f"---\n{front}\n---\nAda was born in June 1815. She met Charles.\n")
    chunk = ["chunk", str(tmp_path / "a.md"), "--tokenizer", "train:200", "--workers", "1"]
    assert outcome([*chunk, "--out", str(tmp_path / "out")], tmp_path / "told") == (0, "")


@pytest.fixture(autouse=True)
def loaded() -> None:
    """Import what the commands need before the fork, so that its memory is not counted."""
    build()
    np.zeros(1)

"""Every kind of file in every place where a file is named: each option and argument of each command that takes a path or an artifact.

What is there is missing, empty, a folder, a pipe, a socket, a device, a dangling link, a loop, unreadable bytes, a truncated archive.
The command ends with a result or one clear error: no traceback, no hang, bounded memory.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
import socket
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from realmctl.cli.available_stages import available_stages, other_commands
from realmctl.pipeline import flag_of, hints, roles
from realmctl.registry import object_at
from tests.faults.counting import count, rounds
from tests.faults.hostile.limited import outcome
from tests.fixtures.chain import Chain, finetune, pretrain
from tests.fixtures.objectives import write_labelled

SEED, TRIES = 39, 20
"""Tries of a round, drawn from all places and kinds. With ten rounds all are tried."""
OTHERS = (
    "ask",
    "export",
    "fill-mask",
    "gc",
    "import-realm",
    "import-table",
    "ls",
    "plan",
    "report",
    "run",
    "score",
    "show",
    "split",
    "verify",
)
SHORT = ["--steps", "1", "--batch-size", "2"]
BESIDE = {
    "ask": ["Who?"],
    "fill-mask": ["Ada was born in [MASK]."],
    "run": ["--dry-run"],
}
"""What other commands need beside the file."""
TRAINED = {
    "mlm-init",
    "ict-init",
    "spider-init",
    "condenser-init",
    "dpr-finetune",
    "pretrain",
    "lm-init",
    "lm-finetune",
}


def devices(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(path))  # a socket's path is short


KINDS: Mapping[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "empty": lambda path: path.touch(),
    "folder": lambda path: path.mkdir(),
    "folder of folders": lambda path: (path / "v1" / "v1").mkdir(parents=True),
    "socket": a_socket,
    "device": devices,
    "nothing": lambda path: path.symlink_to("/dev/null"),
    "dangling": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "below a file": lambda path: (path.parent / "file").touch() or path.symlink_to("file/x"),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 20),
    "UTF-16": lambda path: path.write_text("a line\n" * 20, encoding="utf-16"),
    "braces": lambda path: path.write_text('{"a": [' * 3000),
    "truncated": lambda path: path.write_bytes(gzip.compress(os.urandom(2000))[:900]),
    "no line break": lambda path: path.write_text("x" * 3_000_000),
}


@pytest.fixture(scope="module")
def workspace(chain: Chain, tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Path:
    """One of each artifact, by the names that commands look for, and files for what has no default."""
    folder = tmp_path_factory.mktemp("places")
    for name in ("blocks", "spans", "encoder", "retriever", "index", "embeddings"):
        shutil.copytree(chain.folder / name, folder / "w" / name, copy_function=os.link)
    pretrain(chain, steps=1, refresh="never").make(folder / "w" / "model")
    finetune(chain, steps=1).make(folder / "w" / "qa-model")
    shutil.copy(chain.questions, folder / "questions.jsonl")
    write_labelled(folder / "labelled.jsonl")
    (folder / "corpus.jsonl").write_text(
        '{"id": "a", "title": "Ada", "text": "Ada was born in June. She met Ben."}\n' * 3
    )
    (folder / "p.yaml").write_text("stages:\n  b: {stage: chunk, corpus: corpus.jsonl, tokenizer: 'train:200'}\n")
    return folder


def places(folder: Path) -> Iterator[tuple[list[str], str]]:
    """(a command with what it needs, the option or argument whose file is replaced: "" is an argument at the end)."""
    needed = {"questions": "questions.jsonl", "queries": "questions.jsonl", "passages": "labelled.jsonl"}
    for command, stage in available_stages().items():
        own = roles(stage)
        own_files = {name: folder / needed[name] for name in own if name in needed}
        base = [command, "-w", str(folder / "w"), "--out", str(folder / "out"), *(SHORT if command in TRAINED else [])]
        base += ["--bert", "scratch:L1-H16"] if command in ("mlm-init",) else []
        for name, role in own.items():
            takes = role.name in ("source", "reads") or Path in {
                hints(stage)[name],
                *typing.get_args(hints(stage)[name]),
            }
            if takes:
                given = [
                    part for other, file in own_files.items() if other != name for part in (flag_of(other), str(file))
                ]
                argument = role.name == "source" and role.positional
                given += (
                    [str(folder / "corpus.jsonl")] if "corpus" in own and command == "chunk" and not argument else []
                )
                yield [*base, *given], "" if argument else flag_of(name)
    for name in OTHERS:
        base = [name, *BESIDE.get(name, [])]
        command: Any = object_at(other_commands()[name])
        for field, role in roles(command).items():
            hint = hints(command)[field]
            if Path in {hint, *typing.get_args(hint)} or field in ("source", "tokenizer"):
                yield base, "" if role.positional else flag_of(field)


@pytest.mark.timeout(7200)
def test_every_kind_of_file_in_every_place(workspace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REALMCTL_WORKSPACE", str(workspace / "w"))
    every = [(command, option, kind) for command, option in places(workspace) for kind in KINDS]
    assert len(every) > 1000
    chosen = every if rounds() >= 10 else random.Random(SEED).sample(every, TRIES * rounds())
    problems = []
    for command, option, kind in chosen:
        path = tmp_path / "there"
        KINDS[kind](path)
        _, problem = outcome([*command, *([option] if option else []), str(path)], tmp_path / "told")
        problems += [f"{kind}: {problem}"] if problem else []
        for left in (path, tmp_path / "file", workspace / "out"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)
    assert not problems, "\n\n".join(problems)
    count("kinds of file in places where a file is named", len(chosen), seed=SEED)

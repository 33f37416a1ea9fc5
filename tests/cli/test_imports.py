"""Which heavy libraries commands import, in fresh processes over a small workspace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fixtures.chain import FINETUNING, make_chain

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "torch._dynamo", "transformers", "sentence_transformers", "spacy", "scipy", "sklearn"}
CODE = f"""
import sys
from realmctl.cli import app
for command in sys.argv[1:]:
    try:
        app.main(command.split())
    except SystemExit as end:
        assert not end.code, command
print("IMPORTED", *sorted({sorted(HEAVY)} & sys.modules.keys()))
"""
FINETUNE = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in FINETUNING.items())
COMMANDS: list[tuple[set[str], tuple[str, ...]]] = [
    (
        set(),
        (
            "chunk documents.jsonl --tokenizer artifacts/blocks/v1 --workers 1 --out new/blocks",
            "tag --tagger rules --workers 1 --out new/spans",
            *(f"search Velford --method {method}" for method in ("dense", "bm25", "hybrid")),
        ),
    ),
    (
        {"torch", "torch._dynamo"},  # `checkpoint` of the span head imports it
        (
            "pretrain --steps 1 --batch-size 2 --candidates 2 --out artifacts/model",
            f"finetune --questions questions.jsonl {FINETUNE} --out artifacts/qa-model",
        ),
    ),
    (
        {"torch"},
        (
            "embed --out new/embeddings",
            "ict-init --bert scratch:L1-H16 --steps 1 --batch-size 4 --out new/retriever",
            "pretrain --steps 1 --batch-size 2 --candidates 2 --out new/model",
            "eval-em --questions questions.jsonl --out new/answers",
            "ask Velford",
        ),
    ),
]
"""(libraries of HEAVY that commands may import, commands), each pair in a process, in an order in which each command finds its inputs."""


def test_commands_import_no_more_than_they_need(tmp_path: Path) -> None:
    make_chain(tmp_path / "artifacts").questions.rename(tmp_path / "questions.jsonl")
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "title": "Ada", "text": "Ada Lorn was born in Milton."}\n')
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    for allowed, commands in COMMANDS:
        process = [sys.executable, "-c", CODE, *commands]
        run = subprocess.run(process, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert run.returncode == 0, run.stderr
        assert set(run.stdout.rpartition("IMPORTED")[2].split()) == allowed, commands


ELSEWHERE = f"""
import importlib, os, pkgutil, sys
for absent in ("fcntl", "resource", "pwd", "grp", "posix_ipc"):
    sys.modules[absent] = None
for absent in ("sched_getaffinity", "getloadavg", "fork", "forkpty"):
    delattr(os, absent)
import realmctl, stages
names = [found.name for each in (realmctl, stages) for found in pkgutil.walk_packages(each.__path__, each.__name__ + ".")]
for name in names:
    if not name.startswith(("realmctl.extras", "realmctl.integrations.", "realmctl.lab", "realmctl.__main__")):
        importlib.import_module(name)
from realmctl.cli import app
try:
    app.main({COMMANDS[0][1][0].split()!r})
except SystemExit as end:
    assert not end.code
"""


def test_the_core_needs_no_module_that_linux_alone_has(tmp_path: Path) -> None:
    """It is imported without them, and cuts a document into blocks. What locks do is said to be missing."""
    make_chain(tmp_path / "artifacts")
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "title": "Ada", "text": "Ada Lorn was born in Milton."}\n')
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    process = [sys.executable, "-c", ELSEWHERE]
    run = subprocess.run(process, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert run.returncode == 0 and "cannot be locked" in run.stderr, run.stderr
    assert (tmp_path / "new/blocks/v1/manifest.json").is_file()

"""Which heavy libraries a command imports, each in a fresh process over a small workspace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fixtures.chain import FINETUNING, make_chain

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "transformers", "sentence_transformers", "spacy", "sklearn"}
CODE = f"""
import sys
from realmctl.cli import app
try:
    app.main(sys.argv[1:])
finally:
    print("IMPORTED", *sorted({sorted(HEAVY)} & sys.modules.keys()))
"""
FINETUNE = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in FINETUNING.items())
TORCH = {"torch"}
ALLOWED: dict[str, set[str]] = {
    "chunk documents.jsonl --tokenizer artifacts/blocks/v1 --workers 1 --out new/blocks": set(),
    "tag --tagger rules --workers 1 --out new/spans": set(),
    "search Velford --method dense": TORCH,
    "embed --out new/embeddings": TORCH,
    "ict-init --bert scratch:L1-H16 --steps 1 --batch-size 4 --out new/retriever": TORCH,
    "pretrain --steps 1 --batch-size 2 --candidates 2 --out artifacts/model": TORCH,
    f"finetune --questions questions.jsonl {FINETUNE} --out artifacts/qa-model": TORCH,
    "eval-em --questions questions.jsonl --out new/answers": TORCH,
    "ask Velford": TORCH,
}
"""{command: libraries of HEAVY that it may import}, in an order in which each finds its inputs."""


def test_commands_import_no_more_than_they_need(tmp_path: Path) -> None:
    make_chain(tmp_path / "artifacts").questions.rename(tmp_path / "questions.jsonl")
    (tmp_path / "documents.jsonl").write_text('{"id": "1", "title": "Ada", "text": "Ada Lorn was born in Milton."}\n')
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
    found = {}
    for command in ALLOWED:
        process = [sys.executable, "-c", CODE, *command.split()]
        run = subprocess.run(process, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert run.returncode == 0, run.stderr
        found[command] = set(run.stdout.rpartition("IMPORTED")[2].split())
    assert found == ALLOWED

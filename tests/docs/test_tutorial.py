"""The commands of the tutorial and of README run, one after the other, as they stand but at toy scale."""

from __future__ import annotations

import bz2
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact
from tests.conftest import Command
from tests.fixtures.language_models import make_t5

ROOT = Path(__file__).parents[2]
SMALL_BERT = "scratch:L1-H32-A2"
TOY = {
    "mlm-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "condenser-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "ict-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "spider-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "dpr-finetune": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "pretrain": {"--steps": "4", "--batch-size": "2", "--warmup": "1", "--refresh-every": "2", "--max-index-age": "4"},
    "lm-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "lm-finetune": {"--steps": "2", "--batch-size": "2", "--warmup": "1"},
    "finetune": {"--steps": "2", "--batch-size": "2", "--warmup": "1", "--retriever-beam": "8"},
}
"""Command -> the flags whose values are cut down, given or not."""


def at_toy_scale(line: str) -> str:
    """A documented command with fewer steps, smaller batches, a smaller world and a smaller BERT."""
    line = line.replace("--size demo", "--size small").replace("train:4000", "train:1500")
    line = re.sub(r"scratch:L2-H128-A4", SMALL_BERT, line)
    if not line.startswith("realmctl "):
        return line
    command = line.split()[1]
    for flag, value in TOY.get(command, {}).items():
        line = re.sub(rf" {flag} \S+", "", line) + f" {flag} {value}"
    if line == "realmctl chunk dump.xml.bz2":
        line += " --tokenizer train:1500 --max-wordpieces 32"
    if command == "mlm-init" and "--bert" not in line:
        line += f" --bert {SMALL_BERT}"
    return line


def commands_of(page: Path) -> Iterator[str]:
    """Every command of a page's bash blocks, in order."""
    for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            yield from (shlex.join(shlex.split(part, comments=True)) for part in line.split("&&"))


def run(line: str, realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run one command and return what it printed."""
    words = shlex.split(line)
    if words[0] == "export":
        monkeypatch.setenv(*words[1].split("=", 1))
        return ""
    if words[0] == "python":
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert words[0] == "realmctl", line
    code, out, err = realmctl(*words[1:])
    assert code == 0, f"{line}\n{err}"
    return out


def write_documents(source: Path, path: Path) -> list[dict[str, str]]:
    """Write documents of a world's encyclopedia as a user's own, without links. Returns them."""
    texts = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()][:60]
    documents = [{**each, "text": re.sub(r"<[^>]+>", "", each["text"])} for each in texts]
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    return documents


def make_bert(folder: Path, texts: list[str]) -> None:
    """Write a tiny BERT with a vocabulary of the texts' words."""
    from transformers import BertConfig, BertForMaskedLM

    from tests.fixtures.blocks import save_tokenizer, word_tokenizer

    tokenizer = word_tokenizer(texts)
    folder.mkdir()
    save_tokenizer(tokenizer, folder)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    BertForMaskedLM(config).save_pretrained(folder)


def test_the_tutorial_leads_to_models(realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Part 1 on a small world, part 2 on documents and questions taken from it."""
    Path("examples").symlink_to(ROOT / "examples")
    printed = {}
    for command in commands_of(ROOT / "docs" / "tutorial.md"):
        if command == "export REALMCTL_WORKSPACE=mine":
            documents = write_documents(Path("world/knowledge/AA/wiki_00"), Path("documents.jsonl"))
            make_bert(Path("bert"), [document["text"] for document in documents])
            for name in ("train.jsonl", "dev.jsonl"):
                Path(name).write_bytes(Path("world", name).read_bytes())
        printed[command] = run(at_toy_scale(command), realmctl, monkeypatch)
    compared = next(out for command, out in printed.items() if "compare_scores" in command)
    assert "without REALM" in compared and "with REALM" in compared
    assert Path("report.html").is_file()
    for workspace in ("artifacts", "mine"):
        assert open_artifact(f"{workspace}/scores").metrics["questions"] == 50


def passages_of(year: str) -> dict[str, list[dict[str, str]]]:
    """A positive passage and a hard negative, as in a training file of DPR."""
    texts = {"positive_ctxs": f"It was in {year}.", "hard_negative_ctxs": "It was in 1700."}
    return {field: [{"title": "", "text": text}] for field, text in texts.items()}


def test_the_stages_of_readme_run_as_they_stand(realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    people = [
        (f"{first} {last}", 1800 + 7 * n + m)
        for n, first in enumerate(["Ada", "Ben", "Eve"])
        for m, last in enumerate(["Lorn", "Mott", "Nash"])
    ]
    pages = "".join(
        f"<page><title>{name}</title><ns>0</ns><id>{year}</id><revision><id>1</id><text>'''{name}''' was born in [[Velford]] in {year}. "
        f"Later {name} lived in [[Ashby]] and worked there for [[Corvane]]. {name} retired in {year + 60}. "
        f"The winter of {year} was long, the river froze, and the mill stood still until the spring came. Nobody in the valley remembers it now, because all who saw it are gone.</text></revision></page>"
        for name, year in people
    )
    Path("dump.xml.bz2").write_bytes(bz2.compress(f"<mediawiki>{pages}</mediawiki>".encode()))
    Path("held-out.jsonl").write_text(
        json.dumps({"id": 1, "title": "Ida", "text": "Ida Nash met Ada Lorn in Velford in 1840."}) + "\n"
    )
    for name, some in (("train.jsonl", people[:6]), ("dev.jsonl", people[6:])):
        Path(name).write_text(
            "".join(
                json.dumps({"question": f"When was {who} born?", "answer": [str(year)]}) + "\n" for who, year in some
            )
        )
    passages = [{"question": f"When was {who} born?", **passages_of(str(year))} for who, year in people]
    Path("nq-train.json").write_text(json.dumps(passages))
    make_t5(Path("T5"))
    commands = [command for command in commands_of(ROOT / "README.md") if command.startswith("realmctl ")]
    assert len(commands) >= 14
    for command in commands:
        run(at_toy_scale(command), realmctl, monkeypatch)
    assert open_artifact("artifacts/utility").metrics["queries"] > 0
    assert open_artifact("artifacts/scores").metrics["questions"] == 3
    if (ROOT / "realmctl" / "api").is_dir():
        (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 6, done.stdout

"""The commands of README, the tutorial and the whole chain run, one after the other, as they stand but at toy scale."""

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
from typing import Any

import pytest

from realmctl.artifacts import open_artifact
from realmctl.pipeline.discovery import own_stages
from tests.conftest import Command
from tests.fixtures.encoders import make_bert, make_sentence_encoder
from tests.fixtures.language_models import make_babbler, make_t5

ROOT = Path(__file__).parents[2]
SMALL_BERT = "scratch:L1-H32-A2"
SENTENCE_ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
TOY = {
    "mlm-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "condenser-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "retromae-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "ict-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1", "--projection": "8"},
    "spider-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "dpr-finetune": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "pretrain": {"--steps": "4", "--batch-size": "2", "--warmup": "1", "--refresh-every": "2", "--max-index-age": "4"},
    "generate-queries": {"--sample": "20"},
    "lm-init": {"--steps": "2", "--batch-size": "4", "--warmup": "1"},
    "lm-finetune": {"--steps": "2", "--batch-size": "2", "--warmup": "1"},
    "index-docs": {"--encoder": "encoder"},
    "finetune": {"--steps": "2", "--batch-size": "2", "--warmup": "1", "--retriever-beam": "8"},
}
"""Command -> the flags whose values are cut down, given or not."""


def at_toy_scale(line: str) -> str:
    """A documented command with fewer steps, smaller batches, a smaller world and a smaller BERT."""
    line = line.replace("--size demo", "--size small").replace("train:4000", "train:1500")
    line = re.sub(r"scratch:L2-H128-A4", SMALL_BERT, line).replace(SENTENCE_ENCODER, "encoder")
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
        for line in block.replace("\\\n", " ").splitlines():
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


def program_of(page: Path) -> str:
    """The one Python program of a page."""
    (program,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return str(program)


def printed_by(program: str) -> list[str]:
    """The lines that a program prints when it runs in this folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_tutorial_leads_to_models(realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first three parts on documents and questions of a world, the last one on a world of its own."""
    page = ROOT / "docs" / "tutorial.md"
    Path("examples").symlink_to(ROOT / "examples")
    run("python examples/world/make_world.py --out other --seed 1 --size small", realmctl, monkeypatch)
    documents = write_documents(Path("other/knowledge/AA/wiki_00"), Path("documents.jsonl"))
    make_sentence_encoder(Path("encoder"), [document["text"] for document in documents])
    for name in ("train.jsonl", "dev.jsonl"):
        Path(name).write_bytes(Path("other", name).read_bytes())
    printed = {command: run(at_toy_scale(command), realmctl, monkeypatch) for command in commands_of(page)}
    compared = next(out for command, out in printed.items() if "compare_scores" in command)
    assert "without REALM" in compared and "with REALM" in compared
    assert Path("report.html").is_file() and len(printed_by(program_of(page))) == 5
    for workspace in ("artifacts", "mine"):
        assert open_artifact(f"{workspace}/scores").metrics["questions"] == 50


def passages_of(year: str) -> dict[str, list[dict[str, str]]]:
    """A positive passage and a hard negative, as in a training file of DPR."""
    texts = {"positive_ctxs": f"It was in {year}.", "hard_negative_ctxs": "It was in 1700."}
    return {field: [{"title": "", "text": text}] for field, text in texts.items()}


@pytest.fixture
def people(realmctl: Command) -> list[tuple[str, int]]:
    """Names and years. A dump, documents, questions and passages about them lie in the folder of `realmctl`."""
    people = [
        (f"{first} {last}", 1800 + 7 * n + m)
        for n, first in enumerate(["Ada", "Ben", "Eve"])
        for m, last in enumerate(["Lorn", "Mott", "Nash"])
    ]
    texts = {
        name: f"{name} was born in [[Velford]] in {year}. Later {name} lived in [[Ashby]] and worked there for [[Corvane]]. "
        f"{name} retired in {year + 60}. The winter of {year} was long, the river froze, and the mill stood still until the "
        "spring came. Nobody in the valley remembers it now, because all who saw it are gone."
        for name, year in people
    }
    pages = "".join(
        f"<page><title>{name}</title><ns>0</ns><id>{year}</id><revision><id>1</id><text>{texts[name]}</text></revision></page>"
        for name, year in people
    )
    Path("dump.xml.bz2").write_bytes(bz2.compress(f"<mediawiki>{pages}</mediawiki>".encode()))
    write_lines("documents.jsonl", [{"id": year, "title": name, "text": texts[name]} for name, year in people])
    write_lines("held-out.jsonl", [{"id": 1, "title": "Ida", "text": "Ida Nash met Ada Lorn in Velford in 1840."}])
    questions = [{"question": f"When was {who} born?", "answer": [str(year)]} for who, year in people]
    write_lines("train.jsonl", questions[:6])
    write_lines("dev.jsonl", questions[6:])
    passages = [{"question": f"When was {who} born?", **passages_of(str(year))} for who, year in people]
    Path("nq-train.json").write_text(json.dumps(passages))
    make_bert(Path("bert"), list(texts.values()))
    return people


def write_lines(path: str, records: list[dict[str, Any]]) -> None:
    """Write JSON lines."""
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(json.dumps(record) + "\n" for record in records))


def run_page(page: Path, realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the commands of a page that end by themselves, at toy scale. Returns them."""
    commands = [command for command in commands_of(page) if command.startswith("realmctl ")]
    elsewhere = ("realmctl serve", "realmctl demo")  # tests/extras/serve and the test of the wheel run them
    commands = [command for command in commands if not command.startswith(elsewhere)]
    for command in commands:
        run(at_toy_scale(command), realmctl, monkeypatch)
    return commands


@pytest.mark.usefixtures("people")
def test_the_commands_of_readme_run_as_they_stand(realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    documents = [json.loads(line) for line in Path("documents.jsonl").read_text().splitlines()]
    make_sentence_encoder(Path("encoder"), [document["text"] for document in documents])
    for document in documents:
        write_lines(f"docs/{document['id']}.jsonl", [document])
    assert len(run_page(ROOT / "README.md", realmctl, monkeypatch)) == 10


@pytest.mark.usefixtures("people")
def test_the_whole_chain_runs_as_it_stands(realmctl: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    make_t5(Path("T5"))
    make_babbler(Path("GPT-2"))
    commands = run_page(ROOT / "docs" / "how-to" / "whole-chain.md", realmctl, monkeypatch)
    assert {command.split()[1] for command in commands} >= set(own_stages()) - {
        "revise",
        "collect",
        "late-embed",
        "late-rank",
        "import",
        "judge",
        "rerank",
        "rerank-finetune",
        "late-finetune",
        "weigh-bm25",
        "cut-queries",
        "revela-init",
    }  # they stand on pages of their own
    assert open_artifact("artifacts/utility").metrics["queries"] > 0
    assert open_artifact("artifacts/scores").metrics["questions"] == 3

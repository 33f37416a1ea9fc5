"""Artifacts that were attacked by seed, through the commands that read them: a result or one clear error, and nothing else."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from realmctl.artifacts import Artifact
from realmctl.artifacts.records import Records, RecordWriter
from realmctl.cli.app import build
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.tokens.tokenizer import Tokenizer
from stages.eval_em import EvalEm
from tests.faults.counting import count, rounds, share
from tests.faults.hostile.attacks import attacked, write
from tests.faults.hostile.limited import outcome
from tests.fixtures.chain import finetune, pretrain

SEED, ARTIFACTS = 22, 8
"""ARTIFACTS of a round."""
SMALL = ["--steps", "1", "--batch-size", "2", "--device", "cpu"]
Made = dict[str, Artifact]


@pytest.fixture(scope="module")
def made(chain, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """One artifact of every kind that a command reads."""
    folder = tmp_path_factory.mktemp("made")
    model = pretrain(chain, steps=2).make(folder / "model")
    qa_model = finetune(chain, model, steps=2).make(folder / "qa-model")
    scores = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions).make(folder / "scores")
    own = {kind: getattr(chain, kind) for kind in ("blocks", "spans", "encoder", "retriever", "index")}
    return {**own, "model": model, "qa-model": qa_model, "scores": scores}


def readers(kind: str, path: str, made: Made, questions: str, out: str) -> list[list[str]]:
    """Commands that read an artifact of a kind."""
    of = {name: ["--" + name, str(each.path)] for name, each in made.items()} | {kind: ["--" + kind, path]}
    blocks, asked, to = of["blocks"], ["--questions", questions], ["--out", out]
    searched = [*of["retriever"], *of["index"], *blocks]
    return {
        "blocks": [
            ["embed", *blocks, *of["retriever"], *to],
            ["tag", *blocks, "--workers", "1", "--tagger", "rules", *to],
            ["mlm-init", *blocks, "--bert", "scratch:L1-H16", *SMALL, *to],
            ["ask", "Where was Ada born?", *of["qa-model"], *blocks],
            ["eval-em", *searched, *asked, *to],
        ],
        "spans": [
            ["build-datastore", *of["spans"], *of["encoder"], *to],
            ["pretrain", *of["spans"], *of["encoder"], *searched, "--refresh", "never", *SMALL, *to],
        ],
        "encoder": [
            ["ict-init", *of["encoder"], *blocks, "--projection", "8", *SMALL, *to],
            ["export", path, out],
            ["build-datastore", *of["spans"], *of["encoder"], *to],
        ],
        "retriever": [
            ["embed", *blocks, *of["retriever"], *to],
            ["eval-em", *searched, *asked, *to],
            ["export", path, out],
        ],
        "index": [["eval-em", *searched, *asked, *to]],
        "model": [
            ["finetune", *of["model"], *blocks, *asked, *SMALL, *to],
            ["fill-mask", "Ada was born in [MASK].", *of["model"], *blocks],
            ["export", path, out],
        ],
        "qa-model": [
            ["eval-em", "--qa-model", path, *blocks, *asked, *to],
            ["ask", "Where was Ada born?", "--qa-model", path, *blocks],
        ],
        "scores": [["report", path, "--out", out + ".html"], ["export", path, out]],
    }[kind]


@pytest.fixture(scope="module", autouse=True)
def whole_artifacts_are_read(made: Made, chain, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every command works on whole artifacts. What it imports is loaded before the forks, which count memory and time."""
    folder = tmp_path_factory.mktemp("whole")
    for kind, artifact in made.items():
        commands = readers(kind, str(artifact.path), made, str(chain.questions), str(folder / kind))
        for number, command in enumerate([["verify", str(artifact.path)], ["show", str(artifact.path)], *commands]):
            arguments = [part.replace(str(folder / kind), f"{folder / kind}-{number}") for part in command]
            result = CliRunner().invoke(build(arguments[0]), arguments)
            assert result.exit_code == 0, (arguments, result.output, result.exception)


@pytest.mark.timeout(7200)
def test_attacked_artifacts_end_in_a_result_or_one_clear_error(made, chain, tmp_path):
    kinds, refused, problems = sorted(made), 0, list[str]()
    for number in range(share(ARTIFACTS)):
        draw, folder = random.Random(f"{SEED}-{number}"), tmp_path / str(number)
        folder.mkdir()
        kind = kinds[number % len(kinds)]
        path = folder / "v1"
        attack = attacked(made[kind].path, path, draw)
        before = names(tmp_path)
        seen = [["verify", str(path)], ["show", str(path)], ["ls", str(folder)]]
        own = readers(kind, str(path), made, str(chain.questions), str(folder / "out"))
        for command in (draw.choice(seen), draw.choice(own)):
            code, problem = outcome(command, tmp_path / "told")
            refused += code != 0
            problems += [f"{attack} of {kind}, number {number}: {problem}"] if problem else []
        written = names(tmp_path) - before - {"told"}
        outside = [name for name in written if not name.startswith(f"{number}/out")]
        problems += [f"{attack} of {kind}, number {number} wrote {outside}"] if outside else []
        shutil.rmtree(folder)
    assert not problems and refused, "\n".join(problems)
    count("hostile artifacts", share(ARTIFACTS), seed=SEED, kinds=len(kinds))


def test_a_flipped_header_of_an_array_is_one_clear_error_of_ask(made, tmp_path):
    """`ask` showed a traceback. It reads blocks without hashing them again."""
    blocks, draw, problems = (
        Path(shutil.copytree(made["blocks"].path, tmp_path / "blocks")),
        random.Random(SEED),
        list[str](),
    )
    for path in sorted(blocks.glob("*.npy")):
        for _ in range(2 * rounds()):
            data, place = path.read_bytes(), draw.randrange(128)
            write(path, data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :])
            command = ["ask", "Where was Ada born?", "--qa-model", str(made["qa-model"].path), "--blocks", str(blocks)]
            problems += filter(None, outcome(command, tmp_path / "told")[1:])
            write(path, data)
    assert not problems, "\n".join(problems)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_more_records_than_blocks_are_one_clear_error_of_tag(made, tmp_path):
    """An IndexError: the arrays end before the records."""
    blocks, frames = Path(shutil.copytree(made["blocks"].path, tmp_path / "v1")), "blocks.jsonl.zst"
    records = list(Records(blocks / frames))
    for path in blocks.glob(frames + "*"):
        path.unlink()
    with RecordWriter(blocks / frames) as writer:
        for record in [*records, records[-1]]:
            writer.write(record)
    with pytest.raises(InputError, match=f"{len(records) + 1} .*{len(records)} "):
        list(Corpus(Artifact(blocks, made["blocks"].manifest)))


def test_a_damaged_tokenizer_is_one_clear_error(made, tmp_path):
    """The package raised a plain Exception, which ended `build-datastore` in a traceback."""
    spans = Path(shutil.copytree(made["spans"].path, tmp_path / "v1"))
    path = next(spans.rglob("tokenizer.json"))
    write(path, path.read_bytes()[:-10])
    with pytest.raises(InputError, match="tokenizer"):
        Tokenizer.load(spans)

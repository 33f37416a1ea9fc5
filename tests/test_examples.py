"""The shell scripts run end to end at toy scale through their own size variables, as a user would run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify
from tests.fixtures import families
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
TOY = {
    "BERT": "scratch:L1-H32-A2",
    "TOKENIZER": "train:1500",
    "TAGGER": "auto",
    "MAX_WORDPIECES": "64",
    "ICT_STEPS": "2",
    "ICT_BATCH": "8",
    "INDEX": "exact",
    "STEPS": "4",
    "BATCH": "2",
    "CANDIDATES": "3",
    "REFRESH": "inline",
    "REFRESH_EVERY": "2",
    "MAX_INDEX_AGE": "4",
    "EPOCHS": "0.05",
    "QA_BATCH": "2",
    "RETRIEVER_BEAM": "8",
    "READER_BEAM": "2",
    "HEAD_STEPS": "2",
    "HEAD_BATCH": "4",
    "MLM_STEPS": "2",
    "MLM_BATCH": "4",
    "QA_STEPS": "2",
    "WARMUP": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "REALMCTL_WORKSPACE": "elsewhere",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    command = [
        sys.executable,
        str(EXAMPLES / "world/make_world.py"),
        "--out",
        str(folder),
        "--seed",
        "0",
        "--size",
        "small",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def run_script(name: str, arguments: list[str], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **TOY, **more}
    done = subprocess.run(
        ["bash", str(EXAMPLES / name), *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def questions_of(world: Path) -> dict[str, str]:
    return {"TRAIN": str(world / "train.jsonl"), "DEV": str(world / "dev.jsonl")}


@pytest.mark.slow
@pytest.mark.parametrize("script", ["realm_wiki.sh", "realm_ccnews.sh", "orqa.sh"])
def test_reproduction_script(script: str, world: Path, tmp_path: Path) -> None:
    corpora = [str(world / "knowledge"), *([str(world / "sentences")] if script == "realm_ccnews.sh" else [])]
    run_script(script, [*corpora, "w"], tmp_path, **questions_of(world))
    scores = open_artifact(tmp_path / "w/scores")
    verify(scores)
    assert scores.metrics["questions"] == 50
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_crosslingual_script(tmp_path: Path) -> None:
    """Sentences in Korean, knowledge in German, a tiny XLM-R."""
    rivers = {
        "서울": ("한강", "Seoul", "Han"),
        "부산": ("낙동강", "Busan", "Nakdong"),
        "대구": ("금호강", "Daegu", "Geumho"),
    }
    corpora = {"ko": [], "de": []}
    for number, (city, (river, name, stream)) in enumerate(rivers.items(), 1):
        corpora["ko"].append(f"{city}은 {river}을 끼고 있다. {city}은 199{number}년에 시가 되었다.")
        corpora["de"].append(f"{name} liegt am Fluss {stream}. {name} wurde am 3. Mai 199{number} z. B. Stadt.")
    for language, texts in corpora.items():
        titles = list(rivers) if language == "ko" else [name for _, name, _ in rivers.values()]
        lines = [
            json.dumps({"id": title, "title": title, "text": text}) for title, text in zip(titles, texts, strict=True)
        ]
        (tmp_path / f"{language}.jsonl").write_text("\n".join(lines))
    asked = [
        {"question": f"{city}은 어느 해에 시가 되었나?", "answer": [f"199{n}"]} for n, city in enumerate(rivers, 1)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    encoder = families.write("xlm-roberta", tmp_path / "xlm-r", max_position_embeddings=350)
    sizes = {
        "BERT": str(encoder),
        "RETRIEVER": "ict",
        "TOKENIZER": str(encoder),
        "TRAIN": "questions.jsonl",
        "MAX_WORDPIECES": "96",
    }
    run_script("crosslingual.sh", ["ko.jsonl", "ko", "de.jsonl", "de", "w"], tmp_path, **sizes)
    made = {name: open_artifact(tmp_path / "w" / name) for name in ("sentences", "blocks", "spans", "scores")}
    assert [made[name].metrics["language"] for name in ("sentences", "blocks")] == ["ko", "de"]
    assert made["spans"].metrics["spans_DATE"] == 3 and made["scores"].metrics["questions"] == 3


@pytest.mark.slow
def test_enwiki_script(world: Path, tmp_path: Path) -> None:
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps(squad_of(world)))
    encoder = tiny_encoder(tmp_path / "bert", world)
    sizes = {
        "ENCODER": str(encoder),
        "SEEDS": "1",
        "FIRST_SEED": "4",
        "SIZE": "medium",
        "VARS": "projection=16 width=32 max_wordpieces=64 practice_steps=2 window=16 steps=2 further=2 further_batch=4 batch=2 candidates=3 refresh=inline "
        "refresh_every=1 qa_steps=2 reader_beam=2 measured=4 warmup=1",
    }
    arguments = ["w", str(world / "knowledge"), str(squad)]
    run_script("enwiki.sh", arguments, tmp_path, **sizes)
    page = (tmp_path / "w/report.md").read_text(encoding="utf-8")
    assert re.search(r"Seeds: 4\. Questions: .*squad.*8", page) and "SEEDS=1 FIRST_SEED=4 SPLIT=test" in page
    tuned = re.search(
        r"Questions by article: train (\d), dev (\d), .*\n[^.]*Fine-tuning on the (\d) questions of train-dev.jsonl: (.*)",
        page,
        re.S,
    )
    assert tuned and int(tuned[1]) + int(tuned[2]) == int(tuned[3])
    assert tuned[4].startswith("2 steps of 8 questions, 6 of them cloze questions, 2 blocks read")
    unmeasured = [line for line in page.splitlines() if "not measured" in line or "| - |" in line]
    assert all(
        "positive block" in line or line.startswith(("| start |", "| REALM |", "| closed book")) for line in unmeasured
    ), unmeasured
    scores = open_artifact(tmp_path / "w/seed-4/realm-scores").metrics
    assert re.search(rf"\| REALM \| {scores['em']:.3f} \| 0\.\d\d\d \| {scores['recall@1']:.3f} \|", page)
    assert open_artifact(tmp_path / "w/seed-4/encoder").settings["dropout"] == 0
    command = [sys.executable, str(EXAMPLES / "enwiki/sides.py"), "w", "--first-seed", "4"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found[2].startswith("| blocks and questions |") and len(found) == 6
    wrong = {**os.environ, **TOY, **sizes, "VARS": "stepz=2"}
    refused = subprocess.run(
        ["bash", str(EXAMPLES / "enwiki.sh"), *arguments], cwd=tmp_path, env=wrong, capture_output=True, text=True
    )
    assert refused.returncode == 2 and "no pipeline" in refused.stderr and "stepz" in refused.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_revise_script(tmp_path: Path) -> None:
    """One seed at toy scale; then nothing is left to do, and the page is the same."""
    pipeline = tmp_path / "toy.yaml"
    pipeline.write_text(at_toy_scale((EXAMPLES / "revise.yaml").read_text(encoding="utf-8")), encoding="utf-8")
    sizes = {"PIPELINE": str(pipeline), "SIZE": "small", "SEEDS": "1", "JOBS": "1", "SHARES": "0.05", "STEPS": "2"}
    run_script("revise.sh", ["runs"], tmp_path, **sizes)
    page = (tmp_path / "runs/report.md").read_text(encoding="utf-8")
    second = run_script("revise.sh", ["runs"], tmp_path, **sizes)
    assert "pretrain" not in second.stderr
    assert (tmp_path / "runs/report.md").read_text(encoding="utf-8") == page
    result = json.loads((tmp_path / "runs/results/seed-0.json").read_text())
    found = result["shares"]["0.05"]
    assert result["weights_unchanged"] and found["same_blocks"] and found["back"]["same_blocks"]
    assert found["back"]["same_answers"] == 1 and found["revision"]["taken_over"] > found["revision"]["embedded"] > 0


TOY_GRID = """
rates: ["1e-4", "1e-3"]
first_rates: ["1e-4", "1e-3"]
seeds: {dev: [3], test: [4, 5]}
practice: {size: small, seed: 9}
worlds:
  world: {size: small}
  strangers-25: {size: small, off-corpus-share: 0.25}
  strangers-50: {size: small, off-corpus-share: 0.5}
  restated: {size: small, restated-share: 0.5}
"""
TOY_STEPS = (
    "practice_steps",
    "ict_steps",
    "long_ict_steps",
    "steps",
    "refresh",
    "refresh_3x",
    "refresh_10x",
    "qa_steps",
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", ["starts", "table1"])
def test_starts_script(part: str, tmp_path: Path) -> None:
    """Every measurement of a part at toy scale; then nothing is made in another folder, and the page is the same."""
    counts = {
        "persons": 30,
        "companies": 6,
        "cities": 6,
        "countries": 3,
        "first-names": 8,
        "last-names": 12,
        "other-names": 6,
    }
    counts |= {
        "train-questions": 130,
        "seen-questions": 10,
        "dev-questions": 10,
        "test-questions": 10,
        "evaluation-facts": 10,
        "parallel-worlds": 1,
        "blocks-per-person": 1,
    }
    sizes = {
        "PART": part,
        "SEEDS": "1",
        "FIRST_SEED": "0",
        "RESULTS": "runs.jsonl",
        "PAGE": "page.md",
        "WORLD": " ".join(f"--{n} {c}" for n, c in counts.items()),
        "VARS": "practice_steps=2 contrast=2 condenser=2 realm=2 few=2 all=2 tau=1",
    }
    run_script("starts.sh", ["runs"], tmp_path, **sizes)
    lines = (tmp_path / "runs.jsonl").read_text()
    page = (tmp_path / "page.md").read_text()
    assert len(lines.splitlines()) == {"starts": 43, "table1": 11}[part] and "Complete seeds: 0." in page
    run_script("starts.sh", ["other"], tmp_path, **sizes)
    assert (tmp_path / "runs.jsonl").read_text() == lines and (tmp_path / "page.md").read_text() == page
    assert not (tmp_path / "other/artifacts").exists()


@pytest.mark.slow
def test_starts_text_script(world: Path, tmp_path: Path) -> None:
    """Every start from a tiny encoder with REALM and fine-tuning, on articles of four paragraphs of which two share a name."""
    filler = "the people of the island went to the market and to the harbour in the rain and in the sun " * 3
    articles = [
        {
            "title": f"Island {n}",
            "paragraphs": [
                {
                    "context": f"{filler}. {f'The lighthouse of Keeper{n} stood there' if part % 2 else 'The harbour was old'}.",
                    "qas": [
                        {
                            "id": f"{n}-{part}",
                            "question": f"Who kept island {n}?",
                            "answers": [{"text": f"Keeper{n}", "answer_start": 0}],
                        }
                    ],
                }
                for part in range(4)
            ],
        }
        for n in range(8)
    ]
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps({"data": articles}))
    steps = ("practice_steps", "contrast", "condenser", "realm", "few", "all", "measured")
    sizes = {"SEEDS": "1", "RESULTS": "runs.jsonl", "PAGE": "page.md"}
    sizes["VARS"] = " ".join(f"{name}=1" for name in steps) + " projection=8 skip_from=0"
    encoder = tiny_encoder(tmp_path / "bert", world)
    dump = world / "knowledge/AA/wiki_00"
    run_script("starts_text.sh", ["w", str(dump), str(squad)], tmp_path, ENCODER=str(encoder), **sizes)
    in_dump = len(dump.read_text(encoding="utf-8").splitlines())
    assert open_artifact(tmp_path / "w/artifacts/blocks").metrics["documents"] == in_dump + len(articles)
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    asked = {line["output"].partition(".")[2]: line["values"].get("questions") for line in lines}
    assert len(lines) == 7 * 7 + 3 and asked["start"] == asked["realm"] == 32 and asked["questions-128"] == 8
    page = (tmp_path / "page.md").read_text()
    assert re.search(r"\| mean pooling, projection by PCA +\| +[.\d]", page)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ablation_script(tmp_path: Path) -> None:
    """Some arms at toy scale; a lost line and lost artifacts are made again; then nothing is left to do, and the page is the same."""
    (tmp_path / "grid.yaml").write_text(TOY_GRID)
    arms = ["realm", "refresh-never", "bm25", "closed-book", "strangers-25", "same-corpus", "realm-joint"]
    sizes = {
        "GRID": "grid.yaml",
        "ARMS": " ".join(arms),
        "VARS": " ".join(f"{name}=2" for name in TOY_STEPS),
        "JOBS": "2",
    }
    first = run_script("ablation.sh", ["runs"], tmp_path, **sizes)
    results, page = tmp_path / "runs/ablation/runs.jsonl", tmp_path / "runs/ablation/report.md"
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    keys = [(line["split"], line["arm"], line["rate"], line["seed"]) for line in lines]
    dev = {("dev", arm, rate, 3) for arm in arms[:-1] for rate in ("1e-3", "1e-4")}  # the joint arm is not tuned
    assert len(set(keys)) == len(keys) == len(dev) + 2 * len(arms) and dev <= set(keys)
    em = {(line["rate"], line["seed"]): line["scores"]["em"] for line in lines if line["arm"] == "realm"}
    best = max(("1e-3", "1e-4"), key=lambda rate: (em[rate, 3], -float(rate)))
    assert {key for key in keys if key[:2] == ("test", "realm")} == {("test", "realm", best, seed) for seed in (4, 5)}
    scores = [open_artifact(folder) for folder in (tmp_path / "runs/seed-4/artifacts/realm-scores").glob("v*")]
    assert em[best, 4] in [round(each.metrics["em"], 5) for each in scores]

    results.write_text("".join(results.read_text().splitlines(keepends=True)[:-1]))
    shutil.rmtree(tmp_path / "runs/seed-5")
    again = run_script("ablation.sh", ["runs"], tmp_path, **sizes)
    assert again.stderr.count("=== ") == 1
    known = {key: line["settings"] for key, line in zip(keys, lines, strict=True)}
    redone = [json.loads(line) for line in results.read_text().splitlines()]
    assert {(line["split"], line["arm"], line["rate"], line["seed"]): line["settings"] for line in redone} == known
    before = page.read_bytes()
    third = run_script("ablation.sh", ["runs"], tmp_path, **sizes)
    assert "=== " not in third.stderr and page.read_bytes() == before and third.stdout == again.stdout
    assert first.stdout.splitlines()[0] == again.stdout.splitlines()[0]
    changed = run_script(
        "ablation.sh", ["runs"], tmp_path, **{**sizes, "ARMS": "bm25", "VARS": sizes["VARS"] + " qa_steps=3"}
    )
    assert changed.stderr.count("=== ") == 4 and "pretrain" not in changed.stderr  # its two dev and two test runs


def at_toy_scale(pipeline: str) -> str:
    """The same arms with every count of steps and sentences cut to two."""
    return re.sub(r"((?:steps|refresh\w*|warmup|batch-size|checkpoint-every): *)\d+", r"\g<1>2", pipeline)


def squad_of(world: Path) -> dict[str, object]:
    """A SQuAD-layout file of eight articles, each a sentence with a question on its last word."""
    articles = []
    for number in range(8):
        context = f"The lighthouse of island {number} was painted in the year {1850 + number}."
        answer = {"text": str(1850 + number), "answer_start": context.index(str(1850 + number))}
        question = {
            "id": f"q{number}",
            "question": f"When was the lighthouse of island {number} painted?",
            "answers": [answer],
        }
        articles.append({"title": f"Island {number}", "paragraphs": [{"context": context, "qas": [question]}]})
    return {"version": "1.1", "data": articles}


def tiny_encoder(folder: Path, world: Path) -> Path:
    """A BERT folder with a vocabulary of the world's words, as a user would bring one."""
    from transformers import BertConfig, BertForMaskedLM

    from tests.fixtures.blocks import save_tokenizer, word_tokenizer

    texts = [json.loads(line)["text"] for line in (world / "knowledge/AA/wiki_00").read_text().splitlines()]
    tokenizer = word_tokenizer(texts)
    folder.mkdir()
    save_tokenizer(tokenizer, folder)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `realmctl` from a freshly built wheel, first on PATH and PYTHONPATH by `shipped`."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder / "site"),
        str(file),
    ]
    subprocess.run(install, check=True, capture_output=True)
    (folder / "bin").mkdir()
    (folder / "bin/realmctl").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m realmctl "$@"\n')
    (folder / "bin/realmctl").chmod(0o755)
    return folder


def shipped(wheel: Path) -> dict[str, str]:
    path = os.pathsep.join([str(wheel / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path, "PYTHONPATH": str(wheel / "site")}


def test_wheel_holds_exactly_the_two_packages(wheel: Path) -> None:
    names = {path.name for path in (wheel / "site").iterdir() if not path.name.endswith(".dist-info")}
    assert names - {"bin"} == {"realmctl", "stages"}
    assert (wheel / "site/realmctl/py.typed").exists()
    where = "import realmctl, stages; print(realmctl.__file__, stages.__file__)"
    environment = {**os.environ, **shipped(wheel)}
    out = subprocess.run(
        [sys.executable, "-P", "-c", where], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert out.count(str(wheel / "site")) == 2


@pytest.mark.slow
def test_wheel_runs_a_whole_script_in_an_empty_folder(wheel: Path, world: Path, tmp_path: Path) -> None:
    run_script("orqa.sh", [str(world / "knowledge"), "w"], tmp_path, **questions_of(world), **shipped(wheel))
    assert open_artifact(tmp_path / "w/scores").metrics["questions"] == 50


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_demo_across_a_kill_and_twice(wheel: Path, tmp_path: Path) -> None:
    """The wheel alone runs the demo; pretrain is killed on the way, the same command goes on; then there is nothing to do."""
    command = ["realmctl", "demo"]
    environment = {**os.environ, **shipped(wheel)}
    checkpoints = tmp_path / "demo/artifacts/model/v1.partial/.scratch/checkpoints"
    first = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
    wait_until(lambda: first.poll() is not None or list(checkpoints.glob("step-*[0-9]")), 1800)
    os.killpg(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    second = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert second.returncode == 0, second.stderr[-3000:]
    assert "continuing after step" in second.stderr
    artifacts = tmp_path / "demo/artifacts"
    before = {path: path.stat().st_mtime_ns for path in artifacts.glob("*/v*/manifest.json")}
    third = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert third.stdout == second.stdout and third.stderr.count("nothing to do") == len(before)
    assert before == {path: path.stat().st_mtime_ns for path in artifacts.glob("*/v*/manifest.json")}
    assert (
        open_artifact(artifacts / "scores").metrics["em"]
        > open_artifact(artifacts / "start-scores").metrics["em"] + 0.05
    )

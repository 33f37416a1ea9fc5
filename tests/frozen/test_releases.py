"""Artifacts that a release wrote are opened, verified and used by the code of today, with the answers of then."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, verify
from realmctl.pipeline.discovery import own_stages
from tests.frozen.frozen import realmctl
from tests.frozen.releases import ANSWERED, FILES, PASSAGES, QUESTIONS, answered

RELEASES = sorted(FILES.glob("*.zip"))
NOT_MADE = {"collection"}
"""Kinds of stages that need data of others: test collections by name."""
STEP = ("--steps", 1, "--batch-size", 2, "--checkpoint-every", 1)
USES = {
    "blocks": ("eval-cloze", "--blocks", "chunk", "--method", "bm25"),
    "spans and index": (
        *("pretrain", "--blocks", "blocks", "--spans", "spans", "--retriever", "retriever", "--index", "index"),
        *("--encoder", "encoder", "--candidates", 3, "--refresh", "inline", *STEP),
    ),
    "encoder": ("ict-init", "--blocks", "blocks", "--encoder", "condenser-init", "--projection", 8, *STEP),
    "retriever": ("embed", "--blocks", "blocks", "--retriever", "import"),
    "embeddings": ("build-index", "--embeddings", "embeddings", "--type", "exact"),
    "hnsw": (
        *("rank", "--blocks", "blocks", "--retriever", "retriever", "--index", "build-index"),
        *("--queries", QUESTIONS, "--top", 3),
    ),
    "model": (
        *("finetune", "--model", "pretrain", "--blocks", "blocks", "--questions", QUESTIONS, *STEP),
        *("--retriever-beam", 5, "--reader-beam", 2, "--reader-length", 40),
    ),
    "qa-model": ("eval-em", "--qa-model", "finetune", "--blocks", "blocks", "--questions", QUESTIONS),
    "qa-model of a language model": (
        "eval-em",
        "--qa-model",
        "lm-finetune",
        "--blocks",
        "blocks",
        "--questions",
        QUESTIONS,
    ),
    "ranking": ("eval-run", "--ranking", "rank", "--blocks", "blocks", "--questions", QUESTIONS),
    "ranking-scores": (
        *("eval-run", "--ranking", "rank", "--blocks", "blocks", "--questions", QUESTIONS),
        *("--baseline", "eval-run"),
    ),
    "scores": (
        *("eval-em", "--blocks", "blocks", "--retriever", "retriever", "--index", "index", "--hits", 5),
        *("--questions", QUESTIONS, "--baseline", "eval-em"),
    ),
    "cross-encoder": ("rerank", "--ranking", "rank", "--blocks", "blocks", "--model", "rerank-finetune", "--depth", 2),
    "queries": (
        *("rank", "--blocks", "blocks", "--retriever", "retriever", "--index", "index"),
        *("--queries", "generate-queries/v1/queries.jsonl", "--top", 3),
    ),
    "negatives": ("dpr-finetune", "--retriever", "dpr-finetune", "--passages", "mine-negatives/v1/train.jsonl", *STEP),
    "judgements": ("eval-run", "--ranking", "rank", "--blocks", "blocks", "--qrels", "judge/v1"),
    "cloze-recall": ("compare", "eval-cloze"),
    "utility": ("compare", "eval-utility"),
    "language-model": (
        "lm-finetune",
        "--language-model",
        "lm-init",
        "--questions",
        QUESTIONS,
        "--answer-length",
        12,
        *STEP,
    ),
    "datastore": ("eval-knn-lm", "--datastore", "build-datastore", "--encoder", "encoder", "--spans", "spans"),
    "knn-utility": ("compare", "eval-knn-lm"),
    "bm25-weight": ("compare", "weigh-bm25"),
    "late-encoder": ("late-embed", "--blocks", "blocks", "--encoder", "late-finetune/v1"),
    "late-index": ("late-rank", "--blocks", "blocks", "--late-index", "late-embed", "--queries", QUESTIONS),
}
"""{what is read: a command that reads it}. Names without a dash that the release holds are its artifacts."""


@pytest.fixture(scope="module", params=RELEASES, ids=lambda path: path.stem)
def work(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    with zipfile.ZipFile(request.param) as packed:
        packed.extractall(folder)
    return folder


def artifacts(work: Path) -> dict[str, Path]:
    """{series: its first version}."""
    return {path.parents[1].name: path.parent for path in sorted(work.glob("*/v1/manifest.json"))}


def test_every_artifact_opens_and_is_whole(work):
    for path in artifacts(work).values():
        verify(open_artifact(path))


def test_every_kind_is_there():
    with zipfile.ZipFile(RELEASES[-1]) as packed:
        names = [name for name in packed.namelist() if name.endswith("/v1/manifest.json")]
        kinds = {json.loads(packed.read(name))["kind"] for name in names}
    made = {stage.makes for stage in own_stages().values()}
    assert kinds == made - NOT_MADE, "Write a file of the next release: python -m tests.frozen.releases"


def near(then: object, now: object) -> None:
    """Fail where two answers differ by more than another processor's rounding."""
    if isinstance(then, dict):
        assert isinstance(now, dict)
        for key, value in then.items():
            near(value, now[key])
    elif isinstance(then, list):
        assert isinstance(now, list) and len(now) == len(then)
        for one, other in zip(then, now, strict=True):
            near(one, other)
    elif isinstance(then, float):
        assert now == pytest.approx(then, rel=2e-3, abs=1e-6)
    else:
        assert now == then


def test_it_finds_and_answers_what_the_release_did(work):
    near(json.loads((work / ANSWERED).read_text(encoding="utf-8")), answered(work))


@pytest.mark.parametrize("what", USES)
def test_it_is_read(what, work, tmp_path):
    command, *given = USES[what]
    there = {*artifacts(work), QUESTIONS, PASSAGES}
    options = [work / str(option) if str(option).partition("/")[0] in there else option for option in given]
    if command == "compare":  # with a copy of itself
        shutil.copytree(options[0], tmp_path / "copy")
        assert json.loads(realmctl(command, *options, tmp_path / "copy", "--json"))
        return
    told = realmctl(command, *options, "--out", tmp_path / "made", "--quiet", "--json")
    assert open_artifact(tmp_path / "made").kind == json.loads(told)["kind"]


def test_a_file_of_a_release_is_not_written_over(tmp_path, monkeypatch):
    from tests.frozen import releases

    monkeypatch.setattr(releases, "FILES", tmp_path)
    there = tmp_path / f"{releases.__version__}.zip"
    there.write_bytes(b"kept")
    assert releases.main() == 0 and there.read_bytes() == b"kept"

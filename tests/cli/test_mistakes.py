"""Mistakes of users, through the real command: one paragraph, the right exit code, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact
from stages.eval_em import EvalEm
from tests.fixtures.chain import baseline, finetune, pretrain
from tests.fixtures.messages import one_paragraph


@pytest.fixture(scope="module")
def scores(chain, tmp_path_factory) -> Artifact:
    folder = tmp_path_factory.mktemp("scores")
    qa_model = baseline(chain, "none", steps=1, reader_length=40).make(folder / "qa-model")
    return EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions).make(folder / "scores")


@pytest.fixture(scope="module")
def model(chain, tmp_path_factory) -> Artifact:
    return pretrain(chain, steps=1, refresh="never").make(tmp_path_factory.mktemp("model") / "model")


def test_ask_needs_a_fine_tuned_model(realmctl, chain, model):
    code, _, err = realmctl("ask", "Who?", "--qa-model", model.path, "--blocks", chain.blocks.path)
    assert code == 4 and f"--qa-model {model.path} is of kind model, but qa-model is needed" in one_paragraph(err)
    qa_model = scores_model(chain, model)
    code, _, err = realmctl("ask", "Who?", "--qa-model", qa_model, "--blocks", chain.spans.path)
    assert code == 4 and f"--blocks {chain.spans.path} is of kind spans, but blocks is needed" in one_paragraph(err)


def scores_model(chain, model) -> Path:
    return baseline(chain, "none", steps=1, reader_length=40).make(model.path.parent.parent / "qa-model").path


@pytest.mark.parametrize("command", ["ask", "fill-mask"])
def test_a_text_that_is_no_unicode(realmctl, command):
    code, _, err = realmctl(command, "Who\udce9?")
    assert code == 2 and r"'Who\udce9?' is not valid text" in one_paragraph(err)


def test_a_device_is_checked_though_nothing_is_left_to_do(realmctl, chain):
    inputs = ("--blocks", chain.blocks.path, "--retriever", chain.retriever.path, "-o", chain.folder / "embeddings")
    assert realmctl("embed", *inputs)[0] == 0
    code, _, err = realmctl("embed", *inputs, "--device", "gpu")
    assert code == 2 and "--device 'gpu' is not a device" in one_paragraph(err)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--seed", 2**70, "is not a whole number of at most 63 bits"),
        ("--seed", -1, "--seed -1"),
        ("--projection", 1_000_000_000, "--projection"),
        ("--projection", 0, "--projection"),
    ],
)
def test_numbers_that_cannot_work(realmctl, chain, option, value, message):
    code, _, err = realmctl("ict-init", "-q", "--blocks", chain.blocks.path, "--bert", "scratch:L1-H16", option, value)
    assert code == 2 and message in one_paragraph(err)


def test_a_report_is_a_file(realmctl, scores):
    Path("folder").mkdir()
    code, _, err = realmctl("report", scores.path, "--out", "folder")
    assert code == 2 and "--out folder is a folder. Name an HTML file" in one_paragraph(err)
    code, _, err = realmctl("report", scores.path, "--out", "folder/x.html", "--blocks", "folder")
    assert code == 3 and one_paragraph(err)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("predictions.jsonl", '"', "#"),
        ("predictions.jsonl", "question", "questiom"),
        ("predictions.jsonl", "prediction", "predictiom"),
        ("evidence.jsonl", '"', "#"),
        ("evidence.jsonl", "answers", "answerz"),
        ("evidence.jsonl", '"read": 0', '"read": {'),
    ],
)
def test_damaged_scores_are_refused_by_a_report(realmctl, scores, name, old, new):
    path = scores.file(name)
    before, mode = path.read_text(), path.stat().st_mode
    assert old in before
    path.chmod(0o644)
    try:
        path.write_text(before.replace(old, new, 1))
        code, _, err = realmctl("report", scores.path, "-q")
        assert code == 3 and f"{name} is damaged" in one_paragraph(err) and not Path("report.html").exists()
    finally:
        path.write_text(before)
        path.chmod(mode)


def test_pipeline_numbers_reach_the_stage_as_written(realmctl, corpus):
    Path("p.yaml").write_text(f"stages:\n  blocks: {{stage: chunk, corpus: {corpus}, max-wordpieces: 1:30}}\n")
    code, _, err = realmctl("run", "p.yaml", "--dry-run")
    assert code == 2 and "blocks.max-wordpieces: '1:30' is not a whole number" in one_paragraph(err)


def test_ls_shows_what_the_stages_found(realmctl, scores):
    code, out, _ = realmctl("ls", scores.path.parent)
    assert code == 0 and f"{scores.path.parent}: 1 version in 1 series" in out
    assert f"em {scores.metrics['em']:.4g} (orqa)" in out
    [entry] = json.loads(realmctl("ls", scores.path.parent, "--json")[1])["artifacts"]
    assert entry["headline"].endswith("20 questions")


def test_a_question_that_leaves_no_room_for_a_block_is_told(realmctl, chain, model, tmp_path):
    qa_model = finetune(chain, model, steps=1).make(tmp_path / "qa-model")
    where = ("--qa-model", qa_model.path, "--blocks", chain.blocks.path)
    code, out, _ = realmctl("ask", "word " * 2000, *where)
    assert code == 0 and "no room" in out
    found = json.loads(realmctl("ask", "word " * 2000, *where, "--json")[1])
    assert not found["answers"] and "shorter question" in found["reason"]
    assert "reason" not in json.loads(realmctl("ask", "Where was Ada Lorn born?", *where, "--json")[1])

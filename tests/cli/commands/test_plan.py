"""`realmctl plan`: the paper's run, a pipeline file, a measurement, and requests that contradict each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.forecast.costs import FAISS_TRAINING
from realmctl.forecast.machines import FAISS_RATE

PIPELINE = """
workspace: w
stages:
  blocks: {stage: chunk, corpus: [corpus.jsonl], tokenizer: "train:300", max-wordpieces: 48}
  spans: {stage: tag, tagger: rules}
  encoder: {stage: mlm-init, bert: "scratch:L1-H32-A2", steps: 400, batch-size: 4}
  retriever: {stage: ict-init, steps: 300, batch-size: 4}
  embeddings: {stage: embed}
  index: {stage: build-index, type: exact}
  model: {stage: pretrain, steps: 400, batch-size: 2, candidates: 4, refresh-every: 50}
"""


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Augustus De Morgan"]
    with Path("corpus.jsonl").open("w") as corpus:
        for number in range(80):
            who, other = names[number % 4], names[(number + 1) % 4]
            text = (
                f"{who} met {other} in London in 18{number + 10}. They spoke of engines and of notes number {number}. "
            )
            corpus.write(json.dumps({"id": str(number), "title": f"Meeting {number}", "text": text * 4}) + "\n")
    Path("p.yaml").write_text(PIPELINE)
    return "p.yaml"


def planned(realmctl, *arguments):
    code, out, err = realmctl("plan", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)["plans"]


def test_the_papers_run_on_8_64_and_512_devices(realmctl):
    plans = planned(realmctl, "--as-of-paper", "--refresh-devices", "16", "--price", "2")
    assert [plan["devices"] for plan in plans] == [8, 64, 512]
    hours = [next(row for row in plan["stages"] if row["name"] == "model")["seconds"] for plan in plans]
    assert hours == sorted(hours, reverse=True)
    assert all(plan["price"] == 2 * plan["device_hours"] and plan["blocks"] == {"blocks": 13_353_718} for plan in plans)
    text = realmctl("plan", "--device", "l4", "--index-age", "900")[1]
    assert "1 x l4; blocks: blocks 13,353,718" in text and "--micro-batch" in text and "index age 900" in text


def test_a_pipeline_file_is_planned_and_options_replace_its_settings(realmctl, pipeline):
    (plan,) = planned(realmctl, pipeline)
    assert plan["stages"][0]["command"] == "chunk" and plan["blocks"]["blocks"] > 50
    (longer,) = planned(realmctl, pipeline, "--steps", "800")
    (larger,) = planned(realmctl, pipeline, "--blocks", "1000000")
    assert longer["stages"][-1]["flops"] == 2 * plan["stages"][-1]["flops"]
    assert larger["blocks"] == {"blocks": 1_000_000}


@pytest.mark.slow
def test_a_measurement_here_forecasts_the_run(realmctl, pipeline):
    (plan,) = planned(realmctl, pipeline, "--calibrate")
    assert plan["device"] == "this machine" and all(row["seconds"] > 0 for row in plan["stages"])
    code, out, _ = realmctl("run", pipeline, "--json")
    made = json.loads(out)["made"]
    assert code == 0 and made["blocks"]["metrics"]["blocks"] == plan["blocks"]["blocks"]
    for row in plan["stages"]:
        if row["flops"]:
            assert row["seconds"] == pytest.approx(made[row["name"]]["seconds"], rel=4), row["name"]
    assert {path.name for path in Path().iterdir()} == {"corpus.jsonl", "p.yaml", "w"}, "a plan writes nothing"


@pytest.mark.slow
def test_an_index_that_a_sample_cannot_train_is_forecast_by_the_table(realmctl, pipeline):
    pytest.importorskip("faiss")
    Path(pipeline).write_text(PIPELINE.replace("type: exact", "type: faiss, factory: 'IVF4096,PQ16'"))
    (plan,) = planned(realmctl, pipeline, "--calibrate")
    seconds = {row["name"]: row["seconds"] for row in plan["stages"]}
    rows = plan["blocks"]["blocks"]
    assert seconds["index"] == pytest.approx((1 + FAISS_TRAINING) * rows / FAISS_RATE) and seconds["model"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "abacus"], "the table has h200"),
        (["--blocks", "5", "--corpus", "corpus.jsonl"], "both give the size"),
        (["--calibrate"], "Name the pipeline file"),
        (["--as-of-paper", "--blocks", "5"], "has its own corpus"),
        (["--bert", "scratch:huge"], "no BERT size"),
        (["--var", "x"], "--var needs"),
    ],
)
def test_requests_that_contradict_each_other_end_with_exit_code_2(realmctl, pipeline, arguments, message):
    code, out, err = realmctl("plan", *arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_pipeline_without_a_corpus_is_refused(realmctl, pipeline):
    Path("q.yaml").write_text("workspace: w\nstages:\n  index: {stage: build-index, embeddings: corpus.jsonl}\n")
    code, _, err = realmctl("plan", "q.yaml")
    assert code == 2 and "no chunk stage" in err

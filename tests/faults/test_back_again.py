"""A setting that was tried before is asked for again: each stage then finds its version, and the next command takes that one.

So a shell script, in which no stage is told what the one before it printed, scores the model of its own settings.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.extras.serve.messages import Search
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from tests.faults.counting import count, sampled
from tests.faults.kills.test_every_call import killed_at
from tests.fixtures.chain import Chain, documents, write_questions
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.small_stages import Plain
from tests.fixtures.together import Job, make_together

ROOT = Path(__file__).parents[2]
SETTINGS = {"8": ("rules", "float32", "exact"), "4": ("anchors", "float16", "hnsw"), "2": ("rules", "float16", "exact")}
"""Candidates of pre-training: tagger, type of vectors, type of index."""
FIRST = """
chunk corpus.jsonl --tokenizer train:400 --max-wordpieces 32 --workers 1
mlm-init --bert scratch:L1-H16 --steps 1 --batch-size 2 --length 24
ict-init --projection 8 --steps 1 --batch-size 4
"""
CHAIN = """
chunk corpus.jsonl --tokenizer train:400 --max-wordpieces 32 --workers 1
tag --tagger {1} --query-length 24 --workers 1
embed --dtype {2}
build-index --type {3}
pretrain --steps 1 --batch-size 2 --candidates {0} --refresh never
finetune --questions questions.jsonl --steps 1 --batch-size 2
eval-em --questions questions.jsonl
"""
SCRIPT = """
set -euo pipefail
for candidates in 8 4 2 8 2 4; do
  for stage in "pretrain --steps 1 --batch-size 2 --candidates $candidates --refresh never" \\
    "finetune --questions questions.jsonl --steps 1 --batch-size 2" "eval-em --questions questions.jsonl"; do
    $REALMCTL $stage --workspace w
  done
done
"""


def write_inputs(folder: Path) -> None:
    write_questions(folder / "questions.jsonl")
    with (folder / "corpus.jsonl").open("w") as file:
        for name, blocks in documents().items():
            text = " ".join(sentence for block in blocks for sentence in block).replace("[[", "").replace("]]", "")
            file.write(json.dumps({"id": name, "title": name, "text": text}) + "\n")


@pytest.fixture
def command(realmctl, tmp_path, monkeypatch):
    """A command line in the folder of the test, whose output is the path of what was made or found."""
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)

    def run(line: str) -> str:
        code, out, err = realmctl(*line.split(), "--workspace", "w")
        assert code == 0, err
        return out.strip()

    return run


def candidates_of(scores: str | Path) -> str:
    """The candidates with which the model of these scores was pre-trained."""
    wanted = open_artifact(scores).lineage["model"]
    [model] = [one for one in (Path("w/model").glob("v?")) if open_artifact(one).content == wanted]
    return str(open_artifact(model).settings["candidates"])


def test_settings_in_any_order_end_with_the_scores_of_their_own_model(command):
    for line in FIRST.split("\n")[1:-1]:
        command(line)
    made: dict[str, list[str]] = {}
    tried = 0
    for order in sampled([*permutations(SETTINGS)], 2):
        for candidates in order:
            lines = CHAIN.format(candidates, *SETTINGS[candidates]).split("\n")[1:-1]
            printed = [command(line) for line in lines]
            assert made.setdefault(candidates, printed) == printed
            assert candidates_of(printed[-1]) == candidates_of("w/scores") == candidates
            for line, path in zip(lines, printed, strict=True):  # and each series stands for what the last script made
                assert str(open_artifact(Path(path).parent).path) == path, line
            tried += 1
    assert len(version_numbers(Path("w/model"))) == len(SETTINGS)
    count("scripts that go back to an earlier setting", tried)


@pytest.mark.slow
def test_a_bash_script_that_goes_back_scores_its_own_model(command):
    for line in [*FIRST.split("\n")[1:-1], "tag --tagger rules --workers 1", "embed", "build-index --type exact"]:
        command(line)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "REALMCTL": f"{sys.executable} -P -m realmctl"}
    run = subprocess.run(["bash", "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    scores = [path for path in run.stdout.split() if "scores" in path]
    assert [candidates_of(path) for path in scores] == ["8", "4", "2", "8", "2", "4"]
    assert scores[:3] == [f"w/scores/v{number}" for number in (1, 2, 3)] and candidates_of("w/scores") == "4"
    assert run.stderr.count("is the newest again") == 9 and "warning: w/" not in run.stderr


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pipeline_file_that_goes_back_leaves_its_own_outputs_as_the_newest(command, jobs):
    stages = {"blocks": {"stage": "chunk", "corpus": ["corpus.jsonl"], "tokenizer": "train:400", "max-wordpieces": 32}}
    stages["spans"] = {"stage": "tag", "tagger": "${tagger}", "query-length": 24}
    Path("p.yaml").write_text(yaml.safe_dump({"vars": {"tagger": "rules"}, "stages": stages}))
    for tagger, name in [("rules", "v1"), ("anchors", "v2"), ("rules", "v1"), ("anchors", "v2")]:
        command(f"run p.yaml --var tagger={tagger} --jobs {jobs}")
        assert open_artifact("w/spans").path.name == name and open_artifact("w/spans").settings["tagger"] == tagger


@pytest.mark.slow
def test_processes_that_work_together_make_what_they_find_the_newest_again(chain: Chain, tmp_path):
    fields = {"blocks": chain.blocks, "encoder": chain.encoder, "steps": 1, "batch_size": 4}
    jobs = [(tmp_path / "retriever", Job("ict-init", {**fields, "seed": seed})) for seed in (1, 2, 1)]
    assert make_together([jobs] * 2, tmp_path) == [[(0, "")] * 3] * 2
    assert open_artifact(tmp_path / "retriever").path.name == "v1"


def searched(command: Any, words: str, method: str) -> set[str]:
    found = json.loads(command(f"search {words} --method {method} --json"))
    return {hit["document"] for hit in found["results"][0]["hits"]}


def test_a_document_that_was_added_and_deleted_is_gone_everywhere(command, chain: Chain, tmp_path):
    from mcp import Client

    from realmctl.extras.serve.tools import mcp_server

    encoder, notes, words = folder_for(chain.blocks, tmp_path / "encoder"), tmp_path / "notes", "Ada"
    notes.mkdir()
    (notes / "a.txt").write_text("Ada Lorn was born in Harrow.")
    (notes / "b.txt").write_text("Ben Mott met Ada in Velford.")
    index = f"index-docs notes --encoder {encoder} --max-wordpieces 32"
    command(index)
    w = Path("w")
    models, versions = open_models(None, None, None, w / "blocks", w / "embeddings", w / "index", w / "retriever")
    service = Service(models, versions, edits_allowed=False, most_waiting=64)

    async def asked_by_mcp() -> set[str]:
        async with Client(mcp_server(service)) as client:
            found = await client.call_tool("search", {"query": words, "top": 5})
        return {hit["document"] for hit in found.structured_content["hits"]}

    try:
        for known in ({"a.txt", "b.txt", "c.txt"}, {"a.txt", "b.txt"}):
            if "c.txt" in known:
                (notes / "c.txt").write_text("Ada Nash left Ada Ould.")
            else:
                (notes / "c.txt").unlink()
            command(index)
            for method in ("bm25", "hybrid", "dense"):
                assert searched(command, words, method) == known, method
            assert service.follow()
            asked = service.search(Search(query=words, top=5)).result(60)
            assert {hit.document for hit in asked.hits} == known == asyncio.run(asked_by_mcp())
    finally:
        service.stop()
    assert open_artifact("w/blocks").path.name == "v1" and len(version_numbers(w / "blocks")) == 2


def test_encoders_that_are_tried_again_are_those_that_search(command, chain: Chain, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("Ada Lorn was born in Harrow.")
    encoders = [folder_for(chain.blocks, tmp_path / name, seed=seed) for seed, name in enumerate("ab")]
    for number in (0, 1, 0, 1, 0):
        command(f"index-docs notes --encoder {encoders[number]} --max-wordpieces 32")
        retriever, index = open_artifact("w/retriever"), open_artifact("w/index")
        assert retriever.path.name == f"v{number + 1}" and index.lineage["retriever"] == retriever.content


def test_a_kill_at_any_call_leaves_the_order_before_or_after(tmp_path):
    kills, out = 0, tmp_path / "out"
    for text in "ab":
        Plain(text=text).make(out)
    while killed_at(kills, Plain(text="a").make, out):
        assert open_artifact(out).path.name in ("v1", "v2")
        kills += 1
        assert Plain(text="a").make(out).path.name == "v1" == open_artifact(out).path.name
        assert Plain(text="b").make(out).path.name == "v2" == open_artifact(out).path.name
    assert open_artifact(out).path.name == "v1" and kills > 3
    count("SIGKILL at every store call (a version that is made the newest again)", kills)


def test_an_encoder_that_is_imported_again_is_the_one_that_embeds(command, chain: Chain, tmp_path):
    encoders = [folder_for(chain.blocks, tmp_path / f"encoder-{seed}", seed) for seed in (0, 1)]
    made = []
    for encoder in (*encoders, encoders[0]):
        command(f"import {encoder}")
        embeddings = open_artifact(command(f"embed --blocks {chain.blocks.path}"))
        made.append(embeddings.lineage["retriever"])
    assert made[0] == made[2] != made[1] and version_numbers(Path("w/retriever")) == [1, 2]
    count("scripts that go back to an earlier setting", len(made))

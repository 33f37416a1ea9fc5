"""`realmctl plan --rehearse`: equal runs, a run that differs, a run that fails, and the whole chain with kills."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from realmctl.forecast.rehearsal import rehearsal
from realmctl.forecast.rehearsal.toy import Toy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


@pytest.fixture(scope="module")
def toy(tmp_path_factory, one_thread) -> Toy:
    return Toy.write(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def blocks_alone(here, toy, monkeypatch) -> None:
    """A pipeline of one stage on a machine without Ray."""
    monkeypatch.setattr(Toy, "write", lambda folder: toy)
    monkeypatch.setattr(rehearsal, "_has_ray", lambda: False)
    Path("corpus.jsonl").write_text("{}\n")
    Path("p.yaml").write_text("workspace: w\nstages:\n  blocks: {stage: chunk, corpus: [corpus.jsonl]}\n")


def test_runs_that_are_equal_end_with_exit_code_0(realmctl, blocks_alone):
    code, out, err = realmctl("plan", "p.yaml", "--rehearse", "2", "--json")
    assert code == 0, err
    (row,) = json.loads(out)["rehearsal"]
    assert row["equal"] and row["how"] == "2 workers" and row["difference"]["same_bytes"]
    assert {path.name for path in Path().iterdir()} == {"corpus.jsonl", "p.yaml"}


def test_a_run_that_differs_and_one_that_fails_end_with_exit_code_6(realmctl, blocks_alone, monkeypatch):
    words = rehearsal.words_of
    for changed, said in (
        ("--max-wordpieces 48", "DIFFERENT"),
        ("--max-wordpieces 2", "FAILED: error: --max-wordpieces 2"),
    ):
        monkeypatch.setattr(
            rehearsal, "words_of", lambda stage, out, changed=changed: [*words(stage, out), *changed.split()]
        )
        code, out, err = realmctl("plan", "p.yaml", "--rehearse", "2")
        assert code == 6 and said in out and "1 of 1 runs differ or failed" in out and "found differences" in err


def test_one_process_and_nothing_to_rehearse_are_mistakes(realmctl, blocks_alone):
    assert realmctl("plan", "--rehearse", "1")[0] == 2
    Path("p.yaml").write_text(
        "workspace: w\nstages:\n  scores: {stage: eval-em, questions: corpus.jsonl, qa-model: corpus.jsonl}\n"
    )
    code, _, err = realmctl("plan", "p.yaml", "--rehearse", "2")
    assert code == 2 and "no stage that can be rehearsed" in err


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_papers_chain_in_two_processes_and_on_two_nodes(realmctl):
    pytest.importorskip("ray")
    code, out, err = realmctl("plan", "--rehearse", "2", "--json")
    assert code == 0, out + err
    rows = json.loads(out)["rehearsal"]
    assert {row["stage"] for row in rows} == {"chunk", "tag", "embed", "mlm-init", "ict-init", "pretrain", "finetune"}
    assert all(row["killed"] for row in rows if row["exact"])
    assert sum(row["killed"].startswith("process 1 after step") for row in rows) == 4
    assert sum(row["killed"] == "a node at work" for row in rows) == 3
    assert sum("refresher" in row["killed"] for row in rows) == 1

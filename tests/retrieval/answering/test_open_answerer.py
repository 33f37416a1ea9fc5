"""A qa-model says what it is in qa-model.json; one that was made before that file existed still opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, writing
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.retrieval.answering.open_answerer import open_answerer
from tests.fixtures.chain import baseline, finetune

QUESTION = "Where was Ada Lorn born?"


def origin_of(artifact: Artifact, version: int) -> Origin:
    made = artifact.manifest
    return Origin(made["kind"], made["stage"], version, made["settings"], made["inputs"], made["lineage"])


def as_made_before(qa_model: Artifact, path: Path) -> Artifact:
    """The same model as version 1 of `finetune` wrote it: settings and metrics say what now stands in files."""
    with writing(path, origin_of(qa_model, 1)) as out:
        out.link("metrics.jsonl", qa_model.file("metrics.jsonl"))
        for name in qa_model.manifest["parts"]:
            part = qa_model.part(name)
            if name != "retriever":
                out.adopt(name, part)
                continue
            with writing(out.path / name, origin_of(part, 1)) as inner:
                described = json.loads(part.file("retriever.json").read_text())
                inner.metrics["block_retriever"] = described.pop("block_retriever")
                for file in set(part.manifest["files"]) - {"retriever.json"}:
                    inner.link(file, part.file(file))
                inner.file("retriever.json").write_text(json.dumps(described, indent=2) + "\n")
    return open_artifact(path)


def answers(qa_model: Artifact, chain) -> list[tuple[str, float]]:
    found = open_answerer(qa_model, chain.blocks, device="cpu", precision="fp32").ask(QUESTION, 3)
    return [(answer.text, answer.score) for answer in found]


@pytest.mark.parametrize("retrieval", ["dense", "bm25", "none"])
def test_a_qa_model_of_an_earlier_version_answers_the_same(chain, qa_model, tmp_path, retrieval):
    made = qa_model if retrieval == "dense" else baseline(chain, retrieval, steps=2).make(tmp_path / "qa")
    before = as_made_before(made, tmp_path / "before")
    assert not before.has("qa-model.json") and before.content != made.content
    assert answers(before, chain) == answers(made, chain) != []


def test_a_qa_model_of_an_earlier_version_is_trained_further(chain, qa_model, tmp_path):
    before = as_made_before(qa_model, tmp_path / "before")
    old, new = (
        finetune(chain, model, steps=2).make(tmp_path / name) for name, model in (("a", before), ("b", qa_model))
    )
    assert {name: old.part(name).content for name in old.manifest["parts"]} == {
        name: new.part(name).content for name in new.manifest["parts"]
    }


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"searcher": "grep"}, ConfigError, "no searcher 'grep'. Use one of: dense, bm25"),
        ({"answerer": "oracle"}, ConfigError, "no answerer 'oracle'. Use one of: extractive, closed-book"),
        ({"searcher": None}, InputError, "names no searcher for the reader"),
        ({"span_width": "4"}, InputError, "span_width is '4', where a value of type int is needed"),
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(chain, qa_model, tmp_path, change, error, message):
    with writing(tmp_path / "changed", origin_of(qa_model, 2)) as out:
        described = json.loads(qa_model.file("qa-model.json").read_text())
        out.file("qa-model.json").write_text(json.dumps({**described, **change}))
        for name in qa_model.manifest["parts"]:
            out.adopt(name, qa_model.part(name))
    with pytest.raises(error, match=message):
        open_answerer(open_artifact(tmp_path / "changed"), chain.blocks)


def test_artifacts_of_other_kinds_are_refused(chain, qa_model):
    with pytest.raises(MismatchError, match="is of kind index, but a qa-model is needed"):
        open_answerer(chain.index, chain.blocks)
    with pytest.raises(MismatchError, match="is of kind spans, but blocks are needed"):
        open_answerer(qa_model, chain.spans)

"""A whole chain of artifacts small enough to train on within a test: twenty people, forty blocks, one layer.

chain = make_chain(folder)      # chain.blocks, .spans, .encoder, .retriever, .index, .questions
model = pretrain(chain, steps=6).make(folder / "model")
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from realmctl.artifact import Artifact
from realmctl.train import loop
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.finetune import Finetune
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from stages.tag import Tag
from tests.fixtures_blocks import Documents, make_blocks
from tests.fixtures_retriever import make_retriever

FIRST = ["Ada", "Ben", "Cora", "Dan", "Eva"]
LAST = ["Lorn", "Mott", "Nash", "Ould"]
TOWNS = ["Velford", "Stonebridge", "Harrow", "Milton", "Ashby", "Kenmore", "Tarrant"]
FIRMS = ["Brightwell", "Corvane", "Delmont", "Ostrander", "Fenwick"]


@dataclass(frozen=True)
class Chain:
    """What pre-training and fine-tuning read; every artifact in a series of its kind's name below `folder`."""

    folder: Path
    blocks: Artifact
    spans: Artifact
    encoder: Artifact
    retriever: Artifact
    index: Artifact
    questions: Path


def make_chain(folder: Path) -> Chain:
    """Make it, in about two seconds."""
    blocks = make_blocks(folder / "blocks", documents())
    retriever = make_retriever(folder / "retriever", blocks)
    return Chain(
        folder,
        blocks,
        Tag(blocks=blocks, tagger="anchors", query_length=24, workers=1).make(folder / "spans"),
        MlmInit(blocks=blocks, bert="scratch:L1-H16", steps=1, batch_size=2, length=24).make(folder / "encoder"),
        retriever,
        make_index(folder, blocks, retriever),
        write_questions(folder / "questions.jsonl"),
    )


def make_index(folder: Path, blocks: Artifact, retriever: Artifact, **settings: Any) -> Artifact:
    """An exact index of the blocks, unless told otherwise."""
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    return BuildIndex(embeddings=embeddings, **{"type": "exact", **settings}).make(folder / "index")


def documents() -> Documents:
    """A document of two blocks for each person."""
    found = {}
    for number, name in enumerate(f"{first} {last}" for first in FIRST for last in LAST):
        town, firm, other = (names[(number * k + k) % len(names)] for k, names in ((3, TOWNS), (2, FIRMS), (5, TOWNS)))
        birth = [f"{name} was born in [[{town}]].", "The family was poor.", f"School was in [[{other}]]."]
        work = [
            f"{name} worked for [[{firm}]].",
            f"That firm is in [[{other}]].",
            f"The work began in {1900 + number}.",
        ]
        found[name] = [birth, work]
    return found


def write_questions(path: Path) -> Path:
    """Where each person was born, in NQ-open's form."""
    lines = []
    for name, (birth, _) in documents().items():
        town = birth[0].partition("[[")[2].partition("]]")[0]
        lines.append(json.dumps({"question": f"Where was {name} born?", "answer": [town]}))
    path.write_text("\n".join(lines) + "\n")
    return path


def pretrain(chain: Chain, **values: Any) -> Pretrain:
    """Six inline steps, a refresh every third, a checkpoint every second."""
    settings: dict[str, Any] = {
        "steps": 6, "batch_size": 4, "lr": 1e-2, "warmup": 2, "candidates": 4, "refresh": "inline", "refresh_every": 3,
        "checkpoint_every": 2,
    }  # fmt: skip
    inputs = {name: getattr(chain, name) for name in ("blocks", "spans", "retriever", "index", "encoder")}
    return Pretrain(**inputs, **{**settings, **values})


FINETUNING: dict[str, Any] = {
    "steps": 4, "batch_size": 4, "lr": 1e-2, "warmup": 1, "retriever_beam": 10, "reader_beam": 3, "reader_length": 40,
    "checkpoint_every": 2,
}  # fmt: skip


def finetune(chain: Chain, model: Artifact | None = None, **values: Any) -> Finetune:
    """Four steps from a model, or else from the chain's parts (ORQA)."""
    parts = {"model": model} if model else {name: getattr(chain, name) for name in ("retriever", "index", "encoder")}
    return Finetune(blocks=chain.blocks, questions=chain.questions, **parts, **{**FINETUNING, **values})


def baseline(chain: Chain, retrieval: str, **values: Any) -> Finetune:
    """Four steps of a baseline, `bm25` or `none`."""
    inputs = {"blocks": chain.blocks, "questions": chain.questions, "encoder": chain.encoder}
    return Finetune(**{**inputs, **FINETUNING, "retrieval": retrieval, **values})


class Stopped(Exception):
    """What `stop_at` raises."""


def stop_at(monkeypatch: Any, step: int, act: Any = None) -> None:
    """Have the loop break down at the beginning of a step: raise, or do `act` and go on."""
    plain = loop._Run._step

    def broken(run: Any, number: int) -> dict[str, float]:
        if number == step:
            if act is None:
                raise Stopped
            act()
        return plain(run, number)

    monkeypatch.setattr(loop._Run, "_step", broken)


def metrics_of(artifact: Artifact) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl."""
    return [json.loads(line) for line in artifact.file("metrics.jsonl").read_text().splitlines()]

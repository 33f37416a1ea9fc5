"""Keep small artifacts of this release as fixtures: python -m tests.artifacts.make_release

Writes `releases/<version>/`, and leaves alone what is there. Every later version must open them, or refuse them with what to do
(test_releases.py). Run it when a release is made.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import torch

from realmctl.artifacts import Artifact, open_artifact
from realmctl.version import __version__
from stages.build_index import BuildIndex
from stages.embed import Embed
from stages.eval_em import EvalEm
from tests.fixtures.chain import finetune, make_chain
from tests.fixtures.small_stages import Child, Model, Plain

RELEASES = Path(__file__).with_name("releases")
TEXT = "zwölf"


def make_small(folder: Path) -> dict[str, Artifact]:
    """One artifact with files, one with an input, one with parts."""
    plain = Plain(text=TEXT).make(folder / "plain")
    child = Child(plain=plain).make(folder / "child")
    return {"plain": plain, "child": child, "model": Model(child=child).make(folder / "model")}


def make_chain_of(folder: Path) -> None:
    """Blocks, tagged sentences, a graph, a qa-model with its parts, and what an evaluation of them found."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        chain = make_chain(Path(name))
        embeddings = Embed(blocks=chain.blocks, retriever=chain.retriever).make(Path(name) / "embeddings")
        graph = BuildIndex(embeddings=embeddings, type="hnsw").make(Path(name) / "graph")
        qa_model = finetune(chain, steps=1).make(Path(name) / "qa-model")
        for artifact in (chain.blocks, chain.spans, chain.retriever, graph, qa_model):
            artifact.path.parent.rename(folder / artifact.path.parent.name)
        (folder / "questions.jsonl").write_text(chain.questions.read_text())
        (folder / "found.json").write_text(json.dumps(evaluated(folder, Path(name)), indent=1) + "\n")


def evaluated(folder: Path, out: Path) -> dict[str, float]:
    """Recall of the graph, which the qa-model's retriever searches."""
    scores = EvalEm(
        blocks=open_artifact(folder / "blocks"),
        retriever=open_artifact(folder / "retriever"),
        index=open_artifact(folder / "graph"),
        questions=folder / "questions.jsonl",
        hits=5,
        precision="fp32",
    ).make(out / "scores")
    return {name: value for name, value in scores.metrics.items() if name.startswith("recall@")}


if __name__ == "__main__":
    target = RELEASES / __version__
    if not (target / "plain").exists():  # artifacts of a release are made once
        make_small(target)
    if not (target / "chain").exists():
        (target / "chain").mkdir(parents=True)
        make_chain_of(target / "chain")
    for path in (*target.rglob(".lock"), *target.rglob(".last")):
        path.unlink()

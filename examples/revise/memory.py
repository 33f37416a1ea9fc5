"""A memory is blocks and the index of their vectors. Here it is made, revised, made anew, and asked; experiments time this and compare."""

import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from realmctl import stages
from realmctl.artifacts import Artifact
from realmctl.index.exact import ExactIndex
from realmctl.index.vectors import open_vectors
from realmctl.questions.answers import exact_match
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.version import __version__

CPU_INFO = Path("/proc/cpuinfo")
BATCH = 16


class Memory(NamedTuple):
    """Blocks, and the index of their vectors; None for that of the qa-model."""

    blocks: Artifact
    index: Artifact | None = None


@dataclass(frozen=True)
class Maker:
    """Makes memories in a folder, with one retriever (or a model, for its own). `clock` gives the seconds that are reported."""

    folder: Path
    retriever: Artifact
    clock: Callable[[], float] = time.monotonic

    def new(self, corpus: Path, tokenizer: Path, max_wordpieces: int, name: str) -> tuple[Memory, dict[str, Any]]:
        """Chunk, embed and index a corpus from scratch. Also return what it cost."""
        blocks, chunking = self.chunked(corpus, tokenizer, max_wordpieces, name)
        memory, costs = self.embedded(blocks, name)
        return memory, {"chunk": chunking, **costs}

    def revised(self, former: Memory, name: str, corpus: Path) -> tuple[Memory, dict[str, Any]]:
        """Revise blocks, vectors and index to a corpus. Also return what it cost."""
        blocks, revising = self.revised_blocks(former.blocks, name, corpus=corpus)
        memory, costs = self.embedded(blocks, name, former)
        return memory, {"revise": revising, **costs}

    def chunked(self, corpus: Path, tokenizer: Path, max_wordpieces: int, name: str) -> tuple[Artifact, float]:
        """Chunk a corpus. Also return the seconds."""
        stage = stages.Chunk(corpus=(corpus,), tokenizer=str(tokenizer), max_wordpieces=max_wordpieces, workers=1)
        return timed(lambda: stage.make(self.folder / f"{name}-blocks"), self.clock)

    def revised_blocks(
        self, blocks: Artifact, name: str, corpus: Path | None = None, edits: Path | None = None
    ) -> tuple[Artifact, float]:
        """Revise blocks to a corpus or by edits. Also return the seconds."""
        stage = stages.Revise(blocks=blocks, corpus=(corpus,) if corpus else (), edits=edits, workers=1)
        return timed(lambda: stage.make(self.folder / f"{name}-blocks"), self.clock)

    def embedded(self, blocks: Artifact, name: str, former: Memory | None = None) -> tuple[Memory, dict[str, Any]]:
        """Embed and index blocks, with the vectors of a former memory where there is one. Also return counts of blocks, and the seconds by stage."""
        reused = {"former": former.index or self.retriever, "former_blocks": former.blocks} if former else {}
        stage = stages.Embed(blocks=blocks, retriever=self.retriever, precision="fp32", **reused)
        embeddings, embedding = timed(lambda: stage.make(self.folder / f"{name}-embeddings"), self.clock)
        indexing = stages.BuildIndex(embeddings=embeddings, type="exact")
        index, building = timed(lambda: indexing.make(self.folder / f"{name}-index"), self.clock)
        counts = {
            key: embeddings.metrics[key] for key in ("rows", "taken_over", "embedded") if key in embeddings.metrics
        }
        return Memory(blocks, index), {**counts, "embed": embedding, "build_index": building}


def timed(make: Callable[[], Artifact], clock: Callable[[], float] = time.monotonic) -> tuple[Artifact, float]:
    """Return the artifact and the seconds that making it took, by a clock."""
    start = clock()
    return make(), clock() - start


def answers(qa_model: Artifact, memory: Memory, questions: Sequence[str], stale: np.ndarray | None = None) -> list[str]:
    """The best answer to each question. `stale`: vectors to search instead of those of the index."""
    model = QaModel.open(qa_model, blocks=memory.blocks, index=memory.index, precision="fp32")
    if stale is not None:
        model.searcher.index = ExactIndex(stale)
    answered = model.answer(questions, 1, batch_size=BATCH)
    return [found.answers[0].text if found.answers else "" for found in answered]


class Questions(NamedTuple):
    """Questions about changed facts, with "old" and "new", and about unchanged ones, with "answer"."""

    changed: list[dict[str, str]]
    unchanged: list[dict[str, Any]]

    @property
    def texts(self) -> list[str]:
        """All questions: about the changed facts, then about the unchanged ones."""
        return [record["question"] for record in (*self.changed, *self.unchanged)]

    def scores(self, answers: Sequence[str]) -> dict[str, float]:
        """Exact match of the answers to `texts`: on the new and the old answers, and on the unchanged facts."""
        about_changed = list(zip(self.changed, answers, strict=False))
        about_unchanged = zip(self.unchanged, answers[len(self.changed) :], strict=True)
        return {
            "new": share(exact_match(answer, [record["new"]]) for record, answer in about_changed),
            "old": share(exact_match(answer, [record["old"]]) for record, answer in about_changed),
            "unchanged": share(exact_match(answer, record["answer"]) for record, answer in about_unchanged),
        }


def read_questions(folder: Path) -> Questions:
    """Read changed.jsonl and unchanged.jsonl of a folder."""
    return Questions(*(json_lines(folder / f"{name}.jsonl") for name in Questions._fields))


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_whole(path: Path, results: Mapping[str, Any]) -> None:
    """Write results as JSON, so that a file that is there is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def share(flags: Iterable[bool]) -> float:
    """The share of what is true."""
    values = list(flags)
    return sum(values) / len(values)


def vectors_of(index: Artifact | None) -> np.ndarray:
    """The vectors of an index, float32."""
    assert index is not None
    return np.asarray(open_vectors(index.file("vectors.npy")), np.float32)


def machine() -> dict[str, str | int]:
    """Where the seconds were measured: processor, cores, and the version of realmctl."""
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.machine()
    return {"processor": processor, "cores": os.cpu_count() or 1, "realmctl": __version__}

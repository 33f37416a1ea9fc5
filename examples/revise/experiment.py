"""What a changed corpus does to a trained model: examples/revise/experiment.py FOLDER --seed N.

FOLDER/world and FOLDER/artifacts are a world and its trained chain (examples/revise.yaml); FOLDER/change-SHARE are changed
corpora (examples/world/change_facts.py). Writes the file --results, which examples/revise/make_page.py turns into a page.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from realmctl import stages
from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.corpus.corpus import Corpus
from realmctl.index.exact import ExactIndex
from realmctl.index.vectors import open_vectors
from realmctl.questions.answers import exact_match
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.version import __version__

CPU_INFO = Path("/proc/cpuinfo")
BATCH = 16
TRAINING = {
    "precision": "fp32",
    "optimizer": "adamw",
    "batch_size": 8,
    "lr": 1e-3,
    "warmup": 30,
    "reader_length": 96,
    "span_width": 5,
    "retrieval": "none",
}


class Memory(NamedTuple):
    """Blocks, and the index of their vectors; None for that of the qa-model."""

    blocks: Artifact
    index: Artifact | None = None


class Change(NamedTuple):
    """A changed corpus: its folder, and the questions about changed and unchanged facts."""

    folder: Path
    changed: list[dict[str, str]]
    unchanged: list[dict[str, Any]]

    @property
    def questions(self) -> list[str]:
        """All questions: about the changed facts, then about the unchanged ones."""
        return [record["question"] for record in (*self.changed, *self.unchanged)]

    def scores(self, answers: Sequence[str]) -> dict[str, float]:
        """Exact match of the answers to `questions`: on the new and the old answers, and on the unchanged facts."""
        about_changed = list(zip(self.changed, answers, strict=False))
        about_unchanged = zip(self.unchanged, answers[len(self.changed) :], strict=True)
        return {
            "new": _share(exact_match(answer, [record["new"]]) for record, answer in about_changed),
            "old": _share(exact_match(answer, [record["old"]]) for record, answer in about_changed),
            "unchanged": _share(exact_match(answer, record["answer"]) for record, answer in about_unchanged),
        }


def _share(flags: Any) -> float:
    values = list(flags)
    return sum(values) / len(values)


def read_change(folder: Path) -> Change:
    """Read the folder that change_facts.py wrote."""
    return Change(folder, _lines(folder / "changed.jsonl"), _lines(folder / "unchanged.jsonl"))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def timed(make: Callable[[], Artifact]) -> tuple[Artifact, float]:
    """Return the artifact and the seconds that making it took."""
    start = time.monotonic()
    return make(), time.monotonic() - start


def answers(qa_model: Artifact, memory: Memory, questions: Sequence[str], stale: np.ndarray | None = None) -> list[str]:
    """The best answer to each question. `stale`: vectors to search instead of those of the index."""
    model = QaModel.open(qa_model, blocks=memory.blocks, index=memory.index, precision="fp32")
    if stale is not None:
        model.searcher.index = ExactIndex(stale)
    answered = model.answer(questions, 1, batch_size=BATCH)
    return [found.answers[0].text if found.answers else "" for found in answered]


class Experiment:
    """One seed: its artifacts, and the revisions that are measured."""

    def __init__(self, folder: Path, seed: int, steps: int) -> None:
        self.folder, self.made = folder, folder / "revised"
        self.training = {**TRAINING, "seed": seed, "steps": steps}
        held = folder / "artifacts"
        self.blocks, self.model, self.qa_model = (
            open_artifact(held / name) for name in ("blocks", "model", "qa-model")
        )

    def revised(self, corpus: Path, former: Memory, name: str) -> tuple[Memory, dict[str, Any]]:
        """Revise blocks, vectors and index. Also return what was taken over, and seconds by stage."""
        revise, embed, build = stages.Revise, stages.Embed, stages.BuildIndex
        blocks, revising = timed(
            lambda: revise(blocks=former.blocks, corpus=(corpus,), workers=1).make(self.made / f"{name}-blocks")
        )
        embeddings, embedding = timed(
            lambda: embed(
                blocks=blocks,
                retriever=self.model,
                former=former.index or self.model,
                former_blocks=former.blocks,
                precision="fp32",
            ).make(self.made / f"{name}-embeddings")
        )
        index, building = timed(lambda: build(embeddings=embeddings, type="exact").make(self.made / f"{name}-index"))
        counts = {key: embeddings.metrics[key] for key in ("rows", "taken_over", "embedded")}
        return Memory(blocks, index), {**counts, "revise": revising, "embed": embedding, "build_index": building}

    def rebuilt(self, corpus: Path, name: str) -> tuple[Memory, dict[str, float]]:
        """Chunk, embed and index a corpus from scratch, with the tokenizer of the blocks."""
        chunk, embed, build = stages.Chunk, stages.Embed, stages.BuildIndex
        settings = self.blocks.settings
        blocks, chunking = timed(
            lambda: chunk(
                corpus=(corpus,),
                tokenizer=str(self.blocks.path / "tokenizer"),
                max_wordpieces=settings["max_wordpieces"],
                workers=1,
            ).make(self.made / f"{name}-rebuilt-blocks")
        )
        embeddings, embedding = timed(
            lambda: embed(blocks=blocks, retriever=self.model, precision="fp32").make(
                self.made / f"{name}-rebuilt-embeddings"
            )
        )
        index, building = timed(
            lambda: build(embeddings=embeddings, type="exact").make(self.made / f"{name}-rebuilt-index")
        )
        return Memory(blocks, index), {"chunk": chunking, "embed": embedding, "build_index": building}

    def stale_vectors(self, memory: Memory) -> np.ndarray:
        """The vectors that the blocks of `memory` had before the revision, by block id; new ids get their new vectors."""
        old = {block.id: row for row, block in enumerate(Corpus(self.blocks))}
        former, vectors = vectors_of(self.model.part("index")), np.array(vectors_of(memory.index))
        for row, block in enumerate(Corpus(memory.blocks)):
            if block.id in old:
                vectors[row] = former[old[block.id]]
        return vectors

    def share(self, change: Change, name: str) -> dict[str, Any]:
        """All measurements of one changed corpus."""
        before = answers(self.qa_model, Memory(self.blocks), change.questions)
        memory, costs = self.revised(change.folder / "knowledge", Memory(self.blocks), name)
        rebuilt, full = self.rebuilt(change.folder / "knowledge", name)
        after = answers(self.qa_model, memory, change.questions)
        new, scratch = vectors_of(memory.index), vectors_of(rebuilt.index)
        result = {
            **json.loads((change.folder / "change.json").read_text()),
            "revision": costs,
            "rebuild": full,
            "same_blocks": memory.blocks.content == rebuilt.blocks.content,
            "largest_vector_difference": float(np.abs(new - scratch).max()),
            "largest_vector_component": float(np.abs(scratch).max()),
            "same_answers_as_rebuild": _share(
                a == b for a, b in zip(after, answers(self.qa_model, rebuilt, change.questions), strict=True)
            ),
            "em": {"before": change.scores(before), "after": change.scores(after)},
        }
        stale = answers(self.qa_model, memory, change.questions, self.stale_vectors(memory))
        result["em"]["text_only"] = change.scores(stale)
        back, _ = self.revised(self.folder / "world" / "knowledge", memory, f"{name}-back")
        restored = answers(self.qa_model, back, change.questions)
        result["back"] = {
            "same_blocks": back.blocks.content == self.blocks.content,
            "same_answers": _share(a == b for a, b in zip(before, restored, strict=True)),
        }
        mentions, _ = self.revised(change.folder / "some-mentions", Memory(self.blocks), f"{name}-mentions")
        result["em"]["some_mentions"] = change.scores(answers(self.qa_model, mentions, change.questions))
        result["em"] |= self.in_weights(change, name, result)
        return result

    def in_weights(self, change: Change, name: str, result: dict[str, Any]) -> dict[str, dict[str, float]]:
        """Closed book, before and after it is fine-tuned on the changed facts, each with its training seconds."""
        finetune = stages.Finetune
        world, training = self.folder / "world", self.training
        closed, first = timed(
            lambda: finetune(model=self.model, blocks=self.blocks, questions=world / "train.jsonl", **training).make(
                self.made / "closed-book"
            )
        )
        tuned, second = timed(
            lambda: finetune(model=closed, blocks=self.blocks, questions=change.folder / "new.jsonl", **training).make(
                self.made / f"{name}-fine-tuned"
            )
        )
        result["seconds_of_training"] = {"closed_book": first, "fine_tuned": second}
        return {
            label: change.scores(answers(model, Memory(self.blocks), change.questions))
            for label, model in (("closed_book", closed), ("fine_tuned", tuned))
        }


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


def main() -> None:
    """Run the command line: measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--shares", nargs="+", default=["0.01", "0.05", "0.2"])
    parser.add_argument("--steps", type=int, default=300, help="steps of training the closed-book models")
    parser.add_argument("--results", type=Path, required=True, help="JSON file to write, when all is measured")
    given = parser.parse_args()
    run = Experiment(given.folder, given.seed, given.steps)
    weights = {name: artifact.content for name, artifact in (("model", run.model), ("qa-model", run.qa_model))}
    results: dict[str, Any] = {"seed": given.seed, "machine": machine(), "weights": weights, "shares": {}}
    run.revised(given.folder / "world" / "knowledge", Memory(run.blocks), "warm-up")  # imports count for no measurement
    for share in given.shares:
        change = read_change(given.folder / f"change-{share}")
        results["shares"][share] = run.share(change, f"share-{share}")
    for name, content in weights.items():
        again = open_artifact(given.folder / "artifacts" / name)
        verify(again)  # hashes every file anew
        results["weights_unchanged"] = results.get("weights_unchanged", True) and again.content == content
    given.results.parent.mkdir(parents=True, exist_ok=True)
    whole = given.results.with_name(given.results.name + ".part")
    whole.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    whole.replace(given.results)


if __name__ == "__main__":
    main()

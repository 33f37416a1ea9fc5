"""What a changed corpus does to a trained model: examples/revise/experiment.py FOLDER --seed N.

FOLDER/world and FOLDER/artifacts are a world and its trained chain (examples/revise.yaml); FOLDER/change-SHARE are changed
corpora (examples/world/change_facts.py). Writes the file --results, which examples/revise/make_page.py turns into a page.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from memory import (
    Maker,
    Memory,
    Questions,
    answers,
    machine,
    read_questions,
    share,
    timed,
    vectors_of,
    write_whole,
)

from realmctl import stages
from realmctl.artifacts import open_artifact, verify
from realmctl.corpus.corpus import Corpus

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


class Experiment:
    """One seed: its artifacts, and the revisions that are measured."""

    def __init__(self, folder: Path, seed: int, steps: int) -> None:
        self.folder = folder
        self.training = {**TRAINING, "seed": seed, "steps": steps}
        held = folder / "artifacts"
        self.blocks, self.model, self.qa_model = (
            open_artifact(held / name) for name in ("blocks", "model", "qa-model")
        )
        self.maker = Maker(folder / "revised", self.model)

    def stale_vectors(self, memory: Memory) -> np.ndarray:
        """The vectors that the blocks of `memory` had before the revision, by block id; new ids get their new vectors."""
        old = {block.id: row for row, block in enumerate(Corpus(self.blocks))}
        former, vectors = vectors_of(self.model.part("index")), np.array(vectors_of(memory.index))
        for row, block in enumerate(Corpus(memory.blocks)):
            if block.id in old:
                vectors[row] = former[old[block.id]]
        return vectors

    def share(self, change: Path, name: str) -> dict[str, Any]:
        """All measurements of one changed corpus, in the folder that change_facts.py wrote."""
        questions, made = read_questions(change), self.maker
        before = answers(self.qa_model, Memory(self.blocks), questions.texts)
        memory, costs = made.revised(Memory(self.blocks), name, change / "knowledge")
        tokenizer, longest = self.blocks.path / "tokenizer", self.blocks.settings["max_wordpieces"]
        rebuilt, full = made.new(change / "knowledge", tokenizer, longest, f"{name}-rebuilt")
        after = answers(self.qa_model, memory, questions.texts)
        new, scratch = vectors_of(memory.index), vectors_of(rebuilt.index)
        result = {
            **json.loads((change / "change.json").read_text()),
            "revision": costs,
            "rebuild": full,
            "same_blocks": memory.blocks.content == rebuilt.blocks.content,
            "largest_vector_difference": float(np.abs(new - scratch).max()),
            "largest_vector_component": float(np.abs(scratch).max()),
            "same_answers_as_rebuild": share(
                a == b for a, b in zip(after, answers(self.qa_model, rebuilt, questions.texts), strict=True)
            ),
            "em": {"before": questions.scores(before), "after": questions.scores(after)},
        }
        stale = answers(self.qa_model, memory, questions.texts, self.stale_vectors(memory))
        result["em"]["text_only"] = questions.scores(stale)
        back, _ = made.revised(memory, f"{name}-back", self.folder / "world" / "knowledge")
        restored = answers(self.qa_model, back, questions.texts)
        result["back"] = {
            "same_blocks": back.blocks.content == self.blocks.content,
            "same_answers": share(a == b for a, b in zip(before, restored, strict=True)),
        }
        mentions, _ = made.revised(Memory(self.blocks), f"{name}-mentions", change / "some-mentions")
        result["em"]["some_mentions"] = questions.scores(answers(self.qa_model, mentions, questions.texts))
        result["em"] |= self.in_weights(change, questions, name, result)
        return result

    def in_weights(
        self, change: Path, questions: Questions, name: str, result: dict[str, Any]
    ) -> dict[str, dict[str, float]]:
        """Closed book, before and after it is fine-tuned on the changed facts, each with its training seconds."""
        finetune = stages.Finetune
        world, training, made = self.folder / "world", self.training, self.maker.folder
        closed, first = timed(
            lambda: finetune(model=self.model, blocks=self.blocks, questions=world / "train.jsonl", **training).make(
                made / "closed-book"
            )
        )
        tuned, second = timed(
            lambda: finetune(model=closed, blocks=self.blocks, questions=change / "new.jsonl", **training).make(
                made / f"{name}-fine-tuned"
            )
        )
        result["seconds_of_training"] = {"closed_book": first, "fine_tuned": second}
        return {
            label: questions.scores(answers(model, Memory(self.blocks), questions.texts))
            for label, model in (("closed_book", closed), ("fine_tuned", tuned))
        }


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
    world = given.folder / "world" / "knowledge"
    run.maker.revised(Memory(run.blocks), "warm-up", world)  # imports count for no measurement
    for changed in given.shares:
        results["shares"][changed] = run.share(given.folder / f"change-{changed}", f"share-{changed}")
    for name, content in weights.items():
        again = open_artifact(given.folder / "artifacts" / name)
        verify(again)  # hashes every file anew
        results["weights_unchanged"] = results.get("weights_unchanged", True) and again.content == content
    write_whole(given.results, results)


if __name__ == "__main__":
    main()

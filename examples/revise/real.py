"""What a corpus that really changed does to a retriever and a reader that are not trained again: examples/revise/real.py FOLDER.

FOLDER/pairs is what mine.py wrote, and --retriever an imported encoder. The older articles are chunked, embedded and indexed; then they are
revised by the edits that lead to the newer ones. Every question is searched for, and answered by a reader that was fine-tuned on the older
articles, before and after. Writes --results after each measurement, and real_page.py turns them into a page. What is made or measured is found again.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from memory import (
    Maker,
    Memory,
    Questions,
    answers,
    json_lines,
    machine,
    read_questions,
    share,
    write_whole,
)

from realmctl import stages
from realmctl.artifacts import Artifact, open_artifact, verify
from realmctl.retrieval.search.opening import load_search

Made = TypeVar("Made")
DEPTHS = (1, 5, 20)
AT_ONCE = 64


def telling(memory: Memory, retriever: Artifact, method: str, asked: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Return the share of (question, sentence) pairs whose sentence stands in one of the first 1, 5 and 20 blocks."""
    dense = {"retriever": retriever, "index": memory.index} if method != "bm25" else {}
    how: dict[str, Any] = {
        "dense": {},
        "bm25": {"bm25_tokens": "pieces"},
        "hybrid": {"bm25_tokens": "pieces", "fusion": "ranks"},
    }[method]
    search = load_search(blocks=memory.blocks, method=method, precision="fp32", **how, **dense)
    rank = list[float]()
    for start in range(0, len(asked), AT_ONCE):
        batch = asked[start : start + AT_ONCE]
        _, rows = search.search_batch([question for question, _ in batch], DEPTHS[-1])
        for (_, sentence), found in zip(batch, rows, strict=True):
            hits = (at for at, row in enumerate(found) if sentence in search.blocks[int(row)].text)
            rank.append(next(hits, float("inf")))
    return {str(depth): share(at < depth for at in rank) for depth in DEPTHS}


def found(memory: Memory, retriever: Artifact, method: str, questions: Questions) -> dict[str, dict[str, float]]:
    """Return how often the blocks that tell the new, the old and the unchanged facts come first."""
    sought = {
        "new": [(record["question"], record["new_sentence"]) for record in questions.changed],
        "old": [(record["question"], record["old_sentence"]) for record in questions.changed],
        "unchanged": [(record["question"], record["sentence"]) for record in questions.unchanged],
    }
    return {name: telling(memory, retriever, method, asked) for name, asked in sought.items() if asked}


def counts_of(revised: Artifact) -> dict[str, int]:
    """Return how many blocks a revision has, and how many of them it kept."""
    return {"newer": revised.metrics["blocks"], "kept": revised.metrics["blocks_kept"]}


class Spent:
    """What each artifact cost when it was made, kept in a file, since an artifact that is found again costs nothing."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.by_name: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}

    def __call__(self, name: str, made: tuple[Made, Any]) -> Made:
        """Keep the cost under a name, unless one is there. Return what was made."""
        if name not in self.by_name:
            self.by_name[name] = made[1]
            write_whole(self.file, self.by_name)
        return made[0]


def main() -> None:
    """Run the command line: measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--retriever", type=Path, required=True)
    parser.add_argument("--max-wordpieces", type=int, default=96)
    parser.add_argument("--reader", type=Path, required=True, help="BERT folder that the reader starts from")
    parser.add_argument("--steps", type=int, default=300, help="steps of its fine-tuning (default 300; 0: no reader)")
    parser.add_argument("--asked", type=int, default=500, help="most questions of each kind (default 500)")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--command", default="", help="the command that the page names")
    given = parser.parse_args()

    pairs, retriever = given.folder / "pairs", open_artifact(given.retriever)
    questions = Questions(*(records[: given.asked] for records in read_questions(pairs)))
    maker, tokenizer = Maker(given.folder / "artifacts", retriever, time.process_time), retriever.path / "tokenizer"
    spent = Spent(given.folder / "seconds.json")
    length = given.max_wordpieces
    older = Memory(spent("chunk", maker.chunked(pairs / "older.jsonl", tokenizer, length, "older")))
    revised = Memory(spent("revise", maker.revised_blocks(older.blocks, "revised", edits=pairs / "edits.jsonl")))
    chunked, _ = maker.chunked(pairs / "newer.jsonl", tokenizer, length, "newer")
    results: dict[str, Any] = {
        "command": given.command,
        "machine": machine(),
        "retriever": retriever.content,
        "pairs": json.loads((pairs / "counts.json").read_text(encoding="utf-8")),
        "asked": {"changed": len(questions.changed), "unchanged": len(questions.unchanged)},
        "max_wordpieces": length,
        "blocks": {"older": older.blocks.metrics["blocks"], **counts_of(revised.blocks)},
        "same_blocks": revised.blocks.content == chunked.content,
        "found": {},
        "seconds": spent.by_name,
    }
    if given.results.exists():
        former = json.loads(given.results.read_text(encoding="utf-8"))
        if all(former[key] == results[key] for key in ("retriever", "asked", "max_wordpieces", "blocks")):
            results |= {key: former[key] for key in ("found", "people_asked") if key in former}
    by_people = Questions(json_lines(path), []) if (path := pairs / "asked.jsonl").exists() else Questions([], [])

    def search(method: str) -> None:
        if method in results["found"]:
            return
        memories = {"before": older, "after": revised}
        results["found"][method] = {
            when: found(memory, retriever, method, questions) for when, memory in memories.items()
        }
        if by_people.changed:
            asked = {when: found(memory, retriever, method, by_people) for when, memory in memories.items()}
            results.setdefault("people_asked", {"questions": len(by_people.changed)})[method] = asked
        write_whole(given.results, results)

    search("bm25")
    older = spent("older", maker.embedded(older.blocks, "older"))
    revised = spent("revised", maker.embedded(revised.blocks, "revised", older))
    search("dense")
    search("hybrid")
    if given.steps:
        qa_model = stages.Finetune(
            blocks=older.blocks,
            retriever=retriever,
            index=older.index,
            bert=str(given.reader),
            questions=pairs / "train.jsonl",
            steps=given.steps,
            batch_size=8,
            lr=2e-4,
            warmup=20,
            optimizer="adamw",
            retriever_beam=20,
            reader_beam=3,
            reader_length=192,
            freeze_retriever=True,
            precision="fp32",
        ).make(given.folder / "artifacts" / "qa-model")
        weights = qa_model.content
        said = {
            name: answers(qa_model, memory, questions.texts) for name, memory in (("before", older), ("after", revised))
        }
        verify(again := open_artifact(qa_model.path))  # hashes every file anew
        results["reader"] = {
            "steps": given.steps,
            "trained_on": len(json_lines(pairs / "train.jsonl")),
            "em": {name: questions.scores(told) for name, told in said.items()},
            "weights_unchanged": again.content == weights,
        }
    write_whole(given.results, results)


if __name__ == "__main__":
    main()

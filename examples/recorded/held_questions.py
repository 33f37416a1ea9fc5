"""Keep the questions whose answer a corpus holds: examples/recorded/held_questions.py BLOCKS OUT NAME=FILE ...

An answer is held if one of BM25's first --hits blocks has it. FILE is in any layout that `eval-em` reads, or has a question as "text" and
the sentences that answer it as metadata.answer_sentences (SelQA); these are answers then. Writes OUT/NAME.jsonl, {"question", "answer"}; a name of
ORQA's regular expressions, such as CuratedTREC's, keeps them. A file that is there is not written again.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from realmctl import stages
from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import RealmctlError
from realmctl.retrieval.answering.score_files import entries


def with_answer_sentences(path: Path) -> Iterator[dict[str, object]]:
    """Yield the questions of a file in SelQA's layout as questions whose answers are sentences."""
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if told := record.get("metadata", {}).get("answer_sentences"):
            yield {"question": record["text"], "answer": told}


def held(blocks: Artifact, path: Path, hits: int, scratch: Path) -> list[dict[str, object]]:
    """Return the questions of a file with an answer among BM25's first blocks, with all their answers."""
    first = path.open(encoding="utf-8").readline()
    if '"answer_sentences"' in first:
        lines = [json.dumps(record, ensure_ascii=False) for record in with_answer_sentences(path)]
        path = scratch / path.name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    scores = stages.EvalEm(blocks=blocks, retrieval="bm25", questions=path, hits=hits).make(scratch / "scores")
    return [
        {"question": entry["question"], "answer": entry["answers"]}
        for entry in entries(scores)
        if any(context["has_answer"] for context in entry["ctxs"])
    ]


def main() -> None:
    """Run the command line: write the files, and print how many questions were kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("questions", nargs="+", help="NAME=FILE")
    parser.add_argument("--hits", type=int, default=100, help="number of blocks (default 100)")
    given = parser.parse_args()
    try:
        blocks = open_artifact(given.blocks)
        for name, _, path in (text.partition("=") for text in given.questions):
            to = given.out / f"{name}.jsonl"
            if not to.exists():
                with tempfile.TemporaryDirectory() as scratch:
                    kept = held(blocks, Path(path), given.hits, Path(scratch))
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in kept), encoding="utf-8")
            print(f"{name}: {len(to.read_text(encoding='utf-8').splitlines())} questions")
    except (RealmctlError, OSError) as error:
        raise SystemExit(f"held_questions: {error}") from None


if __name__ == "__main__":
    main()

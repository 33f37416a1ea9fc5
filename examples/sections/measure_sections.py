"""Measure whether a search finds more where vectors and BM25 read the section of a block behind its title, and append each measurement to a file.

    python examples/sections/measure_sections.py --retriever FOLDER --results RUNS.jsonl --workspace FOLDER NAME=DOCUMENTS,QUESTIONS.jsonl ...

All arms have the same blocks, and differ in what stands where the title stands: `title` alone; `section`, the title and all headings around the block;
`innermost`, the title and the last of these. A question is a JSON line with `id`, `text`, the `document` that answers it, and `pattern`, a regular expression of
the passage; where that is empty any passage of the document counts, and documents are ranked by their best one. A measurement is the rank of the first right
one among 50, 0 where there is none, of each question. What the workspace has is not made again.
"""

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from realmctl.artifacts import Artifact
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.sections import BETWEEN
from realmctl.pipeline.discovery import own_stages
from realmctl.retrieval.search.opening import load_search

DEPTH = 50
ARMS = ("title", "section", "innermost")
SEARCHES = {"dense": "dense", "default": None}
LONGER = 2
"""Names have so many times the room of a block, so that no arm loses text."""


class Passage(NamedTuple):
    """A block that was found."""

    block: str
    document: str
    text: str


def name_of(block: Block, arm: str) -> str:
    """What stands where the title of a block stands."""
    path = block.section.split(BETWEEN) if block.section else []
    named = {"title": [], "section": path, "innermost": path[-1:]}[arm]
    return BETWEEN.join(filter(None, [block.title, *named]))


def renamed(blocks: Artifact, arm: str, folder: Path, retriever: Path, most: int) -> Artifact:
    """The same blocks with other names, each a passage."""
    folder.mkdir(parents=True, exist_ok=True)
    passages = folder / "passages.jsonl"
    lines = ({"id": each.id, "title": name_of(each, arm), "text": each.text} for each in Corpus(blocks))
    passages.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    chunk = own_stages()["chunk"](
        corpus=(passages,), tokenizer=str(retriever / "tokenizer"), max_wordpieces=most, keep_passages=True, workers=1
    )
    return chunk.make(folder / "blocks")


def first_right(hits: Iterable[Passage], question: Mapping[str, str]) -> int:
    """The rank of the first right passage, or of the document of one; 0: there is none."""
    seen = dict[str, None]()
    for hit in hits:
        seen[hit.block if question["pattern"] else hit.document] = None
        if hit.document == question["document"] and re.search(question["pattern"], hit.text):
            return len(seen)
    return 0


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--retriever", "--results", "--workspace"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--max-wordpieces", type=int, default=128)
    parser.add_argument("sets", nargs="+", metavar="NAME=DOCUMENTS,QUESTIONS")
    given, stages = parser.parse_args(), own_stages()
    for each in given.sets:
        name, _, files = each.partition("=")
        documents, _, questions = files.rpartition(",")
        folder = given.workspace / Path(documents).name
        words = {"tokenizer": str(given.retriever / "tokenizer"), "max_wordpieces": given.max_wordpieces}
        cut = stages["chunk"](corpus=(Path(documents),), bad_files="skip", workers=1, **words).make(folder / "blocks")
        document_of = {block.id: block.document for block in Corpus(cut)}
        asked = [json.loads(line) for line in Path(questions).read_text(encoding="utf-8").splitlines()]
        for arm in given.arms:
            own = folder / arm
            blocks = renamed(cut, arm, own, given.retriever, LONGER * given.max_wordpieces)
            vectors = stages["embed"](blocks=blocks.path, retriever=given.retriever).make(own / "embeddings")
            index = stages["build-index"](embeddings=vectors.path, type="exact").make(own / "index")
            for search, method in SEARCHES.items():
                found = load_search(own, method=method, blocks=blocks, retriever=given.retriever, index=index)
                ranks = []
                for one in asked:
                    hits = (hit.block for hit in found.search(one["text"], DEPTH))
                    ranks.append(first_right((Passage(b.id, document_of[b.id], b.text) for b in hits), one))
                measured = {"set": name, "arm": arm, "search": search, "blocks": len(Corpus(blocks)), "ranks": ranks}
                with given.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()

"""Write files of questions for measure_sections.py.

    python examples/sections/section_sets.py own QUESTIONS.tsv OUT.jsonl
    python examples/sections/section_sets.py index bookindex.html FOLDER OUT.jsonl
    python examples/sections/section_sets.py pages BEIR_FOLDER FOLDER OUT.jsonl

own: Questions that were written for this: the question, the file, and a pattern of the passage, with tabs between them.
index: The terms of the index of DocBook's HTML, of which each leads to one place: a passage of that page with the term is right.
pages: The queries of a BEIR folder that are judged by page, for the man pages of a folder that are named so.
"""

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOST, SEED = 1000, 0
KIND = re.compile(r" (?:configuration parameter|function|command|data type|operator|clause|privilege)s?$")
GENERIC = ("configuration", "function", "command", "data", "in", "and", "for", "of", "with")
Question = dict[str, str]


def own(table: Path) -> Iterator[Question]:
    """The questions of a file of them."""
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines()):
        text, document, pattern = line.split("\t")
        yield {"id": f"{table.stem}-{number}", "text": text, "document": document, "pattern": pattern}


def index(page: Path, folder: Path) -> list[Question]:
    """The terms of an index that lead to one page of the folder, in an order of chance, at most 1,000."""
    from selectolax.lexbor import LexborHTMLParser

    found = list[Question]()
    for entry in LexborHTMLParser(page.read_text(encoding="utf-8")).css(".index dt"):
        links = entry.css("a[href]")
        document = (links[0].attributes["href"] or "").partition("#")[0] if len(links) == 1 else ""
        if not document or not (folder / document).is_file():
            continue
        term = _term(entry)
        around = entry.parent.parent
        above = around.prev if around is not None and around.tag == "dd" else None
        while above is not None and above.tag != "dt":
            above = above.prev
        head = _term(above) if above is not None else ""
        named = KIND.sub("", head if head and term.split()[0] in GENERIC else term)
        pattern = "(?i)" + re.escape(named).replace("\\ ", "\\s+")
        body = LexborHTMLParser((folder / document).read_text(encoding="utf-8")).body
        if body is not None and re.search(pattern, " ".join(body.text().split())):
            text = f"{head} {term}".strip() if head != term else term
            found.append({"id": f"index-{len(found)}", "text": text, "document": document, "pattern": pattern})
    random.Random(SEED).shuffle(found)
    return found[:MOST]


def _term(entry: object) -> str:
    """The term of an entry, without the titles of the places to which it leads."""
    text = " ".join(entry.text().split())  # type: ignore[attr-defined]
    links = entry.css("a[href]")  # type: ignore[attr-defined]
    return (text.split(f", {' '.join(links[0].text().split())}")[0] if links else text).strip(" ,")


def pages(collection: Path, folder: Path) -> Iterator[Question]:
    """The queries of a collection whose page is a file of the folder, whatever its ending."""
    files = {path.stem: path.name for path in folder.iterdir()}
    right = dict[str, str]()
    for judged in sorted((collection / "qrels").glob("*.tsv")):
        for line in judged.read_text(encoding="utf-8").splitlines()[1:]:
            query, page, _ = line.split("\t")
            right[query] = "" if query in right else page
    for line in (collection / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        if document := files.get(right.get(query["_id"], "")):
            yield {"id": query["_id"], "text": query["text"], "document": document, "pattern": ""}


def main() -> None:
    """Run the command line."""
    kind, *inputs, out = sys.argv[1:]
    questions = {"own": own, "index": index, "pages": pages}[kind](*map(Path, inputs))  # type: ignore[operator]
    Path(out).write_text("".join(f"{json.dumps(question)}\n" for question in questions), encoding="utf-8")


if __name__ == "__main__":
    main()

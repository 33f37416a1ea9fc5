"""Write a world to disk: corpora as WikiExtractor JSON trees, questions and facts as JSON lines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase

from realmctl.execution.batches import batched
from realmctl.extras.demo.world.corpora import WorldDocument

DOCUMENTS_PER_FILE = 1000
FILES_PER_FOLDER = 100


def write_corpus(folder: Path, documents: Sequence[WorldDocument]) -> None:
    """Write `AA/wiki_00`, `AA/wiki_01`, ... with a JSON object on each line, like WikiExtractor --json --links."""
    for number, group in enumerate(batched(documents, DOCUMENTS_PER_FILE)):
        subfolder, file = divmod(number, FILES_PER_FOLDER)
        letters = ascii_uppercase[subfolder // 26] + ascii_uppercase[subfolder % 26]
        write_json_lines(folder / letters / f"wiki_{file:02}", map(_wiki_record, group))


def write_json_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    """Write a JSON object on each line. Missing parent folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _wiki_record(document: WorldDocument) -> dict[str, str]:
    url = f"https://example.org/world?curid={document.id}"
    return {"id": document.id, "revid": "1", "url": url, "title": document.title, "text": document.text}

"""A mixed folder of documents, and forty questions asked of it by realmctl and by other tools.

    python examples/search_box/mixed_folder.py make usr/share/doc/rsyslog-doc/html FOLDER
    python examples/search_box/mixed_folder.py ask TOOL FOLDER QUESTIONS.tsv --encoder ENCODER --workspace NEW

`make` takes the pages of Debian's package rsyslog-doc as HTML, Word, OpenDocument, EPUB, PDF, Markdown, reStructuredText and plain text, with
twelve copies under other names, the pictures and a log. It needs the programs pandoc and groff. `ask` makes the folder searchable by one tool and asks
the questions: nDCG@10 over documents, each by its best passage, a document and its copies counted as one. The tools are `realmctl` (`index-docs`
and `search`), `script` (sentence-transformers and passages of 200 words), the same
with converters for office files and PDFs, `txtai` and `llama-index`. Each has the same encoder, and one
line of JSON with the result. Those of others read what their own readers know.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

PASSAGES, DOCUMENTS, WORDS = 100, 10, 200
Ranked = Callable[[str], Iterable[str]]
"""Takes a question, and returns the files of its passages, best first."""
OFFICE = {"concepts": ("docx", ".docx"), "troubleshooting": ("odt", ".odt"), "installation": ("epub", ".epub")}
MARKUP = {"development": ("gfm", ".md"), "historical": ("plain", ".txt")}
LINES = (
    "accepted a connection from 10.0.{}.{}", "queue main Q holds {} messages", "action {} resumed after {} s",
    "rotated /var/log/messages at {} MB", "imuxsock lost {} messages from pid {}",
)  # fmt: skip


def make(html: Path, folder: Path) -> None:
    """Write the folder. html: the folder of the pages."""
    folder.mkdir(parents=True)
    (folder / "tutorials").mkdir()
    for page in (html / "tutorials").glob("*.html"):
        shutil.copy(page, folder / "tutorials")
    for part, (form, suffix) in {**OFFICE, **MARKUP}.items():
        for page in sorted((html / part).glob("*.html")):
            _written(page, form, folder / part / f"{page.stem}{suffix}")
    for page in sorted((html / "whitepapers").glob("*.html")):
        source = _written(page, "ms", folder / "papers" / f"{page.stem}.ms")
        with source.with_suffix(".pdf").open("wb") as out:
            subprocess.run(
                ["groff", "-ms", "-k", "-t", "-Tpdf", source], stdout=out, stderr=subprocess.DEVNULL, check=True
            )
        source.unlink()
    (folder / "containers").mkdir()
    for part in ("containers", "faq"):
        for page in (html / "_sources" / part).glob("*.rst.txt"):
            shutil.copy(page, folder / "containers" / page.stem)
    shutil.copytree(html / "_images", folder / "pictures")
    (folder / "old").mkdir()
    for page in sorted((folder / "tutorials").iterdir())[:8]:
        shutil.copy(page, folder / "old" / page.name)
    for page in sorted((folder / "concepts").iterdir())[:4]:
        shutil.copy(page, folder / "old" / f"copy of {page.name}")
    with (folder / "server.log").open("w", encoding="utf-8") as log:
        for n in range(5000):
            at = f"Nov {1 + n // 240:2} {n // 10 % 24:02}:{n % 60:02}:{n * 7 % 60:02}"
            log.write(f"{at} gate rsyslogd[{900 + n % 7}]: {LINES[n % 5].format(n % 97, n % 61)}\n")


def _written(page: Path, form: str, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    text = page.read_text(encoding="utf-8")
    body = re.search(r'(?s)<div class="body"[^>]*>(.*?)<div class="sphinxsidebar"', text) or re.search(
        r"(?s)<body>(.*)</body>", text
    )
    assert body
    words = [
        "pandoc",
        "-f",
        "html",
        "-t",
        form,
        "-s",
        "-M",
        f"title={page.stem.replace('_', ' ')}",
        "-o",
        target.resolve(),
    ]
    subprocess.run(words, input=body[1], text=True, check=True, cwd=page.parent, stderr=subprocess.DEVNULL)
    return target


def realmctl(folder: Path, encoder: str, workspace: Path) -> Iterator[tuple[str, Ranked]]:
    import realmctl as package

    command = [sys.executable, "-m", "realmctl", "index-docs", folder, "--encoder", encoder, "-w", workspace]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name, options in {
        "search": {}, "--method dense": {"method": "dense"}, "--method bm25": {"method": "bm25"}, "--fusion ranks": {"fusion": "ranks"},
    }.items():  # fmt: skip
        search = package.load_search(workspace, **options)
        yield name, lambda question, search=search: [hit.block.document for hit in search.search(question, PASSAGES)]


def _texts(folder: Path, all_formats: bool) -> Iterator[tuple[str, str]]:
    """Name and text of each file that a few lines read: HTML and what is text; or of all, office files by pandoc and PDFs by pypdf."""
    from bs4 import BeautifulSoup
    from pypdf import PdfReader

    for path in sorted(folder.rglob("*")):
        if path.suffix == ".html":
            yield str(path), BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").get_text(" ")
        elif path.suffix in (".md", ".rst", ".txt", ".log"):
            yield str(path), path.read_text(encoding="utf-8")
        elif all_formats and path.suffix in (".docx", ".odt", ".epub"):
            yield str(path), subprocess.run(["pandoc", "-t", "plain", path], capture_output=True, text=True).stdout
        elif all_formats and path.suffix == ".pdf":
            yield str(path), " ".join(page.extract_text() for page in PdfReader(path).pages)


def script_and_converters(folder: Path, encoder: str, workspace: Path) -> Iterator[tuple[str, Ranked]]:
    return script(folder, encoder, workspace, True)


def script(folder: Path, encoder: str, workspace: Path, all_formats: bool = False) -> Iterator[tuple[str, Ranked]]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(encoder, device="cpu")
    names, passages = [], []
    for name, text in _texts(folder, all_formats):
        words = text.split()
        for start in range(0, len(words), WORDS):
            names.append(name)
            passages.append(" ".join(words[start : start + WORDS]))
    vectors = model.encode(passages, normalize_embeddings=True)

    def ranked(question: str) -> list[str]:
        scores = vectors @ model.encode(question, normalize_embeddings=True)
        return [names[row] for row in scores.argsort()[::-1][:PASSAGES]]

    yield "cosine", ranked


def txtai(folder: Path, encoder: str, workspace: Path) -> Iterator[tuple[str, Ranked]]:
    from txtai import Embeddings
    from txtai.pipeline import Textractor

    read = Textractor(paragraphs=True, backend=None)
    rows = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".md", ".rst", ".txt", ".log"):
            rows += [(f"{path}#{place}", text, None) for place, text in enumerate(read(str(path)))]
    for hybrid in (False, True):
        found = Embeddings(path=encoder, content=False, hybrid=hybrid)
        found.index(rows)
        yield (
            "hybrid" if hybrid else "dense",
            lambda question, found=found: [name.rpartition("#")[0] for name, _ in found.search(question, PASSAGES)],
        )


def llama_index(folder: Path, encoder: str, workspace: Path) -> Iterator[tuple[str, Ranked]]:
    from llama_index.core import Settings, SimpleDirectoryReader, VectorStoreIndex
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    Settings.embed_model = HuggingFaceEmbedding(encoder, device="cpu")
    pictures = ["*.png", "*.jpg"]
    documents = SimpleDirectoryReader(folder, recursive=True, exclude=pictures, raise_on_error=False).load_data()
    retriever = VectorStoreIndex.from_documents(documents).as_retriever(similarity_top_k=PASSAGES)
    yield "defaults", lambda question: [node.metadata["file_path"] for node in retriever.retrieve(question)]


TOOLS: Mapping[str, Callable[[Path, str, Path], Iterator[tuple[str, Ranked]]]] = {
    "realmctl": realmctl, "script": script, "script-and-converters": script_and_converters, "txtai": txtai,
    "llama-index": llama_index,
}  # fmt: skip


def _name(file: str) -> str:
    return Path(file).stem.removeprefix("copy of ")


def measured(ranked: Ranked, questions: list[list[str]]) -> dict[str, Any]:
    """nDCG@10 of each question, and how many have a right document first."""
    gains, first = [], 0
    for _, question, pages in questions:
        wanted = {*pages.split("|")}
        found = [*dict.fromkeys(map(_name, ranked(question)))][:DOCUMENTS]
        gain = sum(1 / math.log2(place + 2) for place, name in enumerate(found) if name in wanted)
        gains.append(gain / sum(1 / math.log2(place + 2) for place in range(len(wanted))))
        first += found[:1] != [] and found[0] in wanted
    return {"ndcg_10": round(sum(gains) / len(gains), 3), "first": first, "each": [round(gain, 4) for gain in gains]}


def ask(tool: str, folder: Path, questions: list[list[str]], encoder: str, workspace: Path) -> None:
    """Print the result of each search of a tool, with the seconds until it could be asked: of the clock, and of the processor."""
    start, used = time.monotonic(), os.times()
    for name, ranked in TOOLS[tool](folder, encoder, workspace):
        now = os.times()
        spent = {
            "seconds": round(time.monotonic() - start, 1),
            "cpu_seconds": round(sum(now[:4]) - sum(used[:4]), 1),
        }
        print(json.dumps({"tool": tool, "search": name, **spent, **measured(ranked, questions)}), flush=True)
        start, used = time.monotonic(), os.times()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in {"make": ("html", "folder"), "ask": ("folder", "questions")}.items():
        command = commands.add_parser(name)
        if name == "ask":
            command.add_argument("tool", choices=TOOLS)
            command.add_argument("--encoder", required=True)
            command.add_argument("--workspace", type=Path, required=True)
        for word in words:
            command.add_argument(word, type=Path)
    options = parser.parse_args()
    if options.command == "make":
        make(options.html, options.folder)
    else:
        questions = [line.split("\t") for line in options.questions.read_text(encoding="utf-8").splitlines()]
        ask(options.tool, options.folder, questions, options.encoder, options.workspace)


if __name__ == "__main__":
    main()

"""MkDocs hooks of the documentation site: pages from outside docs/, the Python reference, links to files that are not pages.

README.md, CONTRIBUTING.md and others stay where readers of the repository expect them. The site shows each of them under
the address that OUTSIDE gives it. Links in all pages are written for the repository; the hooks translate them. The Python
reference lists the modules of what `realmctl.load` returns, and mkdocstrings fills it from their docstrings without importing them.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "examples/ablation/notes.md": "results/ablation-notes.md",
    "benchmarks/README.md": "results/benchmarks.md",
    "benchmarks/dump_to_blocks.md": "results/dump_to_blocks.md",
    "benchmarks/embedding.md": "results/embedding.md",
    "benchmarks/index_update.md": "results/index_update.md",
    "benchmarks/plan.md": "results/plan.md",
    "benchmarks/pretrain_step.md": "results/pretrain_step.md",
    "benchmarks/serve.md": "results/serve.md",
}
"""Pages outside docs/: path in the repository -> path in the site's sources."""
IN_REPOSITORY = {site: path for path, site in OUTSIDE.items()}
COMMANDS = "reference/commands.md"
PYTHON_API = "reference/python-api.md"
PICTURE = re.compile(r'(?<= src=")docs/|(?<= srcset=")docs/')
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Put the pages of the commands below `Commands`, in the groups of their overview."""
    overview = (ROOT / "docs" / COMMANDS).read_text(encoding="utf-8")
    groups = re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", overview, re.MULTILINE)
    pages = [
        {
            group: [
                {name: f"reference/{page}"} for name, page in re.findall(r"^\| \[(.+?)\]\((\S+)\)", text, re.MULTILINE)
            ]
        }
        for group, text in groups
    ]
    for section in config.nav:
        for entries in section.values():
            for entry in entries if isinstance(entries, list) else ():
                if entry.get("Commands") == COMMANDS:
                    entry["Commands"] = [{"Overview": COMMANDS}, *(group for group in pages if any(group.values()))]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/ and the Python reference to the site."""
    for path, site in OUTSIDE.items():
        files.append(File.generated(config, site, content=(ROOT / path).read_text(encoding="utf-8")))
    files.append(File.generated(config, PYTHON_API, content=python_api()))
    return files


def python_api() -> str:
    """Return the page of the Python reference, with one directive of mkdocstrings for each module of the API."""
    rooms = ("search.searcher", "search.text_search", "loaded_retriever", "loaded_index")
    answers = ("answering.answerer", "answering.qa_model", "answering.pretrained_model")
    names = [
        "realmctl.loading",
        "realmctl.corpus.corpus",
        *(f"realmctl.retrieval.{room}" for room in (*rooms, *answers)),
    ]
    names += ["realmctl.artifacts.artifact", "realmctl.errors"]
    head = (
        "# Python API\n\nGenerated from docstrings. [From Python](../python.md) is the introduction, with examples.\n"
    )
    return "\n".join([head, *(f"::: {name}\n" for name in names)])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Translate the links of a page, and the pictures of README."""
    if page.file.src_uri == "index.md":
        markdown = PICTURE.sub("", markdown)
    return LINK.sub(lambda link: translated(link, page.file.src_uri), markdown)


def translated(link: re.Match[str], site: str) -> str:
    """Return a Markdown link as the site needs it.

    Args:
        link: A match of LINK, whose target is relative to the page's place in the repository.
        site: The page's path in the site's sources.

    Returns:
        The link to the page's place in the site, or the link's text alone where the target is a file but not a page.
    """
    text, target, anchor = link[1], link[2], link[3] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    here = IN_REPOSITORY.get(site, f"docs/{site}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if path in OUTSIDE:
        there = OUTSIDE[path]
    elif path == "docs":
        there = "tutorial.md"
    elif path.startswith("docs/") and path.endswith(".md"):
        there = path.removeprefix("docs/")
    elif (ROOT / path).exists():
        return text
    else:
        return link[0]  # MkDocs reports it
    return f"[{text}]({os.path.relpath(there, posixpath.dirname(site) or '.')}{anchor})"

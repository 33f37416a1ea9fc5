"""Write the sources of the documentation site into build/: python docs/make_site.py [FOLDER]. `mkdocs build -f build/mkdocs.yml` follows.

README.md, CONTRIBUTING.md and others stay where readers of the repository expect them. The site shows each of them under
the address that OUTSIDE gives it. Links in all pages are written for the repository and translated here. The Python reference lists the modules of what `realmctl.load` returns, and mkdocstrings fills it
from their docstrings without importing them. llms.txt lists the pages for language models (llmstxt.org).
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages outside docs/: path in the repository -> path in the site's sources."""
LEFT_OUT = re.compile(r"docs/results/[^/]+/.*")
"""Pages of docs/ that the site leaves out: reports and notes beside their runs, which its pages quote."""
CODE = re.compile(r"(?<=<code>)[^<\n]+(?=</code>)")
OPTION = re.compile(r"--(?:\[no-\])?[\w-]+")
LONG_NAME = re.compile(r"^\S{20,}$")
PYTHON_API = "reference/python-api.md"
TWO_SCHEMES = re.compile(
    r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img src="([^"]+)"([^>]*)></picture>'
)
"""A picture that is another one on dark screens. The site has a switch of its own, which Material's marks of addresses follow."""
PICTURE = re.compile(r'(?<= src=")docs/|(?<= srcset=")docs/')
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]*)(#[^)\s]*)?\)")
MAX_SUMMARY = 200
BOOSTS = {"Home": 2.0, "Start": 2.0, "How-to": 2.0, "Results": 0.35, "Project": 0.2}
"""How much more a page of a section counts in the site's search: what to do comes before what was measured, and that before notes."""


def make(build: Path) -> Path:
    """Write the sources and the configuration below `build`. Return the configuration's path; the site goes to `build`/site."""
    sources = build / "docs"
    shutil.rmtree(sources, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", sources, ignore=shutil.ignore_patterns("*.py", "__pycache__", "*.json", "*.jsonl", "*.md")
    )
    pages = {str(path.relative_to(ROOT / "docs")): f"docs/{path.relative_to(ROOT / 'docs')}" for path in _markdown()}
    pages |= {site: path for path, site in OUTSIDE.items()}
    for site, path in pages.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        if site == "index.md":
            text = TWO_SCHEMES.sub(r'<img src="\2#only-light"\3><img src="\1#only-dark"\3>', PICTURE.sub("", text))
        (sources / site).parent.mkdir(parents=True, exist_ok=True)
        (sources / site).write_text(
            LINK.sub(lambda link, site=site, path=path: translated(link, site, path), text), encoding="utf-8"
        )
    (sources / PYTHON_API).write_text(python_api(), encoding="utf-8")
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"docs_dir": "docs", "site_dir": "site", "hooks": [__file__]}
    (sources / "llms.txt").write_text(llms_text(config, sources), encoding="utf-8")
    for section in config["nav"]:
        for title, entries in section.items():
            for _, page in _pages(title, entries):
                _boost(sources / page, BOOSTS.get(title, 1.0))
    [python] = [each["mkdocstrings"]["handlers"]["python"] for each in config["plugins"] if "mkdocstrings" in each]
    python["paths"] = [str(ROOT)]
    (build / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return build / "mkdocs.yml"


def _markdown() -> list[Path]:
    paths = sorted((ROOT / "docs").rglob("*.md"))
    return [path for path in paths if not LEFT_OUT.fullmatch(path.relative_to(ROOT).as_posix())]


def on_page_content(html: str, **_: object) -> str:
    """Called by MkDocs for each page: an option is not broken behind its dashes, and a long name may be broken behind its parts."""
    return CODE.sub(lambda code: _broken(code[0]), html)


def _broken(code: str) -> str:
    if LONG_NAME.match(code):
        return re.sub(r"(/|::|_)(?=\w)", r"\1<wbr>", code)
    return OPTION.sub(r'<span class="option">\g<0></span>', code)


def _boost(page: Path, boost: float) -> None:
    page.write_text(f"---\nsearch: {{boost: {boost}}}\n---\n{page.read_text(encoding='utf-8')}", encoding="utf-8")


def python_api() -> str:
    """Return the page of the Python reference, with one directive of mkdocstrings for each module of the API."""
    rooms = ("search.block_search", "search.searcher", "search.text_search", "loaded_retriever", "loaded_index")
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


def llms_text(config: dict[str, Any], sources: Path) -> str:
    """Return llms.txt: what the project is, and each page of the navigation with its first sentence."""
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    for section in config["nav"]:
        for title, entries in section.items():
            pages = [*_pages(title, entries)]
            lines += ["", f"## {title}", ""] if isinstance(entries, list) else [""]
            lines += [
                f"- [{name}]({page.removesuffix('.md')}.html): {_summary(sources / page)}" for name, page in pages
            ]
    return "\n".join(lines) + "\n"


def _pages(title: str, entries: Any) -> Iterator[tuple[str, str]]:
    if isinstance(entries, str):
        yield title, entries
        return
    for entry in entries:
        for name, inner in entry.items():
            yield from _pages(name, inner)


def _summary(page: Path) -> str:
    """The first sentence of a page's text, without its links and marks."""
    for paragraph in page.read_text(encoding="utf-8").split("\n\n"):
        text = " ".join(re.sub(r"<!--.*?-->", "", paragraph, flags=re.DOTALL).split())
        if text and not text.startswith(("#", "<", "|", "```", "-", ":::")):
            text = re.sub(r"[*`]", "", LINK.sub(r"\1", text))
            return re.split(r"(?<=[.:]) ", text)[0][:MAX_SUMMARY]
    return "no text"


def translated(link: re.Match[str], site: str, here: str) -> str:
    """Return a Markdown link as the site needs it.

    Args:
        link: A match of LINK, whose target is relative to the page's place in the repository.
        site: The page's path in the site's sources.
        here: The page's path in the repository.

    Returns:
        The link to the page's place in the site, or the link's text alone where the target is a file but not a page.
    """
    text, target, anchor = link[1], link[2], link[3] or ""
    if not target or "://" in target or target.startswith("mailto:"):
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
    if path in OUTSIDE:
        there = OUTSIDE[path]
    elif path == "docs":
        there = "tutorial.md"
    elif path.startswith("docs/") and path.endswith(".md") and not LEFT_OUT.fullmatch(path):
        there = path.removeprefix("docs/")
    elif (ROOT / path).exists():
        return text
    else:
        return link[0]  # MkDocs reports it
    return f"[{text}]({os.path.relpath(there, posixpath.dirname(site) or '.')}{anchor})"


if __name__ == "__main__":
    print(make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"))

"""The documentation site builds strictly, and its pages load nothing from the network."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.make_site import LEFT_OUT, OUTSIDE, PYTHON_API, make
from tests.fixtures.browser import browser, needs_browser

ROOT = Path(__file__).parents[2]
LOADING = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
NETWORK = re.compile(r"^\s*(?:[a-z]+:)?//", re.IGNORECASE)
NEEDED = ("mkdocs", "material", "mkdocstrings")
needs_mkdocs = pytest.mark.skipif(not all(map(importlib.util.find_spec, NEEDED)), reason="needs the group `docs`")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    config = make(tmp_path_factory.mktemp("site"))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "http_proxy": "", "https_proxy": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return config.parent / "site"


class Loads(HTMLParser):
    """Collects what a browser loads to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a tag that loads something."""
        given = dict(attrs)
        if tag == "link" and "canonical" in (given.get("rel") or ""):
            return
        if (address := given.get(LOADING.get(tag, ""))) is not None:
            self.addresses.append(address)


def loads(html: str) -> list[str]:
    """The addresses that a page loads from the network."""
    parser = Loads()
    parser.feed(html)
    return [address for address in parser.addresses if NETWORK.match(address)]


@needs_mkdocs
def test_every_page_is_in_the_site(site: Path) -> None:
    """But reports and notes that lie beside their runs."""
    paths = [*(ROOT / "docs").rglob("*.md")]
    left_out = [path for path in paths if LEFT_OUT.fullmatch(path.relative_to(ROOT).as_posix())]
    pages = [path.relative_to(ROOT / "docs") for path in paths if path not in left_out]
    for page in [*pages, *map(Path, OUTSIDE.values()), Path(PYTHON_API)]:
        assert (site / page).with_suffix(".html").is_file(), page
    assert left_out and not [
        path for path in left_out if (site / path.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    ]


@needs_mkdocs
def test_pages_load_nothing_from_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert pages
    for page in pages:
        assert not loads(page.read_text(encoding="utf-8")), page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import", text), style


@needs_mkdocs
def test_no_markdown_is_left_on_a_page(site: Path) -> None:
    for page in sorted(site.rglob("*.html")):
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        text = re.sub(r"<(pre|code|script)\b.*?</\1>|<[^>]*>", " ", article, flags=re.DOTALL)
        assert not re.search(r"\|\s*:?--|\*\*\w|\]\(|`\w|^[ \t]*-[ \t]+[A-Za-z]", text, re.MULTILINE), page


@needs_mkdocs
def test_the_python_reference_has_names_and_docstrings(site: Path) -> None:
    text = (site / PYTHON_API).with_suffix(".html").read_text(encoding="utf-8")
    assert "realmctl.errors.MismatchError" in text and "Artifacts do not belong together." in text
    for name in ("loading.load", "retrieval.answering.qa_model.QaModel", "retrieval.search.block_search.Hit"):
        assert f"realmctl.{name}" in text


@needs_mkdocs
def test_links_lead_from_page_to_page(site: Path) -> None:
    """README links to docs/ and docs link to README: in the site both are pages beside each other."""
    home = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="tutorial.html"' in home and 'href="docs/' not in home
    assert 'src="pictures/realm-light.svg#only-light"' in home and 'src="pictures/realm-dark.svg#only-dark"' in home
    assert "../examples/" not in (site / "refresh.html").read_text(encoding="utf-8")


@pytest.mark.slow
@needs_mkdocs
@needs_browser
def test_nothing_runs_out_of_its_box(site: Path, tmp_path: Path) -> None:
    """Neither a command nor a table at 1200 pixels, nor a page on a phone."""
    boxes = "[...document.querySelectorAll('article pre > code, article .md-typeset__scrollwrap')]"
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    wide = {}
    with browser(tmp_path) as tab:
        for page in pages:
            tab.open(page.as_uri(), width=1200)
            if found := tab.evaluate(
                f"{boxes}.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent.trim().slice(0, 80))"
            ):
                wide[page.name] = found
        for name in ("index", "tutorial", "contributing", "results/starts", "reference/commands"):
            tab.open((site / f"{name}.html").as_uri(), width=390)
            if tab.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
                wide[f"{name} on a phone"] = ["the page"]
    assert not wide


SEARCHED = {
    "adapt": "how-to/adapt-without-labels",
    "faiss": "how-to/choose-index",
    "quantization": "how-to/choose-index",
    "exact match": "reference/scoring",
    "evaluation": "how-to/own-questions",
    "CUDA out of memory": "how-to/when-something-goes-wrong",
    "resume": "how-to/when-something-goes-wrong",
    "Japanese": "how-to/other-languages",
    "refresh daemon": "refresh",
    "vllm": "lab/language-models",
    "RAG": "lab/language-models",
    "LLM": "lab/language-models",
    "langchain": "how-to/other-programs",
    "reranker": "how-to/search-and-rank",
    "GPU": "how-to/install",
    "Windows": "how-to/install",
    "PDF": "how-to/own-corpus",
    "wikipedia dump": "how-to/own-corpus",
    "own documents": "how-to/own-corpus",
    "embedding model": "how-to/own-encoder",
    "sentence-transformers": "how-to/own-encoder",
    "yaml": "how-to/pipeline-file",
    "exit code 75": "reference/exit-codes",
    "projection-init": "reference/commands",
}
"""What people type, and the page that answers."""


@pytest.mark.slow
@needs_mkdocs
@needs_browser
def test_search_leads_to_the_page_that_answers_also_in_pages_that_are_opened_from_files(
    site: Path, tmp_path: Path
) -> None:
    links = "[...document.querySelectorAll('.md-search-result__item > .md-search-result__link')]"
    far = {}
    with browser(tmp_path) as page:
        page.open((site / "how-to" / "serve.html").as_uri())
        page.evaluate(
            "const toggle = document.getElementById('__search'); toggle.checked = true; toggle.dispatchEvent(new Event('change'));"
            " const box = document.querySelector('input.md-search__input'); box.focus(); const type = (words) => {"
            " box.value = words; box.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true})); }"
        )
        for words, answer in SEARCHED.items():
            page.evaluate("type('')")
            page.wait_for(f"{links}.length === 0")
            page.evaluate(f"type({json.dumps(words)})")
            page.wait_for(f"{links}.length > 0")
            found = page.evaluate(f"{links}.slice(0, 4).map((link) => link.href)")
            if not any(address.startswith((site / answer).with_suffix(".html").as_uri()) for address in found):
                far[words] = found
    assert not far


@needs_mkdocs
def test_llms_txt_lists_pages_that_are_there_each_with_a_sentence(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# realmctl\n\n> ")
    pages = re.findall(r"^- \[(.+)\]\((\S+)\): (.+)$", text, re.MULTILINE)
    assert len(pages) == text.count("\n- ") > 40 and {"tutorial.html", "reference/commands.html"} <= {
        p[1] for p in pages
    }
    for name, page, sentence in pages:
        assert (site / page).is_file() and name and len(sentence.split()) > 2, page


def test_the_check_itself_finds_what_a_page_loads() -> None:
    page = '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="//fonts.example/f.css">'
    page += '<img src="plot.svg"><a href="https://example.org">a link loads nothing</a>'
    assert loads(page) == ["https://cdn.example/x.js", "//fonts.example/f.css"]

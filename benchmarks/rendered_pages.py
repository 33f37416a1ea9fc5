"""Compare what a dump's reader takes of wikitext with what MediaWiki shows of it, word by word, beside WikiExtractor and mwparserfromhell.

    python benchmarks/rendered_pages.py http://127.0.0.1:8080/api.php DUMP [--pages 100]

The address is that of a MediaWiki of your own whose language is that of the dump, with the extensions Cite and ParserFunctions. Debian's does:
`apt-get install mediawiki php-cli php-sqlite3`, `php maintenance/install.php --dbtype sqlite --lang de ...`, `php -S 127.0.0.1:8080`. A dump of
articles lacks the templates, so all are taken out of the wikitext before, and so are formulas and timelines: this measures the markup. Tables, boxes, references, formulas and sections
without prose, which no side is asked for, are taken out of the rendered page.

Peers are measured if they are installed: `pip install mwparserfromhell wikiextractor`.
"""

from __future__ import annotations

import argparse
import json
import re
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from realmctl.corpus.languages import variants_of
from realmctl.corpus.wiki import dump, wikitext
from realmctl.corpus.wiki.namespaces import namespaces
from realmctl.extras.documents.html_lines import page_of

TEMPLATE, PARAMETER = re.compile(r"(?<!\{)\{\{[^{}]*\}\}"), re.compile(r"\{\{\{[^{}]*\}\}\}")
MISSING_FILE = re.compile(r'<a href="[^"]*(?:wpDestFile|Special:Upload)[^"]*"[^<>]*>[^<]*</a>')
HIDDEN = re.compile(r"<!--.*?-->|<(math|chem|timeline)\b[^<>]*>.*?</\1>", re.DOTALL | re.IGNORECASE)
WORD = re.compile(r"\w[\w\u0300-\u036f\u0900-\u0dff\u200c\u200d]*")
MARK = re.compile(
    r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|''+|</?[a-z][^<>]*>|&[a-z]{2,8};|^=+|=+$|^[*#:;]+|__[A-Z]+__", re.MULTILINE
)
DEPTH = 40
EMPTY_REFERENCE = re.compile(r"<ref\b[^<>/]*>\s*</ref>", re.IGNORECASE)
"""A reference of which a template was all: MediaWiki shows an error there."""
Tool = Callable[[str, str], str]


def main() -> None:
    """Print for each tool the share of the rendered words that it loses, the share of its words that are not rendered, and marks left in 1000 words."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("api")
    parser.add_argument("dump", type=Path)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--show", type=int, default=0, help="Print so many of the words that ours loses and adds.")
    asked = parser.parse_args()
    site, pages = _articles(asked.dump, asked.pages)
    whole = [page for page in pages if page[1].count("{|") == page[1].count("|}")]
    print(f"{len(pages) - len(whole)} of {len(pages)} articles are left out: their tables begin or end in templates")
    pages = whole
    tools = _tools(site)
    lost, added, words, given, marks = (Counter[str]() for _ in range(5))
    missing, extra = Counter[str](), Counter[str]()
    for title, text in pages:
        shown = Counter(WORD.findall(rendered(asked.api, title, text)))
        for name, tool in tools.items():
            taken = tool(title, text)
            found = Counter(WORD.findall(taken))
            lost[name] += (shown - found).total()
            added[name] += (found - shown).total()
            words[name] += shown.total()
            given[name] += found.total()
            marks[name] += len(MARK.findall(taken))
            if name == "realmctl":
                missing += shown - found
                extra += found - shown
    print(
        f"{asked.dump.name}: {len(pages)} articles, {words['realmctl']:,} words rendered, language {site.language or 'unknown'}"
    )
    print("| tool | words lost | words added | marks in 1000 words |\n|---|---|---|---|")
    for name in tools:
        print(
            f"| {name} | {lost[name] / words[name]:.2%} | {added[name] / max(1, given[name]):.2%} | {1000 * marks[name] / max(1, given[name]):.2f} |"
        )
    if asked.show:
        print("lost:", *(f"{word} {count}" for word, count in missing.most_common(asked.show)))
        print("added:", *(f"{word} {count}" for word, count in extra.most_common(asked.show)))


def _articles(path: Path, most: int) -> tuple[dump.Site, list[tuple[str, str]]]:
    """The first articles of a dump, without their templates."""
    site, found = dump.Site(), list[tuple[str, str]]()
    for page in dump.pages(path, site, dump.WHOLE):
        if not (dump.skip_page(page) or dump.skip_title(page.title, False) or page.oversized):
            found.append((page.title, without_templates(page.text)))
        if len(found) == most:
            break
    return site, found


def without_templates(text: str) -> str:
    """Wikitext without comments, formulas, timelines and templates, and without parameters of templates."""
    text = HIDDEN.sub("", text.replace("\r\n", "\n"))
    for _ in range(DEPTH):
        shorter = TEMPLATE.sub("", PARAMETER.sub("", text))
        if shorter == text:
            break
        text = shorter
    return EMPTY_REFERENCE.sub("", text)


def rendered(api: str, title: str, text: str) -> str:
    """The prose of what MediaWiki makes of a page."""
    fields = {
        "action": "parse",
        "format": "json",
        "formatversion": "2",
        "contentmodel": "wikitext",
        "prop": "text",
        "title": title,
        "text": text,
    }
    with urllib.request.urlopen(api, urllib.parse.urlencode(fields).encode(), timeout=300) as reply:
        html = json.load(reply)["parse"]["text"]
    found = page_of({"kind": "wiki"}, MISSING_FILE.sub("", html).encode())
    return "\n".join(line for line, *_ in found["lines"])


def _tools(site: dump.Site) -> dict[str, Tool]:
    names = namespaces(site.namespaces, site.language, variants_of("auto", site.language))
    return {"realmctl": lambda _, text: wikitext.prose(text, names)[0], **dict(_peers())}


def _peers() -> Iterator[tuple[str, Tool]]:
    try:
        import mwparserfromhell

        yield "mwparserfromhell", lambda _, text: str(mwparserfromhell.parse(text).strip_code())
    except ImportError:
        print("mwparserfromhell is not installed")
    try:
        from wikiextractor.extract import Extractor

        yield "WikiExtractor", lambda title, text: "\n".join(Extractor("1", "1", "", title, text).clean_text(text))
    except ImportError:
        print("wikiextractor is not installed")


if __name__ == "__main__":
    main()

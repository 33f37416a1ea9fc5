"""Marks of Markdown's dialects are read as their readers show them, and code stays as it is."""

from __future__ import annotations

import time

import pytest

from realmctl.corpus.document import Document
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.extras.documents.markdown_kinds import as_commonmark

pytest.importorskip("selectolax")


def lines(tmp_path, text: str, name: str = "a.md") -> list[str]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    [found] = documents([tmp_path / name], CorpusSettings())
    assert isinstance(found, Document)
    return found.text.split("\n")


KINDS = {
    "struck": ("a ~~b~~ c", ["a b c"]),
    "footnote": ("Text[^1] goes on[^x].\n\n[^1]: One\n    more.\n[^y]: Two.", ["Text goes on[^x].", "One more.", "Two."]),
    "tasks": ("- [ ] open\n- [x] done\n  1. [X] inner\n- [y] no", ["- open", "- done", "1. inner", "- [y] no"]),
    "alert": ("> [!WARNING]\n> It is hot.\n\n> [!abstract]- Its title\n> Words.", ["Warning", "It is hot.", "Its title", "Words."]),
    "box of MkDocs": ('!!! note "Mind this"\n    The valve\n    is hot.\n\n        code = 1\n\n??? tip\n    Sold.\n\nEnd.', ["Mind this", "The valve is hot.", "code = 1", "Tip", "Sold.", "End."]),
    "box without a title": ('!!! danger ""\n    The valve.', ["The valve."]),
    "tabs": ('=== "Linux"\n\n    ```sh\n    valve ~~x~~ [^1]\n    ```\n\n=== "Mac"\n    Other.', ["Linux", "valve ~~x~~ [^1]", "Mac", "Other."]),
    "box of Docusaurus": (":::tip[Close first]\n\nThe valve.\n\n:::\n\n:::note Other title\nX.\n:::\n\n:::info\nY.\n:::\n\n::::{grid} 2\nZ.\n::::", ["Close first", "The valve.", "Other title", "X.", "Info", "Y.", "2", "Z."]),
    "box of pandoc": ("::: {.warning}\nHot.\n:::", ["Warning", "Hot."]),
    "marked": ("==a b== 1==2 a == b, ++ctrl+alt+c++ i++ + ++j", ["a b 1==2 a == b, ctrl+alt+c i++ + ++j"]),
    "links of wikis": ("See [[Wheel of Dole|the wheel]], [[River]], ![[a.png]] and [[1]](x).", ["See the wheel, River, and [1]."]),
    "comments of Obsidian": ("a %%b%% c\n\n%%\nunseen\n%%\n\n100 %% d", ["a c", "100 %% d"]),
    "icons": ("Press :material-home: or :tada: 1:30:45", ["Press or :tada: 1:30:45"]),
    "attributes": ("Words. {#here .cls}\n\n{x} is a set. {year}\n\na[b]{.c key=v}", ["Words.", "{x} is a set. {year}", "a[b]"]),
    "abbreviations": ("*[HTML]: Hyper Text\n\nThe HTML page.\n\n--8<-- \"x.md\"", ["The HTML page."]),
    "definitions": ("Term\n: Words of *it*.\n\nOther\n\n: More.\n\n- item\n: no term", ["Term", "Words of it.", "Other", "More.", "- item : no term"]),
    "code": ("`~~a~~ [^1] [[b]] ==c==` d\n\n~~~\n!!! note\n- [ ] x\n```\n~~~\n\n- [ ] y", ["~~a~~ [^1] [[b]] ==c== d", "!!! note", "- [ ] x", "```", "- y"]),
    "plain": ("1 < 2, a = b, x := 3, 10:30 and C++.\n\n: alone", ["1 < 2, a = b, x := 3, 10:30 and C++.", ": alone"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_mark_is_read_as_it_is_shown(tmp_path, kind):
    text, shown = KINDS[kind]
    assert lines(tmp_path, f"# Title\n\n{text}\n")[0:] == shown
    assert lines(tmp_path, f"# Title\r\n\r\n{text}\r\n".replace("\r\n", "\n").replace("\n", "\r\n"), "b.md") == shown


def test_mdx_loses_its_comments(tmp_path):
    assert lines(tmp_path, 'import A from "a";\n\n# T\n\nSold {/* no words */} since {year}.', "a.mdx") == [
        "Sold since {year}."
    ]


@pytest.mark.parametrize(
    "part",
    [
        "`",
        "~~",
        "[^1]",
        "[[",
        "==",
        "%%a",
        "{.a ",
        "++a",
        ":material-",
        "!!! note\n    ",
        "a\n: b\n",
        ":::",
        "{/*",
        "> [!note]",
    ],
)
def test_hostile_text_takes_linear_time(part):
    begun = time.process_time()
    for count in (5_000, 10_000):
        as_commonmark(part * count)
    assert time.process_time() - begun < 2

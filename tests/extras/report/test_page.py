"""`realmctl report`: one file that needs nothing else, says what is there, and shows hostile text as text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from realmctl.cli import app
from realmctl.extras.report.page import _rendered
from realmctl.extras.report.sources import compared
from tests.extras.report.conftest import WrittenScores

VOID = {"meta", "input", "br"}
LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "xlink:href"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"' {{ 7*7 }} {% raw %} &lt;b&gt; \u202egnp.exe <!-- ]]>"


class Page(HTMLParser):
    """A page's elements, their attributes, its visible text; fails where tags do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len(dict(attrs))
        self.elements.append((tag, dict(attrs)))
        self.text += " " if tag in ("th", "td", "dd") else ""
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if self.open and self.open[-1] in ("script", "style") else data

    def count(self, tag, **attributes):
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.elements)


@pytest.fixture
def page(realmctl, model, scores):
    def make(*arguments):
        code, out, err = realmctl("report", *(arguments or (model.path, scores.path)))
        assert (code, out) == (0, "report.html\n"), err
        return Page(Path("report.html"))

    return make


def test_curves_funnel_and_questions(page, model, scores, chain):
    found = page(model.path, scores.path, "--blocks", chain.blocks.path)
    assert found.count("svg") == 4 and found.count("li", **{"data-failure": "corpus"}) == 1
    assert sum("data-failure" in attributes for _, attributes in found.elements) == 21
    for text in (
        "Index age",
        "2 index refreshes",
        "Not recorded in this run: recall on held-out questions",
        "answer in the corpus",
    ):
        assert text in found.text
    predictions = [json.loads(line)["prediction"] for line in scores.file("predictions.jsonl").read_text().splitlines()]
    marked = re.findall(r'<mark class="(?:answer )?predicted">([^<]*)</mark>', Path("report.html").read_text())
    assert marked[1:] == predictions  # the first explains the mark


def test_nothing_is_loaded_and_nothing_foreign_runs(page):
    found = page()
    for tag, attributes in found.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img") and not LOADING & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert tag == "meta" or (attributes.get("href") or "#").startswith("#")
    text = Path("report.html").read_text()
    assert not re.search(r"https?://|url\((?!#)|@import|fetch\(|XMLHttp|import\(", text)
    policy = next(a["content"] for _, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and found.count("script") == 1


def test_the_policy_allows_the_very_script(page):
    import base64
    import hashlib

    page()
    script = re.search(r"<script>(.*?)</script>", Path("report.html").read_text(), re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"sha256-{digest}" in Path("report.html").read_text().replace("&#43;", "+")


def test_what_made_it_is_there(page, model, scores):
    text = page().text
    for artifact in (model, scores):
        assert artifact.recipe in text and artifact.content in text and artifact.manifest.time in text
        assert artifact.manifest.realmctl in text and artifact.settings.keys() <= set(re.findall(r"\w+", text))


def test_the_same_input_makes_the_same_bytes(page):
    page()
    first = Path("report.html").read_bytes()
    page()
    assert Path("report.html").read_bytes() == first


def hostile_scores(tmp_path):
    context = {
        "id": "1",
        "title": HOSTILE,
        "text": f"x {HOSTILE} y",
        "score": 1.5,
        "has_answer": True,
        "has_answer_substring": True,
    }
    files = {
        "retrieved.json": [{"question": HOSTILE, "answers": [HOSTILE, "x"], "ctxs": [context]}],
        "predictions.jsonl": [{"question": HOSTILE, "prediction": HOSTILE}],
        "evidence.jsonl": [{"answers": [HOSTILE], "read": 1, "rank": 1, "start": 0, "end": 9, "score": 2.0}],
    }
    texts = {name: "".join(json.dumps(line) + "\n" for line in lines) for name, lines in files.items()}
    numbers = {"scorer": "orqa", "em": 1.0, HOSTILE: HOSTILE}
    return WrittenScores(files=json.dumps(texts), numbers=json.dumps(numbers)).make(tmp_path / '<b>"scores')


def test_hostile_text_is_text(page, tmp_path):
    found = page(hostile_scores(tmp_path).path)
    assert found.text.count(HOSTILE) >= 6
    assert found.count("script") == 1 and found.count("img") == found.count("b") == 0
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    html = Path("report.html").read_text(encoding="utf-8")
    for before in re.findall(r"<([^<>]*)>[^<>]*\u202e", html):  # what turns the direction of text is shut in
        assert before.startswith(("bdi", 'p class="text" dir="auto"', "mark", "code", "td", "title"))


def test_questions_are_capped_and_that_is_said(page, scores, model):
    found = page(scores.path, "--questions", 4)
    assert sum("data-failure" in attributes for _, attributes in found.elements) == 4
    assert "4 of 21 questions" in found.text
    assert "of 21 questions:" not in page(scores.path).text


def test_a_workspace_and_several_runs(page, realmctl, chain, scores):
    found = page(scores.path.parents[1], chain.encoder.path, chain.retriever.path.parent.parent / "encoder")
    for text in ("Pre-training", "Fine-tuning", "Encoder", "exact match"):
        assert text in found.text
    written = json.loads(realmctl("report", "-w", scores.path.parents[1], "--json")[1])
    assert [Path(path).parent.name for path in written["artifacts"]] == ["model", "qa-model", "scores"]
    assert written["questions"] == written["shown"] == 21 and written["bytes"] == Path("report.html").stat().st_size


def test_blocks_are_found_by_lineage_or_named(page, scores, chain):
    assert "not looked up" in page(scores.path).text
    assert "not looked up" not in page(scores.path, "--workspace", chain.folder).text
    assert "not looked up" not in page(scores.path, "--blocks", chain.blocks.path).text


def test_what_cannot_be_reported(realmctl, chain, scores, tmp_path):
    from tests.fixtures.blocks import make_blocks

    assert realmctl("report", chain.blocks.path)[0] == 4
    assert realmctl("report", "nowhere")[0] == 3
    Path("empty").mkdir()
    assert realmctl("report", "empty")[0] == 3
    other = make_blocks(tmp_path / "other", {"Ada": [["She wrote."]]})
    assert realmctl("report", scores.path, "--blocks", other.path)[0] == 4
    assert realmctl("report", scores.path, "--questions", -1)[0] == 2
    assert not list(Path().glob("report.html*"))


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_one_paragraph(realmctl, scores, monkeypatch, package):
    import importlib.util

    plain = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *a: None if name == package else plain(name, *a))
    code, out, err = realmctl("report", scores.path)
    assert (code, out) == (5, "") and err.count("\n") == 1
    assert package in err and "pip install 'realmctl[report]'" in err


def test_no_torch_is_needed(scores, tmp_path):
    code = (
        "import sys; from realmctl.cli import app\n"
        f"try: app.main(['report', {str(scores.path)!r}])\n"
        "finally: print('HEAVY', *sorted({'torch', 'transformers', 'spacy'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(Path(app.__file__).parents[2]), "MPLCONFIGDIR": str(tmp_path / "matplotlib")}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.stdout == "report.html\nHEAVY\n", run.stderr


def test_runs_of_a_series_are_compared(tmp_path):
    for em in (0.1, 0.2):
        WrittenScores(files="{}", numbers=json.dumps({"em": em, "questions": 3})).make(tmp_path / "scores")
    tables = compared([tmp_path / "scores"], tmp_path)
    assert [row.numbers["em"].mean for row in tables[0].rows] == [0.1, 0.2]
    assert compared([tmp_path / "scores/v1"], tmp_path) == []
    (tmp_path / "page.html").write_text(_rendered([], [], [], tables))
    page = Page(tmp_path / "page.html")
    assert page.count("section", id="compared") == 1 and "scores/v2" in page.text and "0.2" in page.text

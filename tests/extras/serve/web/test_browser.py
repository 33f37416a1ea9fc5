"""The page in headless Chromium: a question, an edit, hostile blocks, a phone, the dark."""

from __future__ import annotations

import json
import threading

import pytest

import realmctl
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.retrieval.search.reranking import Reranking
from stages.chunk import Chunk
from tests.extras.serve.conftest import QUESTION, SENTENCE, TOKEN, series
from tests.fixtures.browser import browser, needs_browser
from tests.fixtures.waiting import wait_until

uvicorn = pytest.importorskip("uvicorn")
pytestmark = needs_browser

HOSTILE = (
    "Ada Lorn <script>window.pwned = 1</script>",
    "Ada Lorn <img src=x onerror='window.pwned = 2'>",
    "</p></li><iframe srcdoc='<script>parent.pwned = 3</script>'>",
    "<style>*{display:none}</style> {{7*7}} &lt;b&gt; \u202e",
    "<a href='javascript:window.pwned=4'>x</a> " + "W" * 300,
)
CONTRAST = """(() => {
  const channel = (value) => { const x = value / 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
  const luminance = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const behind = (one) => { while (one) { const color = getComputedStyle(one).backgroundColor;
    if (!color.endsWith(", 0)")) return color; one = one.parentElement; } return "rgb(255, 255, 255)"; };
  const ratio = (one) => { const [a, b] = [getComputedStyle(one).color, behind(one)].map(luminance).sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05); };
  return Math.min(...[...document.querySelectorAll("body *")].filter((one) => one.textContent.trim() && one.offsetParent).map(ratio));
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture
def serve_at():
    """Serve a service at a port of its own, and return the address."""
    from realmctl.extras.serve.web.application import create_app

    started = []

    def serve(service):
        config = uvicorn.Config(create_app(service, ["127.0.0.1"], TOKEN), port=0, log_level="warning")
        server = uvicorn.Server(config)
        started.append((server, threading.Thread(target=server.run, daemon=True)))
        started[-1][1].start()
        wait_until(lambda: server.started or not started[-1][1].is_alive())
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield serve
    for server, thread in started:
        server.should_exit = True
        thread.join(20)


@pytest.fixture
def address(serve_at, open_service):
    """A server with edits."""
    return serve_at(open_service())


@pytest.fixture
def page(tab):
    tab.complaints.clear()
    return tab


def ask(page, address, question, **view):
    page.open(f"{address}/#q={question.replace(' ', '%20')}", **view)
    page.wait_for("document.getElementById('result').dataset.best !== undefined")


def write(page, field, text):
    page.evaluate(f"{field}.value = {json.dumps(text)}; {field}.dispatchEvent(new Event('input'))")


def click(page, label):
    page.evaluate(f"document.querySelector('button[aria-label^={json.dumps(label)}]').click()")


def test_an_answer_changes_when_its_block_is_edited(page, address):
    ask(page, address, QUESTION)
    assert page.evaluate("document.querySelectorAll('.candidates > li').length") == 3
    assert page.evaluate("document.querySelector('mark.best').textContent") == page.evaluate(
        "document.getElementById('result').dataset.best"
    )
    shares = page.evaluate("[...document.querySelectorAll('.candidates .number')].map((one) => one.textContent)")
    assert sum(float(share.split()[-1]) for share in shares) == pytest.approx(1, abs=0.01)
    before = page.evaluate("document.getElementById('served').textContent")
    click(page, "Edit block")
    write(page, "document.querySelector('.candidates textarea')", "Nothing is known.")
    page.evaluate("document.querySelector('.candidates form').requestSubmit()")
    assert "token" in page.evaluate("document.getElementById('message').textContent")
    assert page.evaluate("document.querySelector('.candidates textarea').value") == "Nothing is known."
    assert page.evaluate("document.activeElement.closest('.candidates form') !== null")  # the edit stays in view
    write(page, "document.querySelector('.candidates input.token')", TOKEN)
    page.evaluate("document.querySelector('.candidates form').requestSubmit()")
    page.wait_for("document.getElementById('message').textContent.includes('The answer was')")
    assert "1 block embedded" in page.evaluate("document.getElementById('message').textContent")
    page.wait_for(f"document.getElementById('served').textContent !== {json.dumps(before)}")
    assert page.complaints == []


def test_a_block_is_left_out_and_then_removed(page, address):
    ask(page, address, QUESTION)
    block = page.evaluate("document.querySelector('.candidates .row code').textContent")
    write(page, "document.getElementById('token')", TOKEN)
    click(page, "Answer without block")
    page.wait_for("document.querySelector('.ablation') !== null")
    assert "Probability of" in page.evaluate("document.querySelector('.ablation').textContent")
    click(page, "Remove block")
    assert (
        page.evaluate(f"fetch('/api/v1/blocks?id={block}').then((reply) => reply.status)") == 200
    )  # nothing happens yet
    text = page.evaluate("document.querySelector('.candidates .text').textContent")
    click(page, "Confirm: remove block")
    page.wait_for("document.getElementById('message').textContent.includes('The answer was')")
    shown = page.evaluate("[...document.querySelectorAll('.candidates .text')].map((one) => one.textContent)")
    assert shown and text not in shown
    assert page.complaints == []


def test_the_best_of_overlapping_answers_is_marked(page, address):
    page.open(address)
    parts = [{"start": 4, "end": 17, "rank": 1}, {"start": 13, "end": 17, "rank": 0}, {"start": 0, "end": 3, "rank": 2}]
    html = page.evaluate(
        f"import('/dom.js').then(({{ marked }}) => marked('In\U0001d7d8 December 1898.', {json.dumps(parts)}).outerHTML)"
    )
    assert html == (
        '<p class="text"><mark class="other">In\U0001d7d8</mark> December <mark class="best">1898</mark>.</p>'
    )


def test_a_wrong_token_is_told(page, address):
    ask(page, address, QUESTION)
    write(page, "document.getElementById('token')", "wrong")
    click(page, "Remove block")
    click(page, "Confirm: remove block")
    page.wait_for("document.getElementById('message').className === 'error'")
    said = page.evaluate("document.getElementById('message').textContent")
    assert "not the token" in said and "--token-file" in said
    assert page.evaluate("document.activeElement.closest('.ablation') !== null")


def test_the_empty_page_has_examples_that_are_answered(page, address):
    page.open(address)
    page.wait_for("document.querySelectorAll('#examples button').length > 1")
    example = page.evaluate("document.querySelector('#examples button').textContent")
    page.evaluate("document.querySelector('#examples button').click()")
    page.wait_for("document.getElementById('result').dataset.best !== undefined")
    assert page.evaluate("document.getElementById('question').value") == example
    assert page.evaluate("document.getElementById('examples').hidden") and page.complaints == []


def test_a_page_that_searches_alone_has_examples_and_methods(page, serve_at, open_service, workspace):
    address = serve_at(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))
    page.open(address)
    page.wait_for("document.querySelectorAll('#examples button').length > 1")
    page.evaluate("document.querySelector('#examples button').click()")
    page.wait_for("document.querySelectorAll('.candidates > li').length > 0")
    assert page.evaluate(
        "document.getElementById('examples').hidden && document.getElementById('examples').offsetHeight === 0"
    )
    assert page.evaluate("document.querySelector('#methods input:checked').value") == "hybrid"
    hybrid = page.evaluate("document.getElementById('result').textContent")
    page.evaluate("document.querySelector('#methods input[value=dense]').click()")
    page.wait_for(f"document.getElementById('result').textContent !== {json.dumps(hybrid)}")
    assert page.complaints == []


def test_a_filter_of_the_page_holds_and_its_address_keeps_it(page, serve_at, tmp_path):
    row = {"id": "a", "text": "The lamp of Ada is old.", "date": "2024-05-01", "tags": ["x", "<b>y</b>"]}
    lines = [row, {"id": "b", "text": "The lamp of Ada is new.", "date": "2020"}]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    chunk = Chunk(corpus=(tmp_path / "c.jsonl",), tokenizer="train:200", workers=1, keep_fields="date,tags")
    chunk.make(tmp_path / "own/blocks")
    opened = open_models(qa_model=None, model=None, closed_book=None, **series(tmp_path / "own"))
    address = serve_at(Service(*opened, False, 8))
    page.open(address)
    page.wait_for("document.getElementById('fields').textContent.includes('date (date)')")
    find = "document.getElementById('{}')".format
    ask = f"{find('question')}.value = 'lamp'; {find('filter')}.value = {{}}; {find('go')}.click()"
    shown = "[...document.querySelectorAll('.candidates .fields')].map((each) => each.textContent)"
    for text, expected in (("", 2), ("date >= 2024", 1), ("date >= 2030", 0)):
        page.evaluate(ask.format(json.dumps(text)))
        page.wait_for(f"!document.getElementById('message').textContent.includes('…') && {shown}.length === {expected}")
    assert "passes the filter" in page.evaluate("document.getElementById('result').textContent")
    page.evaluate(ask.format(json.dumps("date >= 2024")))
    page.wait_for(f"{shown}.length === 1")
    assert page.evaluate(shown) == ["date: 2024-05-01 · tags: x, <b>y</b>"]
    kept = page.evaluate("location.href")
    page.open("about:blank")
    page.open(kept)
    page.wait_for(f"{shown}.length === 1")
    assert page.evaluate(f"{find('filter')}.value") == "date >= 2024" and page.complaints == []
    page.evaluate(ask.format(json.dumps("sorce == 1")))
    page.wait_for("document.getElementById('message').textContent.includes('sorce')")


def test_a_page_with_a_reranker_can_leave_it_out(page, serve_at, open_service, workspace, cross_encoder):
    reranking = Reranking.of(cross_encoder, 9)
    address = serve_at(open_service(qa_model=None, model=None, retriever=workspace / "retriever", reranking=reranking))
    page.open(address)
    page.wait_for("document.getElementById('rerank') !== null")
    assert "reranked by encoder" in page.evaluate("document.getElementById('methods').textContent")
    page.evaluate("document.querySelector('#examples button').click()")
    page.wait_for("document.querySelectorAll('.candidates > li').length > 0")
    reranked = page.evaluate("document.getElementById('result').textContent")
    assert page.evaluate("document.querySelector('#methods input[name=method]:checked').value") == "hybrid"
    page.evaluate("document.getElementById('rerank').click()")
    page.wait_for(f"document.getElementById('result').textContent !== {json.dumps(reranked)}")
    assert page.complaints == []


def test_the_evidence_stands_above_the_null_document(page, address):
    for question in (QUESTION, SENTENCE):
        ask(page, address, question)
        tops = [
            page.evaluate(f"document.querySelector('{one}').getBoundingClientRect().top")
            for one in (".candidates", ".null")
        ]
        assert tops == sorted(tops)


def test_the_ring_of_the_focused_field_is_whole(page, address):
    """No element with a background lies on the outline, 5 pixels around the field."""
    page.open(address)
    page.wait_for("document.activeElement.id === 'question'")
    place = "(() => { const r = document.activeElement.getBoundingClientRect(); return [(r.left + r.right) / 2, r.bottom + 4]; })()"
    assert page.evaluate(f"document.elementFromPoint(...{place}).id") != "message"


def test_hostile_blocks_are_shown_and_not_executed(page, serve_at, open_service):
    service = open_service()
    documents = sorted({record.document for record in service.models.corpus})
    texts = [
        {
            "op": "update",
            "id": name,
            "title": "<img src=x onerror=window.pwned=5>",
            "text": HOSTILE[number % len(HOSTILE)],
        }
        for number, name in enumerate(documents)
    ]
    service.models = service.models.over(service.versions.edit(service.models.version, texts).version)
    address = serve_at(service)
    for question in (QUESTION, SENTENCE):
        ask(page, address, question)
        held = [record.text for record in service.models.corpus]
        shown = page.evaluate("[...document.querySelectorAll('.candidates .text')].map((one) => one.textContent)")
        assert shown and all(text in held for text in shown)
        assert "<img src=x onerror=window.pwned=5>" in page.evaluate("document.getElementById('result').textContent")
        made = "#result script, #result img, #result iframe, #result style, #result a:not([href^='#'])"
        assert page.evaluate(f"document.querySelectorAll({json.dumps(made)}).length") == 0
    write(page, "document.getElementById('question')", " ".join(HOSTILE))
    page.evaluate("document.getElementById('ask').requestSubmit()")
    page.wait_for(
        "location.hash.includes('script') && document.getElementById('message').textContent.startsWith('Answered')"
    )
    assert page.evaluate("window.pwned") is None and page.complaints == []
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.pwned = 7'}))"
    )
    assert page.evaluate("window.pwned") is None  # the policy stops even a script that got into the page
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_widths_and_schemes_can_be_read(page, address, width, dark):
    for shown in (QUESTION, SENTENCE):
        ask(page, address, shown, width=width, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRAST) >= 4.5  # WCAG 2.2, level AA
    page.open(f"{address}/docs", width=width, dark=dark)
    page.wait_for("document.querySelectorAll('#api section').length > 10")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CONTRAST) >= 4.5
    brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)[0]")
    assert (brightness < 60) is dark and page.complaints == []


def test_a_search_folds_documents_marks_words_and_leads_to_the_place_in_the_document(
    page, serve_at, open_service, workspace
):
    address = serve_at(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))
    hits = realmctl.load_search(workspace).search("Ada Lorn Ada Lorn", 10)
    ask(page, address, "Ada Lorn Ada Lorn", width=390)
    documents = {hit.block.document for hit in hits}
    assert page.evaluate("document.querySelectorAll('.candidates > li').length") == len(documents) < 10
    assert page.evaluate("document.querySelectorAll('details .text').length") == 10 - len(documents)
    assert page.evaluate("document.querySelectorAll('.candidates mark').length") > 0
    text = page.evaluate("document.querySelector('.candidates > li .text').textContent")
    page.evaluate("document.querySelector('.candidates > li h3 a').click()")
    page.wait_for("document.querySelector('#result .here') !== null")
    assert page.evaluate("document.querySelector('#result .here').textContent") == text
    page.evaluate("document.querySelector('#result a').click()")
    page.wait_for("document.querySelector('.candidates') !== null")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and page.complaints == []

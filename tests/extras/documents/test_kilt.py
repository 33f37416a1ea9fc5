"""KILT's knowledge source and questions are written as KILT publishes them, and read back."""

from __future__ import annotations

import json

import pytest

from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import cleaned
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.reading import documents
from realmctl.corpus.settings import CorpusSettings
from realmctl.errors import InputError
from realmctl.questions.questions import Question, read_questions

PARAGRAPHS = [
    "Rome\n",
    " Rome is in Italy, on the Tiber.\n",
    "Section::::History.:Early.\n",
    "BULLET::::- Founded by Romulus\n",
]


def link(paragraph, text, href, shift=0):
    start = PARAGRAPHS[paragraph].index(text) + shift
    return {"text": text, "href": href, "paragraph_id": paragraph, "start": start, "end": start + len(text)}


PAGE = {
    "_id": "25458",
    "wikipedia_id": "25458",
    "wikipedia_title": "Rome",
    "text": PARAGRAPHS,
    "anchors": [
        link(3, "Romulus", "Romulus%20and%20Remus"),
        link(1, "Tiber", "Tiber_%28river%29#Source"),
        link(1, "Italy", "italy"),
        link(1, "Italy", "Moved", shift=1),
        link(2, "History", "History"),
        {**link(1, "Italy", "x"), "start": "1"},
    ],
    "categories": "Cities",
}


def read(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return [cleaned(page) for page in documents([path])]


def test_a_page_is_prose_with_anchors_and_its_title_once(tmp_path):
    (page,) = read(tmp_path / "k.json", PAGE)
    assert format_of(*corpus_files([tmp_path / "k.json"], CorpusSettings())).name == "KILT knowledge source"
    assert (page.id, page.title) == ("25458", "Rome")
    assert page.text == "Rome is in Italy, on the Tiber.\nFounded by Romulus"
    assert [(page.text[start:end], target) for start, end, target in page.links] == [
        ("Italy", "Italy"),
        ("Tiber", "Tiber (river)"),
        ("Romulus", "Romulus and Remus"),
    ]


def test_overlapping_links_and_a_title_that_is_also_a_paragraph(tmp_path):
    text = ["A\n", "A\n", "big red house"]
    links = [
        {"text": "big red", "href": "X", "paragraph_id": 2, "start": 0, "end": 7},
        {"text": "red house", "href": "Y", "paragraph_id": 2, "start": 4, "end": 13},
    ]
    (page,) = read(tmp_path / "k", {"wikipedia_id": 1, "wikipedia_title": "A", "text": text, "anchors": links})
    assert (page.text, page.links) == ("A\nbig red house", ((2, 9, "X"),))


@pytest.mark.parametrize("field", [{"text": "plain"}, {"text": [1]}, {"anchors": {"x": 1}}, {"anchors": [1]}])
def test_a_malformed_page_is_named(tmp_path, field):
    with pytest.raises(InputError, match="k:2: "):
        read(tmp_path / "k", PAGE, {**PAGE, "_id": "2", **field})


QUESTION = {
    "id": "q1",
    "input": "Who founded it?",
    "output": [
        {"answer": "Romulus", "provenance": [{"wikipedia_id": "25458", "title": "Rome", "start_paragraph_id": 3}]},
        {"answer": "Remus"},
        {"provenance": [{"wikipedia_id": 7}, {"wikipedia_id": "25458"}]},
    ],
    "meta": {},
}


def test_questions_with_provenance(tmp_path):
    path = tmp_path / "nq-dev-kilt.jsonl"
    path.write_text(json.dumps(QUESTION) + "\n")
    assert read_questions(path) == [Question("q1", "Who founded it?", ("Romulus", "Remus"), provenance=("25458", "7"))]
    path.write_text(json.dumps({**QUESTION, "output": [{"answer": "x", "provenance": [{}]}]}))
    with pytest.raises(InputError, match="KILT"):
        read_questions(path)


def test_named_fields_of_a_page_are_kept(tmp_path):
    page = {**PAGE, "categories": "Cities", "history": {"url": "https://e.org/Rome", "revid": "7"}}
    (tmp_path / "k.jsonl").write_text(json.dumps(page) + "\n")
    [found] = documents([tmp_path / "k.jsonl"], CorpusSettings(keep_fields="categories,history.url"))
    assert found.fields == {"categories": "Cities", "history.url": "https://e.org/Rome"}


def test_a_long_first_page_is_read_to_its_end_and_lists_stay(tmp_path):
    pages = [
        {"text": ["List of As\n", "Long. " * 20_000], "wikipedia_id": "1", "wikipedia_title": "List of As"},
        {"wikipedia_id": "2", "wikipedia_title": "A (disambiguation)", "text": ["A (disambiguation)\n", "x\n"]},
    ]
    (tmp_path / "a").write_text("".join(json.dumps(page) + "\n" for page in pages))
    found = list(documents([tmp_path / "a"], CorpusSettings()))
    assert [(page.id, page.title) for page in found] == [("1", "List of As"), ("2", "A (disambiguation)")]
    assert found[0].text.startswith("Long.") and found[1].text == "x"

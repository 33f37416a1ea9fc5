"""The API: replies equal what the library computes, and every mistake has its status."""

from __future__ import annotations

import math
from dataclasses import asdict
from statistics import fmean

import pytest

import realmctl
from realmctl.extras.serve import service
from realmctl.retrieval.answering.asking import ask
from realmctl.tokens.tokenizer import Tokenizer
from tests.extras.serve.conftest import HEADERS, QUESTION, SENTENCE, client_of


def test_answers_are_those_of_ask(client, workspace):
    reply = client.post("/api/v1/ask", json={"question": QUESTION, "top": 2})
    assert reply.status_code == 200, reply.text
    expected = ask(QUESTION, workspace / "qa-model", workspace / "blocks", 2).answers
    found = reply.json()
    assert [(a["text"], a["block"], a["start"]) for a in found["answers"]] == [
        (a.text, a.hit.block.id, a.start) for a in expected
    ]
    shares = {candidate["block"]: candidate["probability"] for candidate in found["candidates"]}
    assert shares[expected[0].hit.block.id] == expected[0].hit.probability
    texts = {candidate["block"]: candidate["text"] for candidate in found["candidates"]}
    best = found["answers"][0]
    assert texts[best["block"]][best["start"] : best["end"]] == best["text"]


def test_blocks_are_found_without_a_model_that_reads(open_service, workspace):
    browser = client_of(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))
    assert browser.get("/api/v1/status").json()["can_ask"] is False
    found = browser.post("/api/v1/search", json={"query": QUESTION, "top": 2}).json()
    expected = realmctl.load_search(workspace).search(QUESTION, 2)
    assert [(hit["block"], hit["text"]) for hit in found["hits"]] == [
        (hit.block.id, hit.block.text) for hit in expected
    ]
    reply = browser.post("/api/v1/ask", json={"question": QUESTION})
    assert reply.status_code == 422 and "Search" in reply.json()["error"]


def test_an_edit_is_served(client, workspace):
    before = client.post("/api/v1/ask", json={"question": QUESTION}).json()
    block = client.get(f"/api/v1/blocks?id={before['answers'][0]['block']}").json()
    reply = client.put(
        f"/api/v1/blocks?id={block['block']}",
        headers=HEADERS,
        json={"text": "Ada Lorn was born in Nowhere.", "version": before["version"]},
    )
    assert reply.status_code == 200, reply.text
    made = reply.json()
    assert made["embedded"] < 4 and made["version"] != before["version"]
    after = client.post("/api/v1/ask", json={"question": QUESTION}).json()
    assert after["version"] == made["version"]


def test_masks_are_those_of_fill_mask(client, workspace):
    reply = client.post("/api/v1/fill", json={"sentence": SENTENCE, "candidates": 4})
    assert reply.status_code == 200, reply.text
    expected = asdict(realmctl.load_model(workspace / "model", blocks=workspace / "blocks").fill_mask(SENTENCE, 4))
    found = reply.json()
    assert found["with_retrieval"] == list(expected["with_retrieval"])
    assert [c["probability"] for c in found["candidates"]] == [c["probability"] for c in expected["candidates"]]


def test_without_retrieval_is_the_null_document(client, workspace):
    found = client.post("/api/v1/ask", json={"question": QUESTION, "top": 1, "compare": True}).json()
    [(ids, _)] = Tokenizer.load(workspace / "blocks" / "v1").encode_batch([found["answers"][0]["text"]])
    sentence = f"{QUESTION} {' '.join(['[MASK]'] * len(ids))}"
    null = realmctl.load_model(workspace / "model", blocks=workspace / "blocks").fill_mask(sentence, 8).candidates[0]
    other = found["without_retrieval"]
    assert other["source"] == "null document" and other["null_document"] == pytest.approx(null.probability)
    assert other["answers"][0]["score"] == pytest.approx(fmean(math.log(mask.probability) for mask in null.masks))
    words = other["answers"][0]["text"].replace(" ", "").replace("#", "")
    assert words == "".join(mask.wordpiece.removeprefix("##") for mask in null.masks)
    assert client.post("/api/v1/ask", json={"question": QUESTION}).json()["without_retrieval"] is None


def test_a_document_is_read_around_a_block(open_service, workspace, monkeypatch):
    browser = client_of(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))
    found = browser.post("/api/v1/search", json={"query": QUESTION, "top": 2}).json()
    hit = found["hits"][0]
    assert all(hit["text"][start:end].casefold() in QUESTION.casefold() for start, end in hit["marks"]) and hit["marks"]
    whole = browser.get("/api/v1/document", params={"id": hit["block"]}).json()
    named = browser.get("/api/v1/blocks", params={"id": hit["block"]}).json()
    assert [block["block"] for block in whole["blocks"]] == named["document_blocks"]
    assert (whole["first"], whole["count"]) == (1, len(named["document_blocks"]))
    monkeypatch.setattr(service, "SHOWN_BLOCKS", 1)
    around = browser.get("/api/v1/document", params={"id": named["document_blocks"][-1]}).json()
    assert [block["block"] for block in around["blocks"]] == named["document_blocks"][-1:]
    assert around["first"] == around["count"] == whole["count"]
    assert browser.get("/api/v1/document", params={"id": "nobody"}).status_code == 404

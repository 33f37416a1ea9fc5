"""A server with a reranker: search, tools and answers, as the command and Python have them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import realmctl as package
from realmctl.extras.serve.service import Service
from realmctl.retrieval.search.reranking import Pair, Reranking
from tests.extras.serve.conftest import client_of, series

pytest.importorskip("mcp")
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.tools import mcp_server
from tests.extras.serve.test_tools import call

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture(params=[False, True], ids=["alone", "fused"])
def fused(request):
    return request.param


@pytest.fixture
def service(chain, cross_encoder, fused):
    retriever = chain.retriever.path
    models = open_models(
        None,
        None,
        None,
        retriever=retriever,
        reranking=Reranking.of(cross_encoder, 9, fused=fused),
        **series(chain.folder),
    )
    found = Service(*models, False, 4)
    yield found
    found.stop()


def test_the_api_and_the_tools_rerank_as_python_does(service, chain, cross_encoder, fused):
    client = client_of(service, False)
    options = {"rerank": cross_encoder, "rerank_depth": 9, "rerank_fused": fused}
    search = package.load_search(chain.folder, method="dense", **options)
    expected = [(hit.block.id, pytest.approx(hit.score, abs=1e-5)) for hit in search.search(QUESTION, 4)]
    asked = {"query": QUESTION, "top": 4, "method": "dense"}
    reply = client.post("/api/v1/search", json=asked).json()
    assert [(hit["block"], hit["score"]) for hit in reply["hits"]] == expected
    assert reply["search"] == search.profile.told() and reply["search"]["reranker"] == "encoder"
    assert reply["search"].get("rerank_fused", False) is fused
    plain = package.load_search(chain.folder, method="dense").search(QUESTION, 4)
    reply = client.post("/api/v1/search", json={**asked, "rerank": False}).json()
    assert [hit["block"] for hit in reply["hits"]] == [hit.block.id for hit in plain] != [name for name, _ in expected]
    assert "reranker" not in reply["search"] and client.get("/api/v1/status").json()["reranker"] == "encoder"
    assert (
        call(mcp_server(service), "search", query=QUESTION, top=4).structured_content["search"]["reranker"] == "encoder"
    )


def test_a_reranker_chooses_what_a_qa_model_reads(realmctl, chain, qa_model, cross_encoder):
    qa = package.load_qa_model(qa_model, blocks=chain.blocks)
    searcher, reads = qa.searcher, qa.reads
    ranked = searcher.search(qa.tokens([QUESTION]), 9)[0]
    reranking = qa.reranking = Reranking.of(cross_encoder, 9)
    best = {hit.row for hit in reranking.hits([QUESTION], [ranked])[0][:reads]}
    answered = qa.ask(QUESTION)
    assert {hit.row for hit in answered.hits} == best != {hit.row for hit in ranked[:reads]}
    scores = {hit.row: hit.score for hit in ranked}
    assert all(hit.score == pytest.approx(scores[hit.row]) for hit in answered.hits), "the reader's own scores"
    assert sum(hit.probability for hit in answered.hits) == pytest.approx(1)
    code, out, err = realmctl(
        *("ask", "--json", "--qa-model", qa_model.path, "--blocks", chain.blocks.path, QUESTION),
        *("--rerank", cross_encoder, "--rerank-depth", 9, "--without", answered.best.hit.block.id),
    )
    assert code == 0, err
    told = json.loads(out)
    assert told["search"] == {"reranker": "encoder", "rerank_depth": 9}
    assert (
        told["answers"][0]["answer"] == answered.best.text and told["answers"][0]["block"] == answered.best.hit.block.id
    )
    assert answered.best.hit.block.id not in [one["block"] for one in told["without"]["answers"]]
    code, out, err = realmctl(
        *("ask", "--json", "--qa-model", qa_model.path, "--blocks", chain.blocks.path, QUESTION),
        *("--rerank", cross_encoder, "--rerank-depth", 9, "--rerank-fused"),
    )
    assert code == 0 and json.loads(out)["search"]["rerank_fused"], err
    qa.reranking = Reranking.of(cross_encoder, 9, fused=True)
    assert json.loads(out)["answers"][0]["answer"] == qa.ask(QUESTION).best.text


def test_texts_of_a_request_are_reranked_in_the_form_of_other_services(service, cross_encoder):
    client, texts = client_of(service), ["Ben Mott worked.", "Ada Lorn was born in Harrow.", "The family"]
    scores = Reranking.of(cross_encoder, 9).model.scores([Pair(QUESTION, "", text) for text in texts])
    order = np.argsort(-scores, kind="stable").tolist()
    asked = {"query": QUESTION, "documents": [texts[0], {"text": texts[1]}, texts[2]]}
    found = client.post("/v1/rerank", json={**asked, "model": "encoder", "return_documents": True}).json()
    assert [(each["index"], each["document"]["text"]) for each in found["results"]] == [(n, texts[n]) for n in order]
    assert [each["relevance_score"] for each in found["results"]] == pytest.approx(
        sorted(scores.tolist(), reverse=True), rel=1e-5
    )
    best = client.post("/v1/rerank", json={**asked, "top_n": 1}).json()["results"]
    assert [each["index"] for each in best] == order[:1] and best[0]["document"] is None
    assert client.get("/v1/models").json()["data"][-1]["id"] == "encoder"
    for wrong, code in (
        ({"model": "cohere"}, 404),
        ({"documents": []}, 422),
        ({"top_n": 0}, 422),
        ({"query": ""}, 422),
    ):
        assert client.post("/v1/rerank", json={**asked, **wrong}).status_code == code


def test_where_nothing_passes_a_filter_nothing_is_reranked(service):
    reply = client_of(service).post("/api/v1/search", json={"query": QUESTION, "filter": 'document == "none"'})
    assert reply.status_code == 200 and reply.json()["hits"] == []

"""A server with a reranker: search, tools and answers, as the command and Python have them."""

from __future__ import annotations

import json

import pytest

import realmctl as package
from realmctl.extras.serve.service import Service
from realmctl.retrieval.search.reranking import Reranking
from tests.extras.serve.conftest import client_of, series

pytest.importorskip("mcp")
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.tools import mcp_server
from tests.extras.serve.test_tools import call

QUESTION = "Where was Ada Lorn born?"


@pytest.fixture
def service(chain, cross_encoder):
    retriever = chain.retriever.path
    models = open_models(
        None, None, None, retriever=retriever, reranking=Reranking.of(cross_encoder, 9), **series(chain.folder)
    )
    found = Service(*models, False, 4)
    yield found
    found.stop()


def test_the_api_and_the_tools_rerank_as_python_does(service, chain, cross_encoder):
    client = client_of(service, False)
    search = package.load_search(chain.folder, method="dense", rerank=cross_encoder, rerank_depth=9)
    expected = [(hit.block.id, pytest.approx(hit.score, abs=1e-5)) for hit in search.search(QUESTION, 4)]
    asked = {"query": QUESTION, "top": 4, "method": "dense"}
    reply = client.post("/api/v1/search", json=asked).json()
    assert [(hit["block"], hit["score"]) for hit in reply["hits"]] == expected
    assert reply["search"] == search.profile.told() and reply["search"]["reranker"] == "encoder"
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

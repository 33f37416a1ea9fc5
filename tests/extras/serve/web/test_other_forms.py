"""Embeddings and relevances in the forms of other services: vectors are those of `embed`, and every mistake is told."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import open_artifact
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.index.vectors import open_vectors
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from tests.extras.serve.conftest import client_of, series
from tests.fixtures.encoder_folders import folder_for

TEXTS = ["Where was Ada Lorn born?", "Ben Mott", "The family was poor. " * 30]


@pytest.fixture
def browser(open_service, workspace):
    return client_of(open_service(qa_model=None, model=None, retriever=workspace / "retriever"))


def embed(browser, **asked):
    reply = browser.post("/v1/embeddings", json=asked)
    assert reply.status_code == 200, reply.text
    return reply.json()


def vectors(found):
    assert [each["index"] for each in found["data"]] == [*range(len(found["data"]))]
    return np.array([each["embedding"] for each in found["data"]], np.float32)


def test_vectors_are_those_of_the_library(browser, workspace):
    retriever = realmctl.load_retriever(workspace / "retriever", precision="fp32")
    for asked, expected in (
        ({"input_type": "query"}, retriever.encode_queries(TEXTS)),
        ({"model": "retriever-query"}, retriever.encode_queries(TEXTS)),
        ({"input_type": "search_document"}, retriever.encode_blocks([""] * 3, TEXTS)),
        ({"model": "retriever-document", "input_type": "document"}, retriever.encode_blocks([""] * 3, TEXTS)),
    ):
        found = embed(browser, input=TEXTS, **asked)
        np.testing.assert_allclose(vectors(found), expected, rtol=1e-5, atol=1e-6)
        assert found["model"] == asked.get("model", "retriever") and found["object"] == "list"
        assert found["usage"]["prompt_tokens"] == found["usage"]["total_tokens"] > 100
    alone = embed(browser, input=TEXTS[0], input_type="query")
    np.testing.assert_allclose(vectors(alone), retriever.encode_queries(TEXTS[:1]), rtol=1e-5, atol=1e-6)


def test_base64_is_float32_in_little_endian_order(browser):
    plain = vectors(embed(browser, input=TEXTS, input_type="query", encoding_format="float"))
    packed = embed(browser, input=TEXTS, input_type="query", encoding_format="base64")
    found = np.stack([np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in packed["data"]])
    np.testing.assert_array_equal(found, plain)


def test_many_texts_are_computed_in_parts_and_in_order(browser, workspace):
    texts = [f"Ada Lorn {number}" for number in range(75)]
    expected = realmctl.load_retriever(workspace / "retriever", precision="fp32").encode_queries(texts)
    np.testing.assert_allclose(vectors(embed(browser, input=texts, input_type="query")), expected, rtol=1e-4, atol=1e-5)
    assert browser.get("/api/v1/status").json()["latency"]["embeddings"]["requests"] == 3


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        ({"input": [1, 2]}, 422, "tokens, of a tokenizer that this server does not have"),
        ({"input": [[1, 2]]}, 422, "check_embedding_ctx_length=False"),
        ({"input": []}, 422, "input: List should have at least 1 item"),
        ({"input": ""}, 422, "input: "),
        ({"input": ["a"] * 2049}, 422, "input: List should have at most 2048 items"),
        ({"input": [None]}, 422, "input.0: Input should be a valid string"),
        ({}, 422, "input"),
        ({"input": "a", "model": "text-embedding-3-small"}, 404, "There are retriever, retriever-query"),
        ({"input": "a", "model": "retriever-x"}, 404, "retriever-x"),
        ({"input": "a", "model": "retriever-query", "input_type": "document"}, 422, "Leave one out"),
        ({"input": "a"}, 422, "Say input_type query or document"),
        ({"input": "a", "input_type": "clustering"}, 422, "input_type"),
        ({"input": "a", "input_type": "query", "encoding_format": "hex"}, 422, "encoding_format"),
        ({"input": "a", "input_type": "query", "dimensions": 0}, 422, "dimensions"),
        ({"input": "a", "input_type": "query", "dimensions": 9999}, 422, "the vectors have"),
        ({"input": "a", "input_type": "query", "dimensions": 2}, 422, "do not have one length"),
        ({"input": "a", "input_type": "query", "temperature": 1}, 422, "temperature"),
        ({"input": "\ud800", "input_type": "query"}, 422, ""),
    ],
)
def test_mistakes_are_told(browser, asked, code, told):
    reply = browser.post("/v1/embeddings", content=json.dumps(asked), headers={"Content-Type": "application/json"})
    assert reply.status_code in (code, 400) and told in reply.json()["error"]["message"], reply.text
    assert reply.json()["error"]["code"] == str(reply.status_code)


def test_models_are_listed(browser):
    found = browser.get("/v1/models").json()
    assert [each["id"] for each in found["data"]] == ["retriever", "retriever-query", "retriever-document"]


@pytest.fixture
def sentences(chain, tmp_path):
    """A service of documents without titles, searched by a sentence encoder whose vectors have one length."""
    rows = [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    work = tmp_path / "own"
    from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder

    settings = EncoderSettings(scale=20, normalize=True)
    retriever = import_encoder(folder_for(chain.blocks, tmp_path / "encoder"), None, None, settings, work / "retriever")
    blocks = Chunk(
        corpus=(tmp_path / "c.jsonl",), tokenizer=str(retriever.path / "tokenizer"), max_wordpieces=288, workers=1
    ).make(work / "blocks")
    embeddings = Embed(blocks=blocks, retriever=retriever, precision="fp32").make(work / "embeddings")
    BuildIndex(embeddings=embeddings, type="exact").make(work / "index")
    opened = open_models(qa_model=None, model=None, closed_book=None, retriever=work / "retriever", **series(work))
    service = Service(*opened, False, 8)
    yield client_of(service, False), work
    service.stop()


def test_a_document_has_the_vector_that_embed_gives_its_block(sentences):
    browser, work = sentences
    stored = np.asarray(open_vectors(open_artifact(work / "embeddings").file("embeddings.npy")), np.float32)
    found = vectors(embed(browser, input=TEXTS, input_type="document"))
    np.testing.assert_allclose(found, stored, rtol=2e-3, atol=2e-3)  # stored as float16
    both = [vectors(embed(browser, input=TEXTS, input_type=side)) for side in ("query", "document")]
    np.testing.assert_array_equal(vectors(embed(browser, input=TEXTS)), both[0])
    np.testing.assert_allclose(*both, rtol=1e-4, atol=1e-5)  # this encoder reads both alike, so nobody need say it


def test_the_first_numbers_of_a_vector_have_its_length(sentences):
    browser, _ = sentences
    whole = vectors(embed(browser, input=TEXTS))
    cut = vectors(embed(browser, input=TEXTS, dimensions=5))
    assert cut.shape == (3, 5)
    lengths = np.linalg.norm(whole, axis=1, keepdims=True)
    expected = whole[:, :5] / np.linalg.norm(whole[:, :5], axis=1, keepdims=True) * lengths
    np.testing.assert_allclose(cut, expected, rtol=1e-5)
    assert lengths == pytest.approx(20**0.5, rel=1e-4)
    np.testing.assert_array_equal(vectors(embed(browser, input=TEXTS, dimensions=whole.shape[1])), whole)


def test_a_server_without_a_retriever_embeds_nothing_and_lists_no_model(open_service, tmp_path):
    (tmp_path / "c.jsonl").write_text('{"id": "a", "text": "The lamp is old."}\n')
    Chunk(corpus=(tmp_path / "c.jsonl",), tokenizer="train:200", workers=1).make(tmp_path / "own/blocks")
    service = Service(*open_models(qa_model=None, model=None, closed_book=None, **series(tmp_path / "own")), False, 4)
    try:
        browser = client_of(service, False)
        reply = browser.post("/v1/embeddings", json={"input": "a"})
        assert reply.status_code == 422 and "no retriever" in reply.json()["error"]["message"]
        assert browser.get("/v1/models").json()["data"] == []
    finally:
        service.stop()


def test_without_a_reranker_it_is_refused(browser):
    reply = browser.post("/v1/rerank", json={"query": "a", "documents": ["b"]})
    assert reply.status_code == 422 and "--rerank" in reply.json()["error"]["message"]

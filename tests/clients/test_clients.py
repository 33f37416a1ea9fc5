"""Clients of other projects get from `realmctl serve` the vectors of our retriever: openai, LangChain's and LlamaIndex's classes (`make clients`)."""

from __future__ import annotations

import os
import threading
from http.client import HTTPConnection

import numpy as np
import pytest

import realmctl
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.web.application import create_app
from tests.fixtures.waiting import wait_until

pytest.importorskip("openai")
TEXTS = ["Where was Ada Lorn born?", "Ben Mott", "The family was poor."]


@pytest.fixture(scope="module")
def served(chain):
    """The address of a server of a workspace with an index, and its retriever."""
    import uvicorn

    opened = open_models(
        qa_model=None,
        model=None,
        closed_book=None,
        retriever=chain.folder / "retriever",
        blocks=chain.folder / "blocks",
        embeddings=chain.folder / "embeddings",
        indexes=chain.folder / "index",
    )
    service = Service(*opened, False, 64)
    server = uvicorn.Server(uvicorn.Config(create_app(service, ["127.0.0.1"], None), port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", realmctl.load_retriever(chain.folder / "retriever", precision="fp32")
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def wanted(served):
    """Vectors of TEXTS as queries and as documents."""
    _, retriever = served
    return retriever.encode_queries(TEXTS), retriever.encode_blocks([""] * len(TEXTS), TEXTS)


def close(found, expected):
    np.testing.assert_allclose(np.array(found), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
def test_openai(served, wanted, encoding):
    import openai

    client = openai.OpenAI(base_url=f"{served[0]}/v1", api_key="none", max_retries=0)
    form = {} if encoding is None else {"encoding_format": encoding}
    for model, expected in zip(("retriever-query", "retriever-document"), wanted, strict=True):
        found = client.embeddings.create(model=model, input=TEXTS, **form)
        if encoding == "base64":
            import base64

            close([np.frombuffer(base64.b64decode(each.embedding), "<f4") for each in found.data], expected)
        else:
            close([each.embedding for each in found.data], expected)
        assert found.model == model and found.usage.prompt_tokens > 5
    assert "retriever-query" in [each.id for each in client.models.list()]
    with pytest.raises(openai.NotFoundError, match="There are retriever"):
        client.embeddings.create(model="gpt-5", input="a")
    with pytest.raises(openai.UnprocessableEntityError, match="tokens"):
        client.embeddings.create(model="retriever-query", input=[[1, 2]])
    found = client.embeddings.create(model="retriever", input=TEXTS, extra_body={"input_type": "document"})
    close([each.embedding for each in found.data], wanted[1])


def test_langchain(served, wanted):
    langchain_openai = pytest.importorskip("langchain_openai")
    for model, expected in zip(("retriever-query", "retriever-document"), wanted, strict=True):
        embeddings = langchain_openai.OpenAIEmbeddings(
            model=model, base_url=f"{served[0]}/v1", api_key="none", check_embedding_ctx_length=False
        )
        close(embeddings.embed_documents(TEXTS), expected)
        close(embeddings.embed_query(TEXTS[1]), expected[1])


def test_llama_index(served, wanted):
    module = pytest.importorskip("llama_index.embeddings.openai_like")
    for model, expected in zip(("retriever-query", "retriever-document"), wanted, strict=True):
        embeddings = module.OpenAILikeEmbedding(model_name=model, api_base=f"{served[0]}/v1", api_key="none")
        close(embeddings.get_text_embedding_batch(TEXTS), expected)
        close(embeddings.get_query_embedding(TEXTS[1]), expected[1])


def test_a_probe_with_the_address_of_a_pod(served):
    connection = HTTPConnection(served[0].removeprefix("http://"))
    for path, code in (("/healthz", 200), ("/api/v1/status", 400)):
        connection.request("GET", path, headers={"Host": "10.2.3.4:8000"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == code


os.environ.setdefault("OMP_NUM_THREADS", "1")

"""Retrievers of LangChain, LlamaIndex and Haystack find what our search finds, with fields, scores and the search profile (`make clients`)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import realmctl
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from tests.fixtures.retriever import make_retriever

PAGE = (Path(__file__).parents[2] / "docs/how-to/other-programs.md").read_text(encoding="utf-8")
QUERY, FILTER = "Where was Ada Lorn born?", "date >= 2024"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, one_thread):
    folder = tmp_path_factory.mktemp("frameworks")
    rows = [
        {
            "id": f"d{n}",
            "title": f"T{n}",
            "text": f"Ada Lorn was born in {1900 + n}.",
            "date": f"{2020 + n}",
            "tags": ["a"],
        }
        for n in range(9)
    ]
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = (folder / "c.jsonl",)
    blocks = Chunk(corpus=corpus, tokenizer="train:200", workers=1, keep_fields="date,tags").make(folder / "w/blocks")
    retriever = make_retriever(folder / "w/retriever", blocks)
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "w/embeddings")
    BuildIndex(embeddings=embeddings, type="exact").make(folder / "w/index")
    return folder / "w"


@pytest.fixture(scope="module")
def wanted(workspace):
    search = realmctl.load_search(workspace)
    return [
        (
            hit.block.id,
            hit.block.text,
            pytest.approx(hit.score, rel=1e-5),
            hit.block.fields["date"],
            search.profile.told(),
        )
        for hit in search.search(QUERY, 3, filter=FILTER)
    ]


def test_langchain(workspace, wanted):
    pytest.importorskip("langchain_core")
    from realmctl.integrations.langchain import Retriever

    found = Retriever(workspace, k=3, filter=FILTER).invoke(QUERY)
    assert [
        (d.id, d.page_content, d.metadata["score"], d.metadata["date"], d.metadata["search"]) for d in found
    ] == wanted


def test_llama_index(workspace, wanted):
    pytest.importorskip("llama_index.core")
    from realmctl.integrations.llama_index import Retriever

    found = Retriever(workspace, k=3, filter=FILTER).retrieve(QUERY)
    assert [
        (n.node.node_id, n.node.text, n.score, n.node.metadata["date"], n.node.metadata["search"]) for n in found
    ] == wanted


def test_haystack_in_a_pipeline_that_was_saved(workspace, wanted):
    haystack = pytest.importorskip("haystack")
    from realmctl.integrations.haystack import Retriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("search", Retriever(str(workspace), top_k=3, filter=FILTER))
    again = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["realmctl.integrations.haystack"])
    for each in (pipeline, again):
        found = each.run({"search": {"query": QUERY}})["search"]["documents"]
        assert [(d.id, d.content, d.score, d.meta["date"], d.meta["search"]) for d in found] == wanted


def test_the_code_of_the_page(workspace, wanted, monkeypatch, tmp_path):
    pytest.importorskip("langchain_core"), pytest.importorskip("llama_index.core"), pytest.importorskip("haystack")
    (tmp_path / "artifacts").symlink_to(workspace)
    monkeypatch.chdir(tmp_path)
    section = PAGE.partition("## LangChain, LlamaIndex, Haystack")[2].partition("\n## ")[0]
    codes = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(codes) == 3
    for code in codes:
        found: dict = {}
        exec(compile(code, "the page", "exec"), found)
        assert len(found["found"]) > 2

"""One search everywhere: the command, the API, the tools of agents and Python find the same blocks with the same scores, whatever was done before."""

from __future__ import annotations

import json
import shutil

import pytest

import realmctl as package
from tests.extras.serve.conftest import client_of, series
from tests.fixtures.chain import Chain
from tests.fixtures.encoder_folders import folder_for

pytest.importorskip("mcp")
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.tools import mcp_server
from tests.extras.serve.test_tools import call

QUERY = "Who sailed to Ashby?"
FIRST = {"a": "Ada Lorn was born in Harrow. The family was poor.", "b": "Ben Mott worked for a firm in Ashby."}
TEXTS = [FIRST, {**FIRST, "c": "Cleo Dunn sailed to Ashby."}, FIRST, {"b": FIRST["b"]}]
"""Documents at first, with one more, again as at first, and without one."""


def ways_in(realmctl, workspace):
    """{way in: (how it searched, [(document, text, score)])}, and whatever else each says is left out."""
    code, out, err = realmctl("search", QUERY, "--workspace", workspace, "--json")
    assert code == 0, err
    told = json.loads(out)
    search = package.load_search(workspace)
    found = {
        "command": (told["search"], told["results"][0]["hits"]),
        "Python": (
            search.profile.told(),
            [
                {"document": hit.block.document, "text": hit.block.text, "score": hit.score}
                for hit in search.search(QUERY)
            ],
        ),
    }
    service = Service(
        *open_models(
            qa_model=None, model=None, closed_book=None, retriever=workspace / "retriever", **series(workspace)
        ),
        False,
        4,
    )
    try:
        replies = {
            "API": client_of(service, False).post("/api/v1/search", json={"query": QUERY, "top": 5}).json(),
            "MCP": call(mcp_server(service), "search", query=QUERY, top=5).structured_content,
        }
    finally:
        service.stop()
    found |= {way: (reply["search"], reply["hits"]) for way, reply in replies.items()}
    return {
        way: (how, [(hit["document"], hit["text"], pytest.approx(hit["score"], abs=1e-5)) for hit in hits])
        for way, (how, hits) in found.items()
    }


def test_what_was_indexed_last_is_searched_by_every_way_in_with_the_same_scores(realmctl, chain: Chain, tmp_path):
    encoders = [folder_for(chain.blocks, tmp_path / "one"), folder_for(chain.blocks, tmp_path / "other", seed=1)]
    for texts, encoder in [*((each, encoders[0]) for each in TEXTS), (TEXTS[3], encoders[1]), (TEXTS[2], encoders[0])]:
        shutil.rmtree(tmp_path / "notes", ignore_errors=True)
        (tmp_path / "notes").mkdir()
        for name, text in texts.items():
            (tmp_path / "notes" / f"{name}.txt").write_text(text)
        code, _, err = realmctl("index-docs", tmp_path / "notes", "--encoder", encoder, "--workspace", tmp_path / "w")
        assert code == 0, err
        found = ways_in(realmctl, tmp_path / "w")
        how, hits = found["Python"]
        assert how["method"] == "hybrid" and how["bm25_stemmer"] == "en"
        assert {text for _, text, _ in hits} == set(texts.values())
        for way, own in found.items():
            assert own == found["Python"], way

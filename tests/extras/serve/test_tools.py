"""The tools for agents, called by the official client: in process, over HTTP and over stdio."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import realmctl
from realmctl.extras.serve.messages import Ask
from realmctl.extras.serve.worker import QueueFull
from tests.extras.serve.conftest import QUESTION

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from realmctl.extras.serve.tools import mcp_server, run_stdio
from realmctl.extras.serve.web.application import create_app

ROOT = Path(__file__).parents[3]


def talk(server: Any, act: Callable[[Client], Awaitable[Any]]) -> Any:
    """What a client's calls return."""

    async def run() -> Any:
        async with Client(server) as client:
            return await act(client)

    return asyncio.run(run())


def call(server: Any, name: str, **arguments: Any) -> Any:
    return talk(server, lambda client: client.call_tool(name, arguments))


def test_the_tools_say_what_they_take_and_that_they_only_read(open_service):
    found = talk(mcp_server(open_service()), lambda client: client.list_tools()).tools
    assert [tool.name for tool in found] == ["search", "read_block", "ask"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in found)
    top = found[0].input_schema["properties"]["top"]
    assert all(tool.input_schema["additionalProperties"] is False for tool in found)
    assert (top["minimum"], top["maximum"]) == (1, 32) and found[0].input_schema["required"] == ["query"]


def test_search_read_and_ask_are_those_of_the_library(open_service, workspace):
    service = open_service()
    server = mcp_server(service)
    hits = call(server, "search", query=QUESTION, top=3).structured_content["hits"]
    wanted = realmctl.load_search(workspace, retriever=workspace / "model").search(QUESTION, 3)
    assert [(hit["block"], hit["text"]) for hit in hits] == [(hit.block.id, hit.block.text) for hit in wanted]
    block = call(server, "read_block", block=hits[0]["block"]).structured_content
    assert block["text"] == hits[0]["text"] and hits[0]["block"] in block["document_blocks"]
    answered = call(server, "ask", question=QUESTION, top=2).structured_content
    direct = service.ask(Ask(question=QUESTION, top=2)).result(30)
    assert answered["answers"] == [answer.model_dump() for answer in direct.answers]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read_block", {"block": "nobody"}, "nobody"),
        ("search", {"query": QUESTION, "top": 33}, "32"),
        ("search", {"query": QUESTION, "top": True}, "top"),
        ("ask", {"question": QUESTION, "top": "3"}, "top"),
        ("search", {"query": "?!"}, "word"),
        ("ask", {"question": "x" * 4001}, "4000"),
        ("search", {"query": QUESTION, "method": "bm25"}, "method"),
        ("ask", {"question": QUESTION, "compare": True}, "compare"),
        ("search", {}, "query"),
        ("remove", {"block": "d1-0"}, "remove"),
    ],
)
def test_mistakes_are_told_to_the_model_and_limits_are_those_of_the_api(open_service, name, arguments, told):
    reply = call(mcp_server(open_service()), name, **arguments)
    assert reply.is_error and told in reply.content[0].text


def test_a_full_queue_is_told(open_service, monkeypatch):
    service = open_service()

    def full(*_: object) -> None:
        raise QueueFull

    monkeypatch.setattr(service._worker, "submit", full)
    reply = call(mcp_server(service), "search", query=QUESTION)
    assert reply.is_error and "Try again" in reply.content[0].text and service.refused == 1


def test_without_a_qa_model_there_is_no_ask(open_service):
    server = mcp_server(open_service(qa_model=None))
    tools = talk(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == ["search", "read_block"]
    told = [server.instructions, *(tool.model_dump_json() for tool in tools)]
    assert not any(re.search(r"\bask\b", text or "") for text in told), "nor is it spoken of"
    assert call(server, "search", query=QUESTION, top=1).structured_content["hits"]


def test_over_http_beside_the_api_and_behind_its_guard(open_service):
    app = create_app(open_service(), ["testserver"], None, mcp=True)

    async def run(host: str) -> Any:
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app)
            async with (
                httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as http,
                Client(streamable_http_client(f"http://{host}/mcp", http_client=http)) as client,
            ):
                assert (await http.get("/api/v1/status")).json()["can_ask"]
                return await client.call_tool("search", {"query": QUESTION, "top": 2})

    assert len(asyncio.run(run("testserver")).structured_content["hits"]) == 2
    app = create_app(open_service(), ["testserver"], None, mcp=True)
    with pytest.raises(BaseExceptionGroup):
        asyncio.run(run("attacker.example"))


ODD_IDS = (b"1.5", b"1e400", b"true", b"false", b"[]", b"[7]", b"{}", b'{"id": 7}', b"NaN")


def test_a_line_that_is_no_message_is_answered(open_service, monkeypatch):
    """As JSON-RPC 2.0 says, section 5.1, and the next line is served."""
    lines = [
        b"not json",
        b"",
        b'{"a": ',
        b'"\xff"',
        b"[]",
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        *(b'{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % odd for odd in ODD_IDS),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": {"_": "' + b"x" * 2**20 + b'"}}',
        b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}',
        b"[" * 10_000,
    ]
    taken, given = io.TextIOWrapper(io.BytesIO(b"\n".join(lines))), io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", taken)
    monkeypatch.setattr(sys, "stdout", given)
    run_stdio(mcp_server(open_service()))
    replies = [json.loads(line) for line in given.buffer.getvalue().splitlines()]
    told = [(reply["id"], reply.get("error", {}).get("code")) for reply in replies if reply["id"] is None]
    refused = [-32700, -32700, -32600, -32600, -32600, *[-32600] * len(ODD_IDS), -32600, -32700]
    assert told == [(None, code) for code in refused]
    assert [reply["id"] for reply in replies if reply["id"] is not None] == [7]
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)


@pytest.mark.slow
def test_over_stdio_as_an_editor_starts_it(workspace):
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "realmctl", "serve", "--mcp", "stdio", "--workspace", str(workspace)],
        cwd=str(ROOT),
        env={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert call(parameters, "search", query=QUESTION, top=2).structured_content["hits"]

"""The tools that a server offers to agents and editors, by the Model Context Protocol: search, read_block and ask.

They are the API's requests, with its limits and its queue. Nothing can be written by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, Any, TypeVar

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, ToolAnnotations
from pydantic import Field, ValidationError

from realmctl.errors import RealmctlError
from realmctl.serve.messages import (
    MOST_ANSWERS,
    MOST_CANDIDATES,
    Ask,
    AskReply,
    Name,
    Search,
    SearchReply,
    ServedBlockReply,
    Words,
)
from realmctl.serve.service import Service
from realmctl.serve.worker import QueueFull
from realmctl.version import __version__

Reply = TypeVar("Reply")
Query = Annotated[Words, Field(description="Words, or a question.")]
Hits = Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="Number of blocks.")]
Answers = Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="Number of answers.")]
BlockId = Annotated[Name, Field(description="Id of a block, as search and ask give it.")]
INSTRUCTIONS = (
    "Documents, cut into blocks. `search` finds blocks for words or a question; `read_block` gives a block and the ids of the "
    "other blocks of its document; `ask` answers a short factual question with the span and the block that it stands in. "
    "Quote the id of the block that a statement comes from."
)


def mcp_server(service: Service) -> MCPServer[None]:
    """Return a server of the tools. It runs over stdio (`run`) or over HTTP (`streamable_http_app`)."""

    async def search(query: Query, top: Hits = 5) -> SearchReply:
        """Find the blocks that fit words or a question, best first."""
        return await _waited(service, lambda: service.search(Search(query=query, top=top)))

    async def ask(question: Query, top: Answers = 3) -> AskReply:
        """Answer a question, with the blocks that were read and the offsets of each answer in its block."""
        return await _waited(service, lambda: service.ask(Ask(question=question, top=top)))

    async def read_block(block: BlockId) -> ServedBlockReply:
        """Read a block: its text, its document, and the ids of all blocks of that document."""
        return _told(lambda: service.block(block))

    functions = (search, read_block, ask) if service.models.qa is not None else (search, read_block)
    return MCPServer[None](
        "realmctl",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="ERROR",
        tools=[_tool(function) for function in functions],
    )


def _tool(function: Callable[..., Any]) -> Tool:
    """A tool that reads. An argument that it does not have is an error, as a field of the API is."""
    tool = Tool.from_function(function, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema()
    return tool


def run_stdio(server: MCPServer[None]) -> None:
    """Serve over standard input and output until the input ends. A line that is no message of JSON-RPC is answered as JSON-RPC says."""
    anyio.run(_run_stdio, server)


async def _run_stdio(server: MCPServer[None]) -> None:
    lowlevel = server._lowlevel_server  # `MCPServer.run` says nothing to such a line
    async with stdio_server() as (read, write):
        messages, passed = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with messages:
                async for item in read:
                    if not isinstance(item, Exception):
                        await messages.send(item)
                    elif refusal := _refusal(item):
                        await write.send(SessionMessage(refusal))

        async with anyio.create_task_group() as group:
            group.start_soon(pass_on)
            await lowlevel.run(passed, write, lowlevel.create_initialization_options())


def _refusal(error: Exception) -> JSONRPCError | None:
    """The reply to a line that is no message; None for an empty line."""
    found = error.errors()[0] if isinstance(error, ValidationError) else {"type": "", "input": "?"}
    if not str(found["input"]).strip():
        return None
    if found["type"] == "json_invalid":
        data = ErrorData(code=PARSE_ERROR, message="This line is not JSON. Send one JSON object on each line.")
    else:
        data = ErrorData(
            code=INVALID_REQUEST, message="This is no request of JSON-RPC 2.0: jsonrpc, id, method, params."
        )
    return JSONRPCError(jsonrpc="2.0", id=None, error=data)


async def _waited(service: Service, submit: Callable[[], Future[Reply]]) -> Reply:
    try:
        return await asyncio.wrap_future(submit())
    except QueueFull:
        raise ToolError(f"Too many requests wait. Try again in {service.retry_after()} s.") from None
    except RealmctlError as error:
        raise ToolError(str(error)) from error


def _told(read: Callable[[], Reply]) -> Reply:
    try:
        return read()
    except RealmctlError as error:
        raise ToolError(str(error)) from error

"""The tools that a server offers to agents and editors, by the Model Context Protocol: search, read_block and ask.

They are the API's requests, with its limits and its queue. Nothing can be written by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

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
    server = MCPServer[None]("realmctl", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")

    async def search(query: Query, top: Hits = 5) -> SearchReply:
        """Find the blocks that fit words or a question, best first."""
        return await _waited(service, lambda: service.search(Search(query=query, top=top)))

    async def ask(question: Query, top: Answers = 3) -> AskReply:
        """Answer a question, with the blocks that were read and the offsets of each answer in its block."""
        return await _waited(service, lambda: service.ask(Ask(question=question, top=top)))

    async def read_block(block: BlockId) -> ServedBlockReply:
        """Read a block: its text, its document, and the ids of all blocks of that document."""
        return _told(lambda: service.block(block))

    for tool in (search, read_block, ask) if service.models.qa is not None else (search, read_block):
        server.add_tool(tool, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    return server


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

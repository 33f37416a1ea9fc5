"""The tools that a server offers to agents and editors, by the Model Context Protocol: search, read_block and ask.

They are the API's requests, with its limits and its queue. Nothing can be written by them.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    JSONRPCError,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, ValidationError

from realmctl.errors import as_realmctl_error
from realmctl.extras.serve.messages import (
    MOST_ANSWERS,
    MOST_CANDIDATES,
    MOST_CHARACTERS_OF_A_LINE,
    Ask,
    AskReply,
    FilterText,
    Message,
    Name,
    Search,
    SearchReply,
    ServedBlockReply,
    Words,
)
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.worker import QueueFull
from realmctl.version import __version__

Reply = TypeVar("Reply", bound=BaseModel)
INSTRUCTIONS = (
    "Documents, cut into blocks. `search` finds blocks for words or a question; `read_block` gives a block and the ids of the "
    "other blocks of its document{ask}. Quote the id of the block that a statement comes from. A filter of "
    "`search` may name these fields: {fields}."
)
ASK = "; `ask` answers a short factual question with the span and the block that it stands in"
NO_REQUEST = "[]"
"""What is put in the place of a line that is refused, and is refused itself."""


class SearchTool(Message):
    """Find the blocks that fit words or a question, best first."""

    query: Annotated[Words, Field(description="Words, or a question.")]
    top: Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="Number of blocks.")] = 5
    filter: Annotated[
        FilterText | None,
        Field(
            description='Which blocks may be found, by fields of their documents: date >= 2024 and (source == "handbook" or tags contains "x"). '
            "Operators: == != < <= > >= in contains; and, or, not, parentheses."
        ),
    ] = None


class AskTool(Message):
    """Answer a question, with the blocks that were read and the offsets of each answer in its block."""

    question: Annotated[Words, Field(description="A question.")]
    top: Annotated[int, Field(ge=1, le=MOST_ANSWERS, description="Number of answers.")] = 3


class ReadBlockTool(Message):
    """Read a block: its text, its document, and the ids of all blocks of that document."""

    block: Annotated[Name, Field(description="Id of a block, as a search gives it.")]


@dataclass(frozen=True)
class _Offer:
    """A tool: the model of its arguments, whose docstring describes it, the model of its reply, and what computes it."""

    name: str
    arguments: type[Message]
    reply: type[BaseModel]
    compute: Callable[[Any], Awaitable[BaseModel]]

    def described(self) -> Tool:
        return Tool(
            name=self.name,
            description=self.arguments.__doc__,
            input_schema=self.arguments.model_json_schema(),
            output_schema=self.reply.model_json_schema(),
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )


def mcp_server(service: Service) -> Server[Any]:
    """Return a server of the tools. It runs over stdio (`run_stdio`) or over HTTP (`streamable_http_app`)."""

    async def search(asked: SearchTool) -> SearchReply:
        return await _computed(service.search(Search(query=asked.query, top=asked.top, filter=asked.filter)))

    async def ask(asked: AskTool) -> AskReply:
        return await _computed(service.ask(Ask(question=asked.question, top=asked.top)))

    async def read_block(asked: ReadBlockTool) -> ServedBlockReply:
        return service.block(asked.block)

    offers = [
        _Offer("search", SearchTool, SearchReply, search),
        _Offer("read_block", ReadBlockTool, ServedBlockReply, read_block),
    ]
    if service.models.qa is not None:
        offers.append(_Offer("ask", AskTool, AskReply, ask))
    by_name = {offer.name: offer for offer in offers}

    async def list_tools(context: ServerRequestContext[Any, Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[offer.described() for offer in offers])

    async def call_tool(context: ServerRequestContext[Any, Any], called: CallToolRequestParams) -> CallToolResult:
        offer = by_name.get(called.name)
        if offer is None:
            return _failed(f"There is no tool {called.name[:80]!r}. Call one of {', '.join(by_name)}.")
        try:
            reply = await offer.compute(offer.arguments.model_validate(called.arguments or {}))
        except ValidationError as error:
            return _failed(
                " ".join(
                    f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}."
                    for each in error.errors()
                )
            )
        except QueueFull:
            return _failed(f"Too many requests wait. Try again in {service.retry_after()} s.")
        except Exception as error:
            if (known := as_realmctl_error(error)) is None:
                raise
            return _failed(service.told(known))
        told = TextContent(type="text", text=reply.model_dump_json())
        return CallToolResult(content=[told], structured_content=reply.model_dump(mode="json"))

    types = service.models.corpus.columns.types
    fields = ", ".join(f"{name} ({kind})" for name, kind in types.items())
    instructions = INSTRUCTIONS.format(ask=ASK if "ask" in by_name else "", fields=fields)
    return Server(
        "realmctl", version=__version__, instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _computed(future: Future[Reply]) -> Reply:
    return await asyncio.wrap_future(future)


def _failed(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def run_stdio(server: Server[Any]) -> None:
    """Serve over standard input and output until the input ends. A line that is no request of JSON-RPC is answered as JSON-RPC says."""
    anyio.run(_run_stdio, server)


async def _run_stdio(server: Server[Any]) -> None:
    stdin = cast("anyio.AsyncFile[str]", _lines())  # of which no more is used than its lines
    async with stdio_server(stdin) as (read, write):
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
            await server.run(passed, write, server.create_initialization_options())


async def _lines() -> AsyncIterator[str]:
    """The lines of standard input, with NO_REQUEST in the place of those that the protocol's library would take without an answer."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    while line := await _part_of_line():
        rest = line
        while rest and not rest.endswith("\n"):
            rest = await _part_of_line()
        is_whole = line.endswith("\n") or len(line) <= MOST_CHARACTERS_OF_A_LINE
        yield line if is_whole and not _has_odd_id(line) else NO_REQUEST


async def _part_of_line() -> str:
    return await anyio.to_thread.run_sync(sys.stdin.readline, MOST_CHARACTERS_OF_A_LINE + 1)


def _has_odd_id(line: str) -> bool:
    """Whether a line is a request whose id is neither a text nor a whole number, which the library takes for a message that wants no answer."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return False
    is_request = isinstance(message, dict) and "method" in message and "id" in message
    return is_request and type(message["id"]) not in (str, int)


def _refusal(error: Exception) -> JSONRPCError | None:
    """The reply to a line that is no message; None for an empty line."""
    found = error.errors()[0] if isinstance(error, ValidationError) else {"type": "", "input": "?"}
    if not str(found["input"]).strip():
        return None
    if found["type"] == "json_invalid":
        data = ErrorData(code=PARSE_ERROR, message="This line is not JSON. Send one JSON object on each line.")
    else:
        data = ErrorData(
            code=INVALID_REQUEST,
            message="This is no request of JSON-RPC 2.0: jsonrpc, an id that is a text or a whole number, method, params, in a line of at most "
            f"{MOST_CHARACTERS_OF_A_LINE} characters.",
        )
    return JSONRPCError(jsonrpc="2.0", id=None, error=data)

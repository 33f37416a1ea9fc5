"""The JSON API below /api/v1. Its OpenAPI document, /openapi.json, is made from the functions and their messages."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from realmctl.extras.serve.messages import (
    Ask,
    AskReply,
    DocumentReply,
    EditReply,
    ErrorReply,
    Fill,
    FillReply,
    Health,
    LeaveOut,
    LeaveOutReply,
    NewDocument,
    NewText,
    Search,
    SearchReply,
    ServedBlockReply,
    StatusReply,
)
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.web.guards import FILTER_HEADER, HEALTH
from realmctl.extras.serve.web.tokens import is_token
from realmctl.extras.serve.worker import Reply

router, health = APIRouter(prefix="/api/v1"), APIRouter()
Errors = dict[int | str, dict[str, Any]]


def _errors(*codes: int) -> Errors:
    return {code: {"model": ErrorReply} for code in codes}


READING, ASKING, EDITING = (
    _errors(404, 422),
    _errors(400, 413, 422, 503),
    _errors(400, 401, 403, 404, 409, 413, 422, 507),
)


def service_of(request: Request) -> Service:
    """The service of the application that handles a request."""
    service: Service = request.app.state.service
    return service


BEARER = HTTPBearer(auto_error=False, description="The token that realmctl serve --allow-edits printed.")


def require_token(
    request: Request, described: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)] = None
) -> None:
    """Raise HTTPException: 403 if edits are not allowed, 401 without the token."""
    token: str | None = request.app.state.token
    if token is None:
        raise HTTPException(403, "This server does not accept edits. Start it with --allow-edits.")
    given = request.headers.get("authorization", "")
    if not is_token(given, token):
        what = "This is not the token of this server" if given else "Edits need the token of this server"
        raise HTTPException(
            401,
            f"{what}. realmctl serve printed it when it started, and each start prints another one; with --token-file it is the "
            "first line of that file. A program sends it as Authorization: Bearer TOKEN.",
            {"WWW-Authenticate": "Bearer"},
        )


Served = Annotated[Service, Depends(service_of)]
BlockId = Annotated[str, Query(alias="id", description="The id of a block.")]
"""It is no part of the path, in which browsers and proxies change what an id may hold: `//`, `..`, an encoded slash."""
BaseVersion = Annotated[
    str | None, Query(description="The version that the edit was made from; another one gives 409.")
]


async def reply_of(future: Future[Reply]) -> Reply:
    """What a queued request replies."""
    # The shield keeps an edit going when its client has left.
    return await asyncio.shield(asyncio.wrap_future(future))


Within = Annotated[
    list[str] | None,
    Header(alias=FILTER_HEADER, description="Filters of a proxy: nothing is found or read but blocks that pass all."),
]


@health.get(HEALTH, responses=_errors(503))
async def healthz(served: Served) -> Health:
    """Whether requests are computed. Any Host may ask."""
    if not served.is_working:
        raise HTTPException(503, "The thread that computes has ended. Start the server again.")
    return Health()


@router.get("/status", responses=_errors(422))
async def status(served: Served, within: Within = None) -> StatusReply:
    """What is served, how many requests wait, and their latency."""
    return served.status(tuple(within or ()))


@router.post("/ask", responses=ASKING)
async def ask(message: Ask, served: Served) -> AskReply:
    """Answer a question from retrieved blocks, and on request without retrieval too."""
    return await reply_of(served.ask(message))


@router.post("/search", responses=ASKING)
async def search(message: Search, served: Served, within: Within = None) -> SearchReply:
    """Find the best blocks for some words. This needs no model that reads."""
    return await reply_of(served.search(message, tuple(within or ())))


@router.post("/fill", responses=ASKING)
async def fill(message: Fill, served: Served) -> FillReply:
    """Fill every [MASK] of a sentence: with retrieval, without it, and with each candidate."""
    return await reply_of(served.fill(message))


@router.post("/without", responses=ASKING)
async def without(message: LeaveOut, served: Served) -> LeaveOutReply:
    """Answer a question again without some blocks."""
    return await reply_of(served.leave_out(message))


@router.get("/blocks", responses=READING)
async def block(name: BlockId, served: Served, within: Within = None) -> ServedBlockReply:
    """A block by its id."""
    await reply_of(served.fields_read(tuple(within or ())))
    return served.block(name, tuple(within or ()))


@router.get("/document", responses=READING)
async def document(name: BlockId, served: Served, within: Within = None) -> DocumentReply:
    """The document of a block, as the blocks that it was cut into; of a long one 200 around the block."""
    await reply_of(served.fields_read(tuple(within or ())))
    return served.document(name, tuple(within or ()))


@router.put("/blocks", responses=EDITING, dependencies=[Depends(require_token)])
async def replace(name: BlockId, message: NewText, served: Served) -> EditReply:
    """Replace the text of a block. Only blocks that change are embedded; the next version is written, then served."""
    return await reply_of(served.replace(name, message))


@router.delete("/blocks", responses=EDITING, dependencies=[Depends(require_token)])
async def remove(name: BlockId, served: Served, version: BaseVersion = None) -> EditReply:
    """Remove a block; a document without blocks is removed."""
    return await reply_of(served.remove(name, version))


@router.post("/documents", responses=EDITING, dependencies=[Depends(require_token)])
async def add(message: NewDocument, served: Served) -> EditReply:
    """Add a document, which is cut into blocks."""
    return await reply_of(served.add(message))

"""The application: the API, the page, the guards, and what each error becomes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from realmctl.errors import (
    AccessError,
    ConfigError,
    InputError,
    LockedError,
    MismatchError,
    QualityError,
    RealmctlError,
    ResourceError,
    as_realmctl_error,
)
from realmctl.extras.serve.service import Service, UnknownBlock
from realmctl.extras.serve.vectors import OtherError, OtherErrorReply, UnknownModel
from realmctl.extras.serve.web import api, other_forms, page
from realmctl.extras.serve.web.guards import HEADERS, Guard
from realmctl.extras.serve.worker import QueueFull
from realmctl.version import __version__

FORM = re.compile(r"constrained-|list\[|function-")
"""What pydantic puts into the place of an error for each form that a value may have."""
JSON_TYPE = re.compile(r"application/([\w.-]+\+)?json\b", re.IGNORECASE)
STATUS: dict[type[RealmctlError], int] = {
    UnknownBlock: 404,
    UnknownModel: 404,
    ConfigError: 422,
    InputError: 422,
    AccessError: 422,
    MismatchError: 422,
    LockedError: 409,
    ResourceError: 507,
    QualityError: 422,
}


def create_app(service: Service, hosts: Sequence[str], token: str | None, mcp: bool = False) -> FastAPI:
    """Return the application.

    Args:
        service: what answers.
        hosts: the names that a Host header may have, without port.
        token: the token that edits need; None if edits are not allowed.
        mcp: whether /mcp offers the tools for agents.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with tools.session_manager.run() if tools else nullcontext():
            yield
        service.stop()

    app = FastAPI(
        title="realmctl serve",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        description="Questions, evidence and edits. An error is an ErrorReply.",
    )
    app.state.service, app.state.token = service, token
    app.include_router(api.router)
    app.include_router(api.health)
    app.include_router(other_forms.router)
    app.include_router(page.router)
    tools = None
    if mcp:
        from mcp.server.transport_security import TransportSecuritySettings

        from realmctl.extras.serve.tools import mcp_server

        tools = mcp_server(service)
        security = TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        )  # the guard refuses other hosts and origins
        offered = tools.streamable_http_app(stateless_http=True, json_response=True, transport_security=security)
        app.router.routes.extend(offered.routes)
    app.add_middleware(Guard, hosts=hosts)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(QueueFull, _busy)
    app.add_exception_handler(Exception, _unexpected)
    for kind in STATUS:
        app.add_exception_handler(kind, _known_error)
    return app


def _error(request: Request, code: int, text: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An ErrorReply, or below /v1 an error in OpenAI's form, of which its clients show the message."""
    if not request.url.path.startswith(other_forms.router.prefix):
        return JSONResponse({"error": text}, code, headers)
    told = OtherErrorReply(error=OtherError(message=text, code=str(code)))
    return JSONResponse(told.model_dump(), code, headers)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, ValueError | RecursionError):  # of fastapi, which does not say what is wrong
        return _error(request, 400, "The body is not JSON.")
    return _error(request, error.status_code, str(error.detail), dict(error.headers or {}))


async def _bad_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors: Sequence[dict[str, Any]] = error.errors()
    # What may be a text or a list has an error for each: that of the form which was sent is no error of type.
    found = max(errors, key=lambda each: (not each["type"].endswith("_type"), len(each["loc"])))
    where = ".".join(part for part in map(str, found["loc"][1:]) if not FORM.match(part)) or "the body"
    if request.method != "DELETE" and not JSON_TYPE.match(request.headers.get("content-type", "")):
        return _error(request, 400, "The body is not sent as JSON. Add the header Content-Type: application/json.")
    if found["type"] == "json_invalid":
        return _error(request, 400, f"The body is not JSON: {found['ctx']['error']}, at character {found['loc'][-1]}.")
    return _error(
        request, 422, f"{where}: {found['msg'].removeprefix('Value error, ')}. See /docs for what this request needs."
    )


async def _busy(request: Request, error: Exception) -> JSONResponse:
    seconds = str(api.service_of(request).retry_after())
    return _error(request, 503, f"Too many requests wait. Try again in {seconds} s.", {"Retry-After": seconds})


async def _known_error(request: Request, error: Exception) -> JSONResponse:
    code = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    assert isinstance(error, RealmctlError)
    text = api.service_of(request).told(error)
    return _error(request, code, text[:1].upper() + text[1:])


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    known = as_realmctl_error(error)
    if known is not None:
        return await _known_error(request, known)
    text = "This is a bug of realmctl. The server's stderr has a traceback; please report it."
    return _error(request, 500, text, HEADERS)  # which is sent outside of the guard

"""The page and the page of the API: fixed files of the package, by name."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import APIRouter
from fastapi.responses import Response

router = APIRouter(include_in_schema=False)
FILES = {
    "/": ("serve.html", "text/html; charset=utf-8"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/serve.css": ("serve.css", "text/css; charset=utf-8"),
    "/serve.js": ("serve.js", "text/javascript; charset=utf-8"),
    "/dom.js": ("dom.js", "text/javascript; charset=utf-8"),
    "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


@cache
def _content(name: str) -> bytes:
    return (resources.files("realmctl.extras.serve.web") / "page" / name).read_bytes()


def _add(path: str, name: str, media_type: str) -> None:
    async def file() -> Response:
        return Response(_content(name), media_type=media_type)

    router.add_api_route(path, file, methods=["GET", "HEAD"], response_class=Response)


for path, (name, media_type) in FILES.items():
    _add(path, name, media_type)

"""Files of the web by `https://` and `http://`: one file each, as the server sends it.

A redirect to anything but the web, and one from https to http, is refused. What the server compresses for the way stays compressed, so that it is
decompressed within the limits of files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from realmctl.errors import InputError, require_package
from realmctl.extras.remote.copying import Copies, file_name, pieces_of, shown, told
from realmctl.pipeline.sources import Remote
from realmctl.version import __version__

SECONDS_TO_CONNECT, SECONDS_OF_SILENCE = 30, 60
ADVICE = "Check the address and the network, or copy the file by other means."


def fetch(address: str, folder: Path) -> Path:
    """Copy the file at an address into a folder."""
    require_package("aiohttp", "remote", f"reading {shown(address)}")
    from aiohttp import ClientTimeout, TraceConfig
    from fsspec.implementations.http import HTTPFileSystem

    name = shown(address)
    with told(name, ADVICE):
        if not urlsplit(address).hostname:
            raise InputError(f"{name} names no host. Check the address.")
        trace = TraceConfig()
        trace.on_request_redirect.append(_check_redirect)
        web = HTTPFileSystem(
            encoded=address.isascii() and " " not in address,
            client_kwargs={
                "trace_configs": [trace],
                "timeout": ClientTimeout(total=None, sock_connect=SECONDS_TO_CONNECT, sock_read=SECONDS_OF_SILENCE),
                "auto_decompress": False,
                "headers": {"Accept-Encoding": "identity", "User-Agent": f"realmctl/{__version__}"},
                "trust_env": True,
            },
            skip_instance_cache=True,
        )
        file = web.open(
            address, block_size=0, size=1
        )  # with a size it asks once, and does not call every failure a missing file
        return Copies(name, folder).file(file_name(urlsplit(address).path, "index"), pieces_of(file), _size(file))


def _size(file: Any) -> int | None:
    """How long the server says that the file is."""
    length = file.r.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


async def _check_redirect(session: Any, context: Any, answer: Any) -> None:
    """Raise InputError for a redirect to what is not the web, or that leaves https."""
    asked = answer.response.url
    place = asked.join(_url(answer.response.headers))
    if place.scheme not in ("https", "http") or (asked.scheme, place.scheme) == ("https", "http"):
        raise InputError(
            f"{shown(str(asked))} redirects to {shown(str(place))}, and only a redirect to the web that keeps https is followed. Name another address."
        )


def _url(headers: Any) -> Any:
    from yarl import URL

    return URL(headers.get("Location") or headers.get("URI") or "")


WEB = Remote(fetch, shown)

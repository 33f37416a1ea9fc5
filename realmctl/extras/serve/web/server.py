"""The process of `realmctl serve`: its socket, its models, and its end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Literal

import uvicorn

from realmctl.errors import ConfigError
from realmctl.extras.serve.files import Files
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.web.application import create_app
from realmctl.extras.serve.web.connections import Connection, ListeningSocket
from realmctl.extras.serve.web.guards import require_name
from realmctl.extras.serve.web.tokens import new_token, read_token
from realmctl.log import is_quiet, say, warn
from realmctl.retrieval.search.reranking import Reranking

LOOPBACK = ("127.0.0.1", "localhost")
SECONDS_TO_FINISH = 30
"""How long requests that were accepted may take after the server was asked to stop."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What is served, and how. A path that is None is left out.

    qa_model, model, closed_book, blocks, retriever: see `open_models`.
    embeddings, indexes: the series that edits write to.
    later: see `open_models`.
    host, port: where the server listens; port 0 means a free one.
    names: further names that a Host header may have.
    files: folder of the documents' files, whose addresses are told.
    rerank, rerank_depth, rerank_fused: see `Reranking.of`.
    mcp: offer the tools for agents at /mcp (http), or nothing but them on standard input and output (stdio).
    announce: called with the address when the server listens.
    """

    qa_model: Path | None
    model: Path | None
    closed_book: Path | None
    retriever: Path | None
    blocks: Path
    embeddings: Path
    indexes: Path
    later: tuple[Path, ...] = ()
    host: str
    port: int
    names: tuple[str, ...]
    allow_edits: bool
    token_file: Path | None
    most_waiting: int
    files: Path | None = None
    rerank: str | None = None
    rerank_depth: int | None = None
    rerank_fused: bool = False
    mcp: Literal["stdio", "http"] | None = None
    announce: Callable[[str], None] = lambda address: None

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Open requests are answered before it ends.

        Raises:
            ConfigError: the address cannot be used, or options do not fit together.
            InputError: something is missing or damaged.
            MismatchError: models, blocks and index do not belong together.
        """
        for name in self.names:
            require_name(name)
        if self.mcp == "stdio":
            self._run_stdio()
            return
        address = _plain(self._resolved()[1])
        if address.is_unspecified and not self.names:
            raise ConfigError(
                f"--host {self.host} accepts connections from other machines. Say with --name by which name or address "
                "they reach this one."
            )
        if self.token_file is not None and not self.allow_edits:
            raise ConfigError("--token-file is the token for edits. Name --allow-edits too, or leave it out.")
        token = self._token()
        with self._socket() as listening:
            host = self.names[0] if address.is_unspecified else self.host
            url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
            say(f"serve: starting; {url} answers as soon as models and blocks are read")
            service = self._service()
            service.follow_always()
            listening.leave_handles()
            say(f"serving {service.models.version.blocks} at {url}")
            self.announce(url)
            if token is not None and self.token_file is None:
                print(f"token for edits: {token}", file=sys.stderr, flush=True)
            if not address.is_loopback:
                warn("other machines can connect, and the connection is not encrypted")
            app = create_app(
                service, (*LOOPBACK, "::1", self.host, str(address), *self.names), token, self.mcp == "http"
            )
            config = uvicorn.Config(
                app,
                http=Connection,
                log_level="error" if is_quiet() else "warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=SECONDS_TO_FINISH,
                proxy_headers=False,
                ws="none",
            )
            with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has ended
                uvicorn.Server(config).run(sockets=[listening])
            service.stop()
            say("serve: stopped")

    def _run_stdio(self) -> None:
        from realmctl.extras.serve.tools import mcp_server, run_stdio

        if self.allow_edits:
            raise ConfigError(
                "--mcp stdio writes nothing. Leave --allow-edits out, or use --mcp http, whose API takes edits."
            )
        service = self._service()
        say(f"serving {service.models.version.blocks} on standard input and output")
        try:
            run_stdio(mcp_server(service))
        finally:
            service.stop()

    def _token(self) -> str | None:
        if not self.allow_edits:
            return None
        return new_token() if self.token_file is None else read_token(self.token_file)

    def _service(self) -> Service:
        files = Files(self.files) if self.files else None
        models, versions = open_models(
            self.qa_model,
            self.model,
            self.closed_book,
            self.blocks,
            self.embeddings,
            self.indexes,
            self.retriever,
            self.later,
            Reranking.of(self.rerank, self.rerank_depth, fused=self.rerank_fused),
        )
        if self.allow_edits:
            versions.check_edits(models.version)
            models.check_edits()
        return Service(models, versions, self.allow_edits, self.most_waiting, files)

    def _resolved(self) -> tuple[int, str]:
        """Family and address that --host means: `0` is 0.0.0.0, and a name is looked up."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                f"--host {self.host}: {getattr(error, 'strerror', None) or error}. Name an address of this machine."
            ) from None
        family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        return family, str(address[0])

    def _socket(self) -> ListeningSocket:
        """Listen before the models are read, so that an address in use is known at once."""
        family, address = self._resolved()
        try:
            return ListeningSocket(family, address, self.port)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"--host {self.host} --port {self.port}: {getattr(error, 'strerror', None) or error}. Use another port; "
                "--port 0 finds a free one."
            ) from None


def _plain(address: str) -> IPv4Address | IPv6Address:
    """An address without its interface; the IPv4 address that an IPv6 address stands for."""
    found = ip_address(address.partition("%")[0])
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found

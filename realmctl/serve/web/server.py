"""The process of `realmctl serve`: its socket, its models, and its end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from realmctl.errors import ConfigError
from realmctl.log import is_quiet, say, warn
from realmctl.serve.models import open_models
from realmctl.serve.service import Service
from realmctl.serve.web.application import create_app
from realmctl.serve.web.tokens import new_token, read_token

LOOPBACK = ("127.0.0.1", "localhost")
EVERYWHERE = ("0.0.0.0", "::")
MOST_CONNECTIONS_TO_ACCEPT = 2048
"""How many connections may wait until they are accepted, as uvicorn has it; the kernel may allow fewer."""
SECONDS_TO_FINISH = 30
"""How long requests that were accepted may take after the server was asked to stop."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What is served, and how. A path that is None is left out.

    qa_model, model, closed_book, blocks: see `open_models`.
    embeddings, indexes: the series that edits write to.
    host, port: where the server listens; port 0 means a free one.
    names: further names that a Host header may have.
    announce: called with the address when the server listens.
    """

    qa_model: Path | None
    model: Path | None
    closed_book: Path | None
    blocks: Path
    embeddings: Path
    indexes: Path
    host: str
    port: int
    names: tuple[str, ...]
    allow_edits: bool
    token_file: Path | None
    most_waiting: int
    announce: Callable[[str], None] = lambda address: None

    def run(self) -> None:
        """Serve until a signal. SIGTERM ends in InterruptedRun and SIGINT in KeyboardInterrupt, after open requests.

        Raises:
            ConfigError: the address cannot be used, or options do not fit together.
            InputError: something is missing or damaged.
            MismatchError: models, blocks and index do not belong together.
        """
        if self.host in EVERYWHERE and not self.names:
            raise ConfigError(
                f"--host {self.host} accepts connections from other machines. Say with --name by which name or address "
                "they reach this one."
            )
        if self.token_file is not None and not self.allow_edits:
            raise ConfigError("--token-file is the token for edits. Name --allow-edits too, or leave it out.")
        token = self._token()
        with self._socket() as listening:
            service = self._service()
            port = listening.getsockname()[1]
            address = f"http://{self._shown_host()}:{port}"
            say(f"serving {service.models.version.blocks} at {address}")
            self.announce(address)
            if token is not None and self.token_file is None:
                print(f"token for edits: {token}", file=sys.stderr, flush=True)
            if self.host not in LOOPBACK:
                warn("other machines can connect, and the connection is not encrypted")
            app = create_app(service, (*LOOPBACK, "::1", self.host, *self.names), token)
            config = uvicorn.Config(
                app,
                log_level="error" if is_quiet() else "warning",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=SECONDS_TO_FINISH,
                proxy_headers=False,
                ws="none",
            )
            uvicorn.Server(config).run(sockets=[listening])

    def _token(self) -> str | None:
        if not self.allow_edits:
            return None
        return new_token() if self.token_file is None else read_token(self.token_file)

    def _shown_host(self) -> str:
        host = self.names[0] if self.host in EVERYWHERE else self.host
        return f"[{host}]" if ":" in host else host

    def _service(self) -> Service:
        models, versions = open_models(
            self.qa_model, self.model, self.closed_book, self.blocks, self.embeddings, self.indexes
        )
        if self.allow_edits:
            versions.check_edits(models.version)
            models.check_edits()
        return Service(models, versions, self.allow_edits, self.most_waiting)

    def _socket(self) -> socket.socket:
        """Listen before the models are read, so that an address in use is known at once.

        asyncio sets TCP_NODELAY only where the socket names TCP. Without it each reply waits 40 ms for an acknowledgement.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self.host, self.port))
            listening.listen(MOST_CONNECTIONS_TO_ACCEPT)
        except (OSError, OverflowError) as error:
            listening.close()
            raise ConfigError(
                f"--host {self.host} --port {self.port}: {getattr(error, 'strerror', None) or error}. Use another port; "
                "--port 0 finds a free one."
            ) from None
        return listening

"""Connections of clients: as many as there are file handles, and none that waits without end for its client."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
from pathlib import Path
from typing import Any, Self

from uvicorn.protocols.http.h11_impl import H11Protocol

from realmctl.log import warn

MOST_CONNECTIONS_TO_ACCEPT = 2048
"""How many connections may wait until they are accepted, as uvicorn has it; the kernel may allow fewer."""
KEPT_HANDLES = 64
"""File handles that connections leave to the models and edits, or half of those that are left, if these are fewer."""
SECONDS_TO_SEND = 30.0
"""How long a client may take to send a request, and to take anything of a reply."""


class ListeningSocket(socket.socket):
    """A socket that closes connections at once when there are too many for the file handles of the process.

    Without it, asyncio fails to accept each of them up to 2048 times a second, and logs each with a traceback. The system gives the
    lowest handle that is free, so that the number of a handle says how many are in use.
    """

    def __init__(self, family: int, address: str, port: int) -> None:
        """Listen at an address. Raises OSError or OverflowError.

        asyncio sets TCP_NODELAY only where the socket names TCP. Without it each reply waits 40 ms for an acknowledgement.
        """
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._highest, self._told = resource.RLIM_INFINITY, False
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((address, port))
            self.listen(MOST_CONNECTIONS_TO_ACCEPT)
        except BaseException:
            self.close()
            raise

    def leave_handles(self) -> None:
        """Keep handles for what the process will open. Call it when the models are open."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY:
            free = limit - len([*Path("/proc/self/fd").iterdir()]) if Path("/proc/self/fd").is_dir() else limit
            self._highest = limit - min(KEPT_HANDLES, max(free, 0) // 2)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection that may stay."""
        while True:
            try:
                connection, address = super().accept()
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                os.close(self._spare)
                try:
                    super().accept()[0].close()
                finally:
                    self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            else:
                if self._highest == resource.RLIM_INFINITY or connection.fileno() < self._highest:
                    return connection, address
                connection.close()
            if not self._told:
                self._told = True
                warn("too many connections for the file handles of this process: further ones are closed (ulimit -n)")

    def close(self) -> None:
        """Close the socket and its spare handle."""
        if self.fileno() >= 0:
            os.close(self._spare)
        super().close()

    def __enter__(self) -> Self:
        return self


class Connection(H11Protocol):
    """uvicorn's connection, which ends when its client has not sent a whole request in time, or takes nothing of what waits for it.

    So does one whose client has not sent a whole request when the server stops.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._untaken: tuple[object, int] = (None, 0)
        self._watch = self.loop.call_later(SECONDS_TO_SEND, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        self._watch.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End the connection, if its client has not sent a whole request; else after the reply."""
        if self._is_sending():
            self.transport.close()
        else:
            super().shutdown()

    def _is_sending(self) -> bool:
        """Whether the client has begun a request, or has not, and nothing is being computed."""
        return self.cycle is None or (self.cycle.more_body and not self.cycle.response_complete)

    def _look(self) -> None:
        waits = self.transport.get_write_buffer_size()
        before, self._untaken = self._untaken, (self.cycle, waits)
        if waits and self._untaken == before:
            self.transport.abort()  # `close` would wait until the client has taken it
        elif not waits and self._is_sending():
            self.transport.close()
        else:
            self._watch = self.loop.call_later(SECONDS_TO_SEND, self._look)

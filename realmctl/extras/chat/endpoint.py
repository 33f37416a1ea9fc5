"""A client of OpenAI's chat completions (POST /v1/chat/completions), as Ollama, vLLM, llama.cpp's server and providers offer them.

Each request has an end: its time, the bytes of its answer, and the number of times that it is sent. A server that is busy or fails for a moment is asked again,
later each time, or when its Retry-After says. Nothing is sent to another place than the address that was named: no redirect is followed, and no proxy of the
environment is used. Certificates are verified. A key goes into the header alone, and is taken out of every message.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from realmctl.errors import ConfigError, InputError, ResourceError, one_line
from realmctl.extras.chat.settings import Address
from realmctl.version import __version__

KEY, PROVIDERS_KEY = "REALMCTL_API_KEY", "OPENAI_API_KEY"
PROVIDER = "api.openai.com"
"""The only host to which the key of that provider is sent."""
MAX_ANSWER_BYTES = 2**22
"""Bytes of an answer. A longer one is given up."""
TRIES = 6
"""How often a request is sent at most."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the second try, which double from try to try. The random part is up to a half more."""
MOST_ASKED_FOR = 300.0
"""Seconds of a Retry-After that are waited at most."""
BUSY = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
"""Codes after which the same request may succeed later."""
LONGEST_TOLD = 300
Messages = Sequence[Mapping[str, str]]


class Transient(Exception):
    """A failure after which the same request may succeed. `after`: seconds that the server asks to wait; None if it does not say."""

    def __init__(self, text: str, after: float | None = None) -> None:
        super().__init__(text)
        self.after = after


@dataclass(frozen=True)
class Reply:
    """An answer. ended: whether the model came to an end, and was not cut. model: what the server calls the model. Tokens are those of the server, or 0."""

    text: str
    ended: bool
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


def key_for(address: Address) -> str:
    """Return the key for a server, from the environment; empty without one.

    Raises ConfigError for one that is no header, and where it would travel in the clear to another machine.
    """
    key = os.environ.get(KEY) or (os.environ.get(PROVIDERS_KEY, "") if address.host == PROVIDER else "")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(f"{KEY} holds blanks or other characters that no key has. Set it again.")
    if key and not (address.is_https or address.is_here):
        raise ConfigError(
            f"--endpoint {address}: the key of {KEY} would travel in the clear. Use https, or unset the variable if the server needs no key."
        )
    return key


@dataclass
class Endpoint:
    """A server and its model. Several threads may ask at once. `close` ends what they wait for."""

    address: Address
    model: str
    timeout: float
    key: str = field(default="", repr=False)
    _stopped: threading.Event = field(default_factory=threading.Event, repr=False)
    _open: set[http.client.HTTPConnection] = field(default_factory=set, repr=False)
    _length: str = "max_tokens"
    """The name of the limit of tokens: newer models of one provider have another one."""
    _has_answered: bool = False

    def ask(self, messages: Messages, *, longest: int, temperature: float, seed: int) -> Reply:
        """Return the answer to a conversation.

        Args:
            messages: What was said: `role` and `content`.
            longest: Most tokens of the answer.
            temperature: Of sampling; 0 takes the likeliest token.
            seed: For servers that heed it.

        Raises:
            ConfigError: The server refuses the request, the key or the model, or redirects.
            InputError: The server does not speak this form.
            ResourceError: It cannot be reached, or failed `TRIES` times.
        """
        wait = FIRST_WAIT
        for number in range(1, TRIES + 1):
            body = {"model": self.model, "messages": [*messages], "temperature": temperature, "seed": seed}
            named = self._length
            try:
                reply = self._post({**body, named: longest, "stream": False})
                self._has_answered = True
                return reply
            except _OtherLength:
                self._length = "max_completion_tokens" if named == "max_tokens" else "max_tokens"
            except Transient as error:
                if number == TRIES or self._stopped.is_set():
                    raise ResourceError(
                        f"{self.address} failed {number} times: {error}. Look at the server, then run the same command again: it goes on with what is not "
                        "answered yet."
                    ) from None
                pause = error.after if error.after is not None else wait * (1 + random.random() / 2)
                wait = min(2 * wait, LONGEST_WAIT)
                self._stopped.wait(pause)
        raise ConfigError(f"{self.address} takes neither max_tokens nor max_completion_tokens. Use another server.")

    def stop(self) -> None:
        """Send nothing any more, also not again. What is under way may still be answered."""
        self._stopped.set()

    def close(self) -> None:
        """End all requests, also those of other threads, which raise ResourceError."""
        self.stop()
        for connection in [*self._open]:
            _shut(connection)

    def _post(self, body: Mapping[str, Any]) -> Reply:
        """Send a request once. Raises what `ask` raises, and Transient."""
        address = self.address
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"realmctl/{__version__}",
            **({"Authorization": f"Bearer {self.key}"} if self.key else {}),
        }
        connection = self._connection()
        self._open.add(connection)
        clock = threading.Timer(
            self.timeout, _shut, [connection]
        )  # an end also for a server that sends a byte now and then
        clock.daemon = True
        begun = time.monotonic()
        try:
            clock.start()
            if self._stopped.is_set():
                raise Transient("the run has ended")
            connection.request("POST", f"{address.path}/chat/completions", json.dumps(body).encode(), headers)
            response = connection.getresponse()
            content = response.read(MAX_ANSWER_BYTES + 1)
            if response.length and len(content) <= MAX_ANSWER_BYTES:  # bytes that were announced and did not come
                raise Transient("the answer was cut short")
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(
                f"{address}: its certificate is not valid ({error.verify_message}). Use the name that it was made for, or correct the server."
            ) from None
        except ConnectionRefusedError:
            if self._has_answered:
                raise Transient("it refuses connections") from None
            raise ResourceError(f"there is no server at {address}. Start it, or correct --endpoint.") from None
        except socket.gaierror as error:
            raise ResourceError(
                f"--endpoint {address}: {address.host} is not known ({error.strerror}). Correct it."
            ) from None
        except (
            OSError,
            http.client.HTTPException,
            ValueError,
            AttributeError,
        ) as error:  # of a connection that another thread shut
            if time.monotonic() - begun >= self.timeout:
                raise Transient(f"no answer within {self.timeout:g} seconds") from None
            raise Transient(self._told(one_line(error))) from None
        finally:
            clock.cancel()
            self._open.discard(connection)
            connection.close()
        if time.monotonic() - begun >= self.timeout:
            raise Transient(f"no answer within {self.timeout:g} seconds")
        if len(content) > MAX_ANSWER_BYTES:
            raise InputError(
                f"{address} sends more than {MAX_ANSWER_BYTES:,} bytes for one answer. Is it a language model?"
            )
        return self._reply(response, content)

    def _connection(self) -> http.client.HTTPConnection:
        address = self.address
        if address.is_https:
            verified = ssl.create_default_context()
            return http.client.HTTPSConnection(address.host, address.port, timeout=self.timeout, context=verified)
        return http.client.HTTPConnection(address.host, address.port, timeout=self.timeout)

    def _reply(self, response: http.client.HTTPResponse, content: bytes) -> Reply:
        address, code = self.address, response.status
        told = self._told(_reason(content))
        if code in BUSY:
            raise Transient(f"{code} {told}".strip(), _seconds(response.getheader("Retry-After")))
        if 300 <= code < 400:
            where = self._told(response.getheader("Location") or "elsewhere")
            raise ConfigError(
                f"{address} redirects to {where}, which is not followed. Name that address if you trust it."
            )
        if code in (401, 403):
            raise ConfigError(
                f"{address} refuses access ({code} {told}). Set the environment variable {KEY} to a key of it."
            )
        if code == 400 and "max_completion_tokens" in told:
            raise _OtherLength
        if code != 200:
            raise ConfigError(
                f"{address} refuses the request for the model {self.model!r} ({code} {told}). Correct --lm or --endpoint."
            )
        try:
            answer = json.loads(content)
            choice = answer["choices"][0]
            text = choice["message"]["content"]
            if not isinstance(text, str | None):
                raise TypeError("the content is no text")
            usage = answer.get("usage") or {}
            counts = [_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            called = answer.get("model")
            ended = choice.get("finish_reason") != "length"
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{address} does not answer in OpenAI's form: {told or content[:80]!r}. The address of Ollama ends in /v1, and so do those of vLLM and llama.cpp."
            ) from None
        text = (text or "").encode("utf-8", "replace").decode()  # JSON can hold half a surrogate pair
        return Reply(text, ended, self._told(str(called or self.model)), *counts)

    def _told(self, text: str) -> str:
        """What a server says, for a message: one line, not too long, and without the key."""
        line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return (line.replace(self.key, "(the key)") if self.key else line)[:LONGEST_TOLD]


class _OtherLength(Exception):
    """The server wants the limit of tokens under its other name."""


def _shut(connection: http.client.HTTPConnection) -> None:
    with suppress(OSError, AttributeError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


def _reason(content: bytes) -> str:
    """The reason of an error in OpenAI's form, or what was sent instead."""
    text = content[: 16 * LONGEST_TOLD].decode("utf-8", "replace")
    try:
        found = json.loads(content)
        error = found.get("error", found.get("detail", ""))
        return str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, AttributeError, RecursionError):
        return re.sub(r"<[^>]{0,200}>", " ", text)


def _seconds(header: str | None) -> float | None:
    """The seconds of a Retry-After: a number or a date; None for anything else."""
    if not header:
        return None
    try:
        seconds = (
            float(header) if header.strip().isdecimal() else parsedate_to_datetime(header).timestamp() - time.time()
        )
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), MOST_ASKED_FOR)

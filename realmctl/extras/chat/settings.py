"""Where a language model is asked, and how often at once. None of it changes what is asked."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from realmctl.errors import ConfigError
from realmctl.pipeline import Settings, runtime

SERVED = "served:"
"""What the recipe has before the name of a model that a server knows, in place of the hash of a folder."""


class Address(NamedTuple):
    """The parts of an endpoint's address. path: of its folder, such as `/v1`."""

    is_https: bool
    host: str
    port: int
    path: str

    @property
    def is_here(self) -> bool:
        """Whether it is this machine: a loopback address, or localhost."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_https else 'http'}://{host}:{self.port}{self.path}"


def address_of(url: str, flag: str = "--endpoint") -> Address:
    """Return the parts of an address such as http://127.0.0.1:11434/v1. Without a path it is /v1.

    Raises ConfigError for another form, and for one that holds a password or a key, which would be kept in logs and shells.
    """
    form = "Write it as http://127.0.0.1:11434/v1."
    if not url.isascii() or any(character.isspace() or not character.isprintable() for character in url):
        raise ConfigError(f"{flag} {url!r} is not the address of a server. {form}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{flag} is not the address of a server ({error}). {form}") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"{flag}: an address has no password, no `?` and no `#` here. Give a key by the environment variable REALMCTL_API_KEY. {form}"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(f"{flag} {url!r} is not the address of a server. {form}")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    is_https = parts.scheme == "https"
    return Address(is_https, parts.hostname, port or (443 if is_https else 80), path)


def check_endpoint(flag: str, url: str) -> None:
    """Check the spelling of an address. Raises ConfigError."""
    address_of(url, flag)


def named(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a stage with `lm` as the name of a served model, where `endpoint` says that a server has it."""
    lm = values.get("lm")
    is_served = bool(values.get("endpoint") and lm) and not str(lm).startswith(SERVED)
    return {**values, "lm": f"{SERVED}{lm}"} if is_served else dict(values)


class EndpointSettings(Settings):
    """A server that has the language model."""

    endpoint: str | None = runtime(
        "Address of a server that speaks OpenAI's form (Ollama, vLLM, llama.cpp), such as http://127.0.0.1:11434/v1. It then has the model --lm. Texts are "
        "sent there. A key comes from the environment: REALMCTL_API_KEY.",
        default=None,
        check=check_endpoint,
    )
    parallel: int = runtime("requests at once.", default=4, at_least=1, at_most=64, used_with="endpoint", advanced=True)
    timeout: float = runtime(
        "seconds after which a request is given up, and sent again.",
        default=120.0,
        above=0,
        at_most=3600,
        used_with="endpoint",
        advanced=True,
    )

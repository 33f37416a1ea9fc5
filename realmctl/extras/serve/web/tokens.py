"""The token that an edit needs."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from realmctl.errors import ConfigError, InputError, as_realmctl_error
from realmctl.log import warn

SHORTEST, LONGEST = 16, 1000
OTHERS_MAY_READ = 0o077


def new_token() -> str:
    """Return a token of 256 random bits."""
    return secrets.token_urlsafe(32)


def read_token(path: Path) -> str:
    """Return the token in a file: its first line.

    Raises:
        InputError: the file cannot be read.
        ConfigError: the token is too short, too long, or has characters that an HTTP header cannot carry.
    """
    try:
        with path.open("rb") as file:
            line = file.readline(LONGEST + 2).strip()
        shared = path.stat().st_mode & OTHERS_MAY_READ
    except OSError as error:
        raise as_realmctl_error(error, path) or InputError(
            f"--token-file {path}: {error.strerror}. Name a file that holds a token."
        ) from None
    if not SHORTEST <= len(line) <= LONGEST or not all(33 <= byte < 127 for byte in line):
        raise ConfigError(
            f"--token-file {path}: its first line must be a token of {SHORTEST} to {LONGEST} ASCII characters without "
            "spaces. `openssl rand -hex 32` makes one."
        )
    if shared:
        warn(f"other users may read {path}, which holds the token for edits: chmod 600")
    return line.decode("ascii")


def is_token(given: str, token: str) -> bool:
    """Whether an `Authorization` header holds the token. The time this takes does not depend on where they differ."""
    scheme, _, value = given.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(value.strip().encode(), token.encode())

"""The token of a server: where it comes from, and what is taken for it."""

from __future__ import annotations

import pytest

from realmctl.errors import ConfigError, InputError
from realmctl.extras.serve.web.tokens import is_token, new_token, read_token

TOKEN = "0123456789abcdef-secret"


def written(path, content, mode=0o600):
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_new_tokens_differ_and_can_be_sent():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100 and all(len(token) == 43 and is_token(f"Bearer {token}", token) for token in tokens)


@pytest.mark.parametrize(
    "content", [TOKEN.encode(), f"  {TOKEN}\r\nanother line\n".encode(), TOKEN.encode() + b"\n\xff"]
)
def test_the_first_line_of_a_file(tmp_path, capfd, content):
    assert read_token(written(tmp_path / "token", content)) == TOKEN
    assert capfd.readouterr().err == ""


def test_a_file_that_others_may_read_is_told(tmp_path, capfd):
    assert read_token(written(tmp_path / "token", TOKEN.encode(), 0o644)) == TOKEN
    assert "chmod 600" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n" + TOKEN.encode(),
        b"short",
        b"x" * 1001,
        b"with a space in the token",
        "\u00e9".encode() * 20,
        b"\0" * 20,
    ],
)
def test_a_token_that_is_refused(tmp_path, content):
    with pytest.raises(ConfigError, match="openssl rand"):
        read_token(written(tmp_path / "token", content))


def test_a_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InputError, match=path.name):
            read_token(path)


@pytest.mark.parametrize(
    ("header", "right"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (TOKEN, False),
        ("", False),
        ("Bearer ", False),
        (f"Bearer {TOKEN[:-1]}", False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN.upper()}", False),
        (f"Basic {TOKEN}", False),
        ("Bearer \u00e9", False),
    ],
)
def test_what_is_taken_for_the_token(header, right):
    assert is_token(header, TOKEN) is right

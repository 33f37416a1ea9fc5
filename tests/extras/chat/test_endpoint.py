"""The client of OpenAI's form beside a server in this process: retries, ends, refusals, and where a key may go."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from realmctl.errors import ConfigError, InputError, RealmctlError, ResourceError
from realmctl.extras.chat import endpoint as client
from realmctl.extras.chat.endpoint import Endpoint, key_for
from realmctl.extras.chat.settings import address_of
from tests.fixtures.chat_server import Answer, chat_server

HELLO = ({"role": "user", "content": "Hello?"},)


@pytest.fixture(autouse=True)
def without_keys(monkeypatch):
    for name in (client.KEY, client.PROVIDERS_KEY):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)


def endpoint(url: str, timeout: float = 5.0, key: str = "") -> Endpoint:
    return Endpoint(address_of(url), "m", timeout, key)


def ask(one: Endpoint) -> client.Reply:
    return one.ask(HELLO, longest=8, temperature=0.5, seed=3)


def test_a_request_and_its_answer():
    with chat_server(lambda number, body: "Hi.") as server:
        reply = ask(endpoint(server.url + "/", key="secret"))
    assert reply == client.Reply("Hi.", True, "m", 7, 3)
    [(path, headers, body)] = server.asked
    assert path == "/v1/chat/completions" and headers["Authorization"] == "Bearer secret"
    assert body == {
        "model": "m", "messages": [*HELLO], "temperature": 0.5, "seed": 3, "max_tokens": 8, "stream": False,
    }  # fmt: skip


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(code):
    answers = [Answer("wait", code), Answer("wait", code), Answer("now", ended=False)]
    with chat_server(lambda number, body: answers[number - 1]) as server:
        assert ask(endpoint(server.url)) == client.Reply("now", False, "m", 7, 3)
    assert len(server.asked) == 3


def test_retry_after_is_heeded_and_bounded(monkeypatch):
    waits = list[float]()
    monkeypatch.setattr(threading.Event, "wait", lambda self, seconds=None: waits.append(seconds) or True)
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    answers = [Answer("", 429, {"Retry-After": each}) for each in ("7", soon, "99999", "soon")] + [Answer("now")]
    monkeypatch.setattr(Endpoint, "_post", scripted(answers))
    assert ask(endpoint("http://localhost:1")).text == "now"
    assert waits[0] == 7 and 25 < waits[1] <= 30 and waits[2] == 300 and waits[3] < 1


def scripted(answers):
    """`_post` without a network: each answer as it comes from a server."""
    rest = iter(answers)

    class Response:
        def __init__(self, answer: Answer) -> None:
            self.status, self.headers = answer.code, answer.headers

        def getheader(self, name):
            return self.headers.get(name)

    def post(self, body):
        answer = next(rest)
        return self._reply(Response(answer), answer.bytes("m"))

    return post


def test_a_server_that_always_fails_is_given_up():
    with chat_server(lambda number, body: Answer("no memory", 500)) as server, pytest.raises(ResourceError) as told:
        ask(endpoint(server.url))
    assert len(server.asked) == client.TRIES and "failed 6 times: 500 no memory" in str(told.value)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer("no key: secret", 401), ConfigError, r"401 no key: \(the key\)\). Set the environment variable"),
        (Answer("model not found", 404), ConfigError, "refuses the request for the model 'm' .404 model not found"),
        (Answer("", 307, {"Location": "http://elsewhere/v1"}), ConfigError, "redirects to http://elsewhere/v1"),
        (Answer(content=b"<html>hello"), InputError, "does not answer in OpenAI's form"),
        (Answer(content=b'{"choices": []}'), InputError, "OpenAI's form"),
        (Answer(content=b'{"choices": [{"message": {"content": 3}}]}'), InputError, "OpenAI's form"),
        (Answer(content=b"[" * 100_000), InputError, "OpenAI's form"),
        (Answer("x\x1b[2Jy" * 200, 400), ConfigError, "x .2Jy"),
        (Answer(content=b" " * (client.MAX_ANSWER_BYTES + 1)), InputError, "more than 4,194,304 bytes"),
    ],
)
def test_what_asking_again_does_not_mend_is_told_at_once(answer, kind, says):
    with chat_server(lambda number, body: answer) as server, pytest.raises(kind, match=says) as told:
        ask(endpoint(server.url, key="secret"))
    assert len(server.asked) == 1 and "secret" not in str(told.value) and "\x1b" not in str(told.value)


def test_an_empty_answer_and_half_a_letter_are_answers():
    answers = [
        Answer(
            content=b'{"choices": [{"message": {"content": null}, "finish_reason": "stop"}], "usage": {"prompt_tokens": -1}}'
        ),
        Answer(content=b'{"choices": [{"message": {"content": "a\\ud800"}}], "model": null}'),
    ]
    with chat_server(lambda number, body: answers[number - 1]) as server:
        one = endpoint(server.url)
        assert ask(one) == client.Reply("", True, "m") and ask(one).text == "a?"


def test_a_server_that_wants_the_other_name_of_the_limit():
    def answer(number, body):
        wrong = Answer("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", 400)
        return wrong if "max_tokens" in body else "yes"

    with chat_server(answer) as server:
        one = endpoint(server.url)
        assert ask(one).text == ask(one).text == "yes"
    assert len(server.asked) == 3 and server.asked[-1][2]["max_completion_tokens"] == 8


@pytest.mark.parametrize("trickles", [False, True])
def test_a_request_has_an_end_whatever_the_server_does(monkeypatch, trickles):
    """A server that says nothing, and one that sends a byte of its headers now and then."""
    monkeypatch.setattr(client, "TRIES", 2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def serve() -> None:
            held = []
            listening.settimeout(0.02)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    held.append(listening.accept()[0])
                for each in held if trickles else ():
                    with contextlib.suppress(OSError):
                        each.send(b"H" if each not in held[:-1] else b"")
            for each in held:
                each.close()

        thread = threading.Thread(target=serve)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(ResourceError, match=r"no answer within 0\.15 seconds"):
            ask(endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.15))
        assert time.monotonic() - begun < 3
        stop.set()
        thread.join()


def test_no_server_and_no_such_host():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ResourceError, match=f"no server at http://127.0.0.1:{port}/v1. Start it"):
        ask(endpoint(f"http://127.0.0.1:{port}"))


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
    ]
    try:
        files = ["-keyout", f"{tmp_path}/key", "-out", f"{tmp_path}/cert", "-subj", "/CN=localhost"]
        subprocess.run([*made, *files], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=lambda: server.handle_request())
    thread.start()
    with pytest.raises(ConfigError, match=r"certificate is not valid .*self.signed"):
        ask(endpoint(f"https://localhost:{server.server_address[1]}/v1"))
    thread.join()
    server.server_close()


def test_a_key_goes_to_its_host_alone_and_never_in_the_clear(monkeypatch):
    monkeypatch.setenv(client.PROVIDERS_KEY, "theirs")
    assert key_for(address_of("https://api.openai.com/v1")) == "theirs"
    assert (
        key_for(address_of("https://api.openai.com.evil.example/v1")) == key_for(address_of("http://localhost:1")) == ""
    )
    monkeypatch.setenv(client.KEY, "mine")
    for url in ("https://api.example/v1", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1/v1"):
        assert key_for(address_of(url)) == "mine"
    for url in ("http://api.example/v1", "http://192.168.0.2:8000/v1", "http://127.0.0.1.example/v1"):
        with pytest.raises(ConfigError, match="in the clear"):
            key_for(address_of(url))
    monkeypatch.setenv(client.KEY, "a\r\nHost: x")
    with pytest.raises(ConfigError, match="no key has"):
        key_for(address_of("http://localhost:1"))
    assert "mine" not in repr(Endpoint(address_of("http://localhost:1"), "m", 1.0, "mine"))


@pytest.mark.parametrize(
    "url",
    [
        "localhost:11434", "ftp://x/v1", "http://", "http://user:pass@host/v1", "https://host/v1?key=1", "http://host/#x",
        "http://host:0/v1", "http://host:99999/v1", "http://ho st/v1", "http://host/v1\r\nX: y", "http://[::1/v1", "",
        "http://hö.example/v1",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(url):
    with pytest.raises(RealmctlError) as told:
        address_of(url)
    assert told.value.exit_code == 2 and "pass" not in str(told.value).replace("password", "")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://[::1]:8/v1/", "http://[::1]:8/v1"),
        ("https://api.example/openai/v1/chat/completions", "https://api.example:443/openai/v1"),
    ],
)
def test_addresses(url, address):
    assert str(address_of(url)) == address

"""The process: what it refuses before it serves, and the real `realmctl serve` over a socket, stopped and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from realmctl.extras.serve.web.server import Serving
from tests.extras.serve.conftest import QUESTION, TOKEN

ROOT = Path(__file__).parents[4]
KILLED_WHILE_INDEXING = """
import os, signal, sys
from stages.build_index import BuildIndex
BuildIndex.run = lambda self, out: os.kill(os.getpid(), signal.SIGKILL)
from realmctl.cli.app import main
sys.argv[0] = "realmctl"
main()
"""


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        *(
            (["--host", everywhere], 2, "--name")
            for everywhere in ("0.0.0.0", "0", "0.0", "0x0", "::", "0:0::0", "::ffff:0.0.0.0")
        ),
        (["--host", "a..b"], 2, "--host"),
        (["--token-file", "token"], 2, "--allow-edits"),
        (["--host", "no.such.host.invalid"], 2, "--host"),
        (["--qa-model", "nothing"], 3, "nothing"),
        (["--blocks", "{w}/index"], 4, "index"),
        (["--qa-model", "{w}/model"], 4, "qa-model"),
        (["--allow-edits", "--token-file", "{w}/nothing"], 3, "--token-file"),
        (["--allow-edits", "--model", "{w}/qa-model"], 4, "pre-trained model"),
        (["--workspace", "{w}/empty"], 3, "realmctl index-docs"),
        (["--queue", "0"], 2, "--queue"),
        (["--name", "https://Wiki.example:443/x"], 2, "Give --name wiki.example."),
    ],
)
def test_what_is_refused_before_it_serves(realmctl, workspace, options, code, said):
    given = [option.replace("{w}", str(workspace)) for option in options]
    found, out, err = realmctl("serve", "--workspace", str(workspace), "--port", "0", *given)
    assert (found, out) == (code, "") and said in err and "Traceback" not in err


def test_a_port_in_use(realmctl, workspace):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = realmctl("serve", "--workspace", str(workspace), "--port", port)
    assert code == 2 and "--port 0" in err


def test_a_reply_is_sent_without_waiting_for_an_acknowledgement():
    """Headers and body are two packets. With Nagle's algorithm the second one waits 40 ms for the client."""
    serving = Serving(
        qa_model=None,
        model=None,
        closed_book=None,
        retriever=None,
        blocks=Path(),
        embeddings=Path(),
        indexes=Path(),
        host="127.0.0.1",
        port=0,
        names=(),
        allow_edits=False,
        token_file=None,
        most_waiting=1,
    )
    with serving._socket() as listening:
        assert asyncio.run(_no_delay_of_a_connection(listening)) == 1


async def _no_delay_of_a_connection(listening: socket.socket) -> int:
    """TCP_NODELAY of a connection that an asyncio server, as uvicorn starts it, accepts."""
    accepted = asyncio.get_running_loop().create_future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(connected, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname()[:2])
        found = await accepted
        writer.close()
    return int(found != 0)


@contextmanager
def running(workspace, *options, program=("-m", "realmctl")):
    """The process and its address."""
    command = [sys.executable, *program, "serve", "--workspace", str(workspace), "--port", "0", *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        address = next(line.split()[-1] for line in process.stderr if " at http://" in line)
        yield process, address
    finally:
        process.kill()
        process.communicate()


def call(address, method, path, body=None):
    request = urllib.request.Request(
        f"{address}/api/v1/{path}",
        json.dumps(body).encode() if body else None,
        method=method,
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_open_request(workspace, number):
    with running(workspace) as (process, address):
        assert call(address, "POST", "ask", {"question": QUESTION})["answers"]
        assert "127.0.0.1" in address
        process.send_signal(number)
        assert process.wait(60) == 0
        said = process.stderr.read()
        assert "Traceback" not in said and "error" not in said and "stopped" in said


@pytest.mark.slow
def test_killed_in_the_middle_of_an_edit_it_serves_the_former_version(workspace, tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    edits = ["--allow-edits", "--token-file", str(token)]
    program = tmp_path / "killed.py"
    program.write_text(KILLED_WHILE_INDEXING)
    with running(workspace, *edits, program=(str(program),)) as (process, address):
        before = call(address, "POST", "ask", {"question": QUESTION})
        with pytest.raises(OSError):
            call(address, "DELETE", "blocks?id=d0-0")
        assert process.wait(60) == -signal.SIGKILL
    assert not any((workspace / name / "v2").exists() for name in ("blocks", "embeddings", "index"))
    with running(workspace, *edits) as (_, address):
        assert call(address, "POST", "ask", {"question": QUESTION}) == before
        for block in ("d1-0", "d0-0"):  # another edit, and the same again
            made = call(address, "DELETE", f"blocks?id={block}")
            assert made["version"].startswith("v") and made["version"] != before["version"]
            assert call(address, "GET", "status")["version"] == made["version"]
    assert not [*workspace.glob("*/.realmctl-*")]

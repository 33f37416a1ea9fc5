"""Latency and throughput of `realmctl serve` under several clients at once.

    make demo
    python benchmarks/serve.py --workspace demo/artifacts --questions demo/world/dev.jsonl

The server is a process of its own. Its clients are threads of this process, and share the cores with it. Each client sends a
question, waits for the reply, and sends the next one. The questions are drawn with a fixed seed. `ask` is a question; `compare`
is one with the answer without retrieval beside it, as the page asks. Each round prints a JSON line: median and 95th percentile of
the latency in milliseconds, replies a second, CPU milliseconds of the server for each reply, its resident memory, and the load of
the machine (processes that want to run, over the last minute). CPU time says what a reply costs where other work shares the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

WARM_UP = 16


@contextmanager
def server(workspace: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the server; yield its process and its host with port."""
    command = [sys.executable, "-m", "realmctl", "serve", "--workspace", str(workspace), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        address = next((line.split()[-1] for line in process.stderr if " at http://" in line), None)
        if address is None:
            sys.exit(f"The server did not start (exit code {process.wait()}). Try: {' '.join(command)}")
        yield process, urlsplit(address).netloc
    finally:
        process.terminate()
        process.wait()


def ask(connection: HTTPConnection, question: str, compare: bool) -> float:
    """Send a question and return the seconds until its reply was read. Raises RuntimeError for an error."""
    body = json.dumps({"question": question, "top": 1, "compare": compare})
    start = time.perf_counter()
    connection.request("POST", "/api/v1/ask", body, {"Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"{reply.status} {text!r}")
    return time.perf_counter() - start


def measure(netloc: str, shares: Sequence[Sequence[str]], compare: bool) -> tuple[list[float], float]:
    """Let each client ask its share of the questions. Returns all latencies, and the seconds of the whole."""
    latencies: list[float] = []
    failures: list[Exception] = []

    def client(share: Sequence[str]) -> None:
        connection = HTTPConnection(netloc, timeout=600)
        try:
            latencies.extend([ask(connection, question, compare) for question in share])
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=client, args=(share,)) for share in shares]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"{len(failures)} clients failed, the first one with: {failures[0]}")
    return latencies, time.perf_counter() - start


def resident_mib(process: subprocess.Popen[str]) -> float:
    """Resident memory of a process in MiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return round(int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024, 1)


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True, help='JSON lines with "question"')
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--requests", type=int, default=256, help="in each round, by all clients together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines = given.questions.read_text(encoding="utf-8").splitlines()
    questions = [json.loads(line)["question"] for line in lines]
    drawn = random.Random(given.seed)
    with server(given.workspace) as (process, netloc):
        for compare in (False, True):
            measure(netloc, [drawn.choices(questions, k=WARM_UP)], compare)
            for number in range(1, given.rounds + 1):
                for clients in given.clients:
                    each = max(1, given.requests // clients)
                    shares = [drawn.choices(questions, k=each) for _ in range(clients)]
                    before = cpu_seconds(process)
                    latencies, seconds = measure(netloc, shares, compare)
                    spent = (cpu_seconds(process) - before) / len(latencies)
                    p50, p95 = (statistics.quantiles(latencies, n=100, method="inclusive")[at] for at in (49, 94))
                    print(
                        json.dumps(
                            {
                                "request": "compare" if compare else "ask",
                                "clients": clients,
                                "round": number,
                                "p50_ms": round(1000 * p50, 1),
                                "p95_ms": round(1000 * p95, 1),
                                "a_second": round(len(latencies) / seconds, 1),
                                "cpu_ms": round(1000 * spent, 1),
                                "server_mib": resident_mib(process),
                                "load": round(os.getloadavg()[0], 1),
                            }
                        ),
                        flush=True,
                    )


if __name__ == "__main__":
    main()

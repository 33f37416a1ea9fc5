"""What a program does that parses many documents for `apart.ManyParses`: it answers one after the other, and none takes more CPU than is allowed."""

from __future__ import annotations

import json
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

LENGTH = 8
"""Bytes of the numbers that say how long a request, its document and a reply are."""
OUT_OF_MEMORY = 9
"""The exit code of a program that met its limit."""


def answer(parse: Callable[[dict[str, Any], bytes], dict[str, Any]]) -> None:
    """Answer the requests on stdin until it ends. The system ends this process where a document takes more seconds of a core than its request allows.

    parse: A function from a request and its document to the reply, a JSON object.
    """
    import resource

    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    taken, given = sys.stdin.buffer, sys.stdout.buffer
    while length := taken.read(LENGTH):
        asked = json.loads(taken.read(int.from_bytes(length)))
        data = taken.read(asked["bytes"])
        signal.setitimer(signal.ITIMER_PROF, asked["seconds"])
        try:
            reply = parse(asked, data)
        except MemoryError:
            sys.exit(OUT_OF_MEMORY)
        except Exception:
            reply = {"bug": traceback.format_exc()}
        found = json.dumps(reply, ensure_ascii=False).encode(errors="replace")
        signal.setitimer(signal.ITIMER_PROF, 0)
        given.write(len(found).to_bytes(LENGTH) + found)
        given.flush()

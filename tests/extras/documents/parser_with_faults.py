"""A program as html_lines.py, which fails as its document says."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from realmctl.extras.documents.many_parses import answer


def parse(asked: dict[str, Any], data: bytes) -> dict[str, Any]:
    text = data.decode()
    what = text.partition(" ")[0]
    if what == "bug":
        raise LookupError("of the parser")
    if what == "compute":
        while True:
            pass
    if what == "sleep":
        time.sleep(60)
    if what == "expand":
        return {"text": [0] * 10**9}
    if what == "fail":
        os.kill(os.getpid(), signal.SIGSEGV)
    return {"text": text, "asked": asked["kind"], "pid": os.getpid()}


if __name__ == "__main__":
    answer(parse)

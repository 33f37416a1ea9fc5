"""The entry point of `realmctl`, and of `python -P -m realmctl`: how child processes start, so that no foreign `stages/` can shadow ours."""

from __future__ import annotations

import gc
import os
import signal
from types import FrameType
from typing import NoReturn

from realmctl.errors import INTERRUPTED, interruption

YOUNG_OBJECTS = 50_000
"""How many objects are made before garbage is looked for. Python's 700 take a twentieth of the time that it takes to import PyTorch."""


def main() -> NoReturn:
    """Import the command line and run it. Ctrl-C ends an import at once: an exception there would be a traceback."""
    if ends_at_once := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(YOUNG_OBJECTS)
    from realmctl.cli import app

    if ends_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, f"error: {interruption(KeyboardInterrupt())}\n".encode())
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

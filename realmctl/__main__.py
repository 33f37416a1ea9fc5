"""The entry point of `realmctl`, and of `python -P -m realmctl`: how child processes start, so that no foreign `stages/` can shadow ours."""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

from realmctl.errors import INTERRUPTED, interruption


def main() -> NoReturn:
    """Import the command line and run it. Ctrl-C ends an import at once: an exception there would be a traceback."""
    if ends_at_once := signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from realmctl.cli import app

    if ends_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    os.write(2, f"error: {interruption(KeyboardInterrupt())}\n".encode())
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

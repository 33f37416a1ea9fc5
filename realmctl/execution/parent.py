"""A child process that ends with its parent, even when the parent is killed and the child is stopped (SIGSTOP)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends. Exit at once if it has ended already.

    Only Linux has this signal. Elsewhere the function only checks that the parent is still there.

    Args:
        parent: Process id of the parent, from the parent itself: it may be gone before this function is called.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the kernel was asked
        os._exit(0)

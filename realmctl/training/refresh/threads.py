"""Threads of trainer and refresher on one CPU. More threads than cores wait for each other in busy loops, many times slower."""

from __future__ import annotations

import torch


class DividedThreads:
    """PyTorch's current threads in this process, divided between trainer and refresher.

    `refresher` is the number of threads for the refresher: half of them, at least one.
    """

    def __init__(self) -> None:
        self._all = torch.get_num_threads()
        self.refresher = max(1, self._all // 2)

    def lend(self, refreshing: bool) -> None:
        """Compute with the remaining threads, at least one, while the refresher works, and with all of them otherwise."""
        threads = max(1, self._all - self.refresher) if refreshing else self._all
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)

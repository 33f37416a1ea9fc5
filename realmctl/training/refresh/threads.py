"""One CPU for trainer and refresher: more threads than cores wait for each other in busy loops, many times slower."""

from __future__ import annotations

import torch


class DividedThreads:
    """Two processes share the threads that the first of them has when this is made: `refresher` are the second's."""

    def __init__(self) -> None:
        self._all = torch.get_num_threads()
        self.refresher = max(1, self._all // 2)

    def lend(self, refreshing: bool) -> None:
        """While the refresher works this process computes with the rest, at least one thread, and else with all."""
        threads = max(1, self._all - self.refresher) if refreshing else self._all
        if threads != torch.get_num_threads():
            torch.set_num_threads(threads)

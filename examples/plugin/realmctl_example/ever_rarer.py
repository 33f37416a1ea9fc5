"""The refresh `ever-rarer` of `pretrain --refresh`: often at first, when the retriever changes most."""

from __future__ import annotations

from realmctl.models.retriever import Retriever
from realmctl.training.refresh.kinds import BackgroundRefresh


class EverRarer(BackgroundRefresh):
    """A snapshot is taken after 1, 2, 4, 8, ... times `--refresh-every` steps; another process builds its index."""

    def is_due(self, step: int, retriever: Retriever) -> bool:
        periods, rest = divmod(step, self.settings.refresh_every)
        return rest == 0 and periods.bit_count() == 1

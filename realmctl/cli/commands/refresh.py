"""`realmctl refresh`: rebuild the index of a running pretrain."""

from __future__ import annotations

from pathlib import Path

from realmctl.execution.shards import LOCAL, executor_names
from realmctl.pipeline import Command, Show, argument, check_device, runtime


class Refresh(Command):
    """Rebuild the index of a running pretrain from its newest snapshots.

    Pretrain starts this itself. Start it by hand to use another GPU or another host.
    """

    computes = True

    live: Path = argument("Folder `live` of the unfinished version that pretrain writes: vN.partial/live.")
    device: str = runtime("Device to embed on: auto, cpu or cuda:N.", default="auto", check=check_device)
    executor: str = runtime(
        "Where blocks are embedded: on this device (local), or by ray on the cluster that RAY_ADDRESS names.",
        default=LOCAL,
        choices=executor_names,
    )

    def run(self, show: Show) -> None:
        from realmctl.training.refresh.refresher import serve

        serve(self.live, self.device, self.executor)
        show({"run": str(self.live)}, lambda value: f"{value['run']}: the run has ended")

"""The settings of `embed`."""

from __future__ import annotations

from typing import Literal

from realmctl.execution.shards import LOCAL, executor_names
from realmctl.pipeline import Precision, Settings, check_device, help_texts, runtime, setting
from realmctl.pipeline.fields import MOST_WORKERS

Dtype = Literal["float32", "float16"]


class EmbedSettings(Settings):
    """How blocks are turned into vectors, and where."""

    dtype: Dtype = setting("Floating-point type on disk. float16 halves the size of the file.", default="float32")
    precision: Precision = setting(help_texts.PRECISION, default="auto")
    batch_size: int | None = runtime(
        "Blocks per batch. Default: as many as fit a CPU core's cache, or 128 on a GPU.", default=None, at_least=1
    )
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    executor: str = runtime(help_texts.EXECUTOR, default=LOCAL, choices=executor_names)
    workers: int = runtime(
        "Number of workers with --executor ray; 0 means one for each GPU of the cluster, or for each core.",
        default=0,
        at_least=0,
        at_most=MOST_WORKERS,
    )

"""What `build-index --type hnsw` adds to the settings of an index."""

from __future__ import annotations

import importlib
from types import ModuleType

from realmctl.errors import ResourceError
from realmctl.index.settings import IndexSettings
from realmctl.pipeline.fields import MOST_WORKERS, setting

HNSW = "type=hnsw"


class HnswOptions(IndexSettings):
    """How to build a graph."""

    m: int = setting(
        "Links per vector. More links raise recall and memory.",
        default=16,
        at_least=2,
        at_most=512,
        left_out_at=16,
        used_with=HNSW,
    )
    ef_construction: int = setting(
        "Width of the beam during the build. A wider beam is slower and raises recall.",
        default=200,
        at_least=1,
        left_out_at=200,
        used_with=HNSW,
    )
    build_threads: int = setting(
        "Threads of the build. With more than one thread, each build writes different bytes.",
        default=1,
        at_least=1,
        at_most=MOST_WORKERS,
        left_out_at=1,
        used_with=HNSW,
        advanced=True,
    )

    def check_index(self) -> None:
        super().check_index()
        if self.type == "hnsw":
            hnswlib()


def hnswlib() -> ModuleType:
    """Import hnswlib. Raises ResourceError where it cannot be imported: it is compiled on each machine."""
    try:
        return importlib.import_module("hnswlib")
    except ImportError as error:
        raise ResourceError(
            f"An hnsw index needs the package hnswlib, which cannot be imported here ({error}). Install the extra that contains "
            "it: pip install 'realmctl[hnsw]'. It is compiled on your machine, so that needs a C++ compiler, and with "
            "`HNSWLIB_NO_NATIVE=1` before it the build runs on other machines too. `realmctl build-index --type exact` needs neither."
        ) from None

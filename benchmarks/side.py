"""Do the work of one side of a row once to warm up and once timed, in this process: `bench.py` starts it.

    python benchmarks/side.py FILE ROW SIDE FOLDER THREADS

Prints a JSON line: CPU seconds (with those of child processes) and wall seconds of the timed work, and the peak of resident memory. The result is written to FOLDER.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from load import rows_of
from row import Result, Work


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def under_autocast(work: Work) -> Work:
    """The work under PyTorch's autocast to bfloat16."""
    import torch

    def run() -> Result:
        with torch.autocast("cpu", torch.bfloat16):
            return work()

    return run


def main() -> None:
    """Run the command line."""
    file, row_name, side_name, folder, threads = sys.argv[1:]
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    (row,) = (row for row in rows_of(Path(file)) if row.name == row_name)
    (side,) = (side for side in (*row.ours, *row.peers) if side.name == side_name)
    work = side.start(Path(folder))
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(threads))
    if side.autocast:
        work = under_autocast(work)
    work()
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = work()
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    np.save(Path(folder) / f"{side_name}.npy", result)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"cpu_s": cpu, "wall_s": wall, "peak_mib": peak}))


if __name__ == "__main__":
    main()

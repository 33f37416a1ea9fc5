"""Time a step in bfloat16 over batches whose lengths were not seen before, with and without filler tokens.

    python benchmarks/new_lengths.py [--size L6-H384-A12] [--steps 20] [--rounds 3]

Without filler, every batch has another number of tokens, and PyTorch's library oneDNN compiles its products anew. With filler, the number is
rounded up to a multiple of 64, as realmctl does (`TokenLayout`). A step is the forward and the backward pass over 20 rows of 100 to 180
random tokens. Each round starts a fresh process for each way, because compiled products stay in the process. Printed: median
seconds of a step, how much memory the process grew by while it took the steps, and the ratio of the times.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import torch

from realmctl.models.bert import layers
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import hidden_states
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import bf16_is_faster

ROWS, SHORTEST, LONGEST, WORDS = 20, 100, 180, 30522
WAYS = {"filler": layers._BF16_MULTIPLE, "no filler": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="L6-H384-A12")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--multiple", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.multiple:
        print(json.dumps(measure(given.size, given.steps, given.multiple)))
        return
    if not bf16_is_faster(torch.device("cpu")):
        raise SystemExit("This processor has no bfloat16, so realmctl computes in float32 here and adds no filler.")
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        for way, multiple in WAYS.items():
            command = [sys.executable, __file__, "--size", given.size, "--steps", str(given.steps)]
            done = subprocess.run(
                [*command, "--multiple", str(multiple)], check=True, stdout=subprocess.PIPE, text=True
            )
            runs[way].append(json.loads(done.stdout))
    for way, results in runs.items():
        seconds = [run["seconds"] for run in results]
        grown = max(run["grown_mb"] for run in results)
        print(
            f"{way:10} {statistics.median(seconds):.2f} s ({min(seconds):.2f}-{max(seconds):.2f}), grown by {grown:.0f} MB"
        )
    ratios = [slow["seconds"] / fast["seconds"] for slow, fast in zip(runs["no filler"], runs["filler"], strict=True)]
    print(f"time ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


def measure(size: str, steps: int, multiple: int) -> dict[str, float]:
    """Return the median CPU seconds of a step, and the growth of the peak memory after the first three steps."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers._BF16_MULTIPLE = multiple
    bert = BertForMaskedLM(scratch_config(size, WORDS, 0.0)).bert.train()
    seconds, before = [], 0.0
    for number in range(steps + 3):
        mask_BL = torch.arange(LONGEST) < torch.randint(SHORTEST, LONGEST + 1, (ROWS, 1))
        ids_BL = torch.randint(1000, WORDS, mask_BL.shape) * mask_BL
        start = time.process_time()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            states_BLH = hidden_states(bert, TokenBatch(ids_BL, mask_BL, torch.zeros_like(ids_BL)))
        states_BLH.sum().backward()  # type: ignore[no-untyped-call]
        seconds.append(time.process_time() - start)
        bert.zero_grad()
        if number == 2:
            before = peak_mb()
    return {"seconds": statistics.median(seconds[3:]), "grown_mb": peak_mb() - before}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()

"""Time a step of reading practice with MKL's and oneDNN's products, for several widths and numbers of threads.

    python benchmarks/narrow_layers.py [--widths 128 256 384 768] [--threads 1 2] [--rounds 15]

A step is the forward and the backward pass of a BERT of two layers over 64 random examples of 36 to 68 wordpieces, 4 of them
hidden, in float32, without the optimizer. The libraries alternate within one process. A third way, `all`, computes the last layer
at every position with the library that `layers.linear` chooses; the others compute it at the hidden wordpieces alone.
Printed: the median seconds of a step, its spread (the quartiles), and ratios of medians. Below 1, MKL is faster.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.nn.functional as F

from realmctl.models.bert import layers
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import hidden_states, states_at_places
from realmctl.models.inputs import TokenBatch

EXAMPLES, SHORTEST, LONGEST, HIDDEN, WORDS = 64, 36, 68, 4, 4000
CHOSEN = layers._NARROW
NARROW = {"MKL": 1 << 30, "oneDNN": 1, "all": CHOSEN}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 256, 384, 768])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if not layers.onednn_is_faster():
        raise SystemExit(
            "This processor uses MKL at every width: it is not from AMD, or PyTorch does not use AVX-512 here."
        )
    print("width  threads  MKL                     oneDNN                  MKL / oneDNN  all positions / hidden ones")
    for threads in options.threads:
        torch.set_num_threads(threads)
        for width in options.widths:
            seconds = measure(width, options.rounds)
            median = {way: statistics.median(times) for way, times in seconds.items()}
            chosen = "MKL" if width < CHOSEN else "oneDNN"
            print(
                f"{width:5}  {threads:7}  {text(seconds['MKL']):22}  {text(seconds['oneDNN']):22}  "
                f"{median['MKL'] / median['oneDNN']:12.2f}  {median['all'] / median[chosen]:27.2f}",
                flush=True,
            )


def measure(width: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a step for each way, after two rounds that do not count."""
    torch.manual_seed(0)
    mlm = BertForMaskedLM(scratch_config(f"L2-H{width}-A{width // 32}", WORDS, 0.0)).train()
    packed, place_M, target_M = batch()
    seconds: dict[str, list[float]] = {way: [] for way in NARROW}
    for number in range(rounds + 2):
        for way, narrow in NARROW.items():
            layers._NARROW = narrow
            start = time.perf_counter()
            if way == "all":
                state_MH = hidden_states(mlm.bert, packed).flatten(0, 1)[place_M]
            else:
                state_MH = states_at_places(mlm.bert, packed, place_M)
            F.cross_entropy(mlm.cls(state_MH), target_M).backward()  # type: ignore[no-untyped-call]
            if number >= 2:
                seconds[way].append(time.perf_counter() - start)
            mlm.zero_grad()
    return seconds


def batch() -> tuple[TokenBatch, torch.Tensor, torch.Tensor]:
    """Return random examples, the places of their hidden wordpieces and the wordpieces."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (EXAMPLES,))
    mask_BL = torch.arange(LONGEST) < lengths[:, None]
    packed = TokenBatch(
        torch.randint(5, WORDS, mask_BL.shape) * mask_BL, mask_BL, torch.zeros_like(mask_BL, dtype=torch.long)
    )
    places = [torch.randperm(int(length))[:HIDDEN].sort().values + row * LONGEST for row, length in enumerate(lengths)]
    return packed, torch.cat(places), torch.randint(5, WORDS, (EXAMPLES * HIDDEN,))


def text(times: list[float]) -> str:
    low, median, high = statistics.quantiles(times, n=4)
    return f"{median:.4f} ({low:.4f}-{high:.4f})"


if __name__ == "__main__":
    main()

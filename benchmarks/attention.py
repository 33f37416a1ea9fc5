"""Time attention over rows of different lengths on a CPU, forward and backward: row by row, by length, and over padded rows.

    python benchmarks/attention.py [--threads 2] [--rounds 15] [--precision bf16]

"By length" is what realmctl does: rows of equal length go into one call, without padding. With `--precision bf16` the inputs are bfloat16,
and "in float32" converts them, as realmctl did until November 2026. The ratios are to attention row by row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from realmctl.models.bert.attention import _attention, attend_by_length, attend_padded
from realmctl.models.bert.token_layout import TokenLayout
from realmctl.models.inputs import TokenBatch
from realmctl.models.precision import full_precision

SHAPES = {  # name: rows, shortest and longest row in tokens, heads, width of a head
    "reading practice of the demo": (64, 50, 90, 4, 32),
    "ICT of the demo": (512, 20, 40, 4, 32),
    "a small batch": (16, 40, 64, 4, 32),
    "short blocks, BERT-base": (32, 48, 64, 12, 64),
    "blocks of 288, BERT-base": (16, 200, 290, 12, 64),
}
Way = Callable[[Tensor, Tensor, Tensor, TokenLayout, float], Tensor]


def by_row(query: Tensor, key: Tensor, value: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    """One call for each row."""
    lengths = [length for count, length in rows.groups for _ in range(count)]
    parts = zip(query.split(lengths), key.split(lengths), value.split(lengths), strict=True)
    return torch.cat([_attention(q[None], k[None], v[None], None, dropout)[0] for q, k, v in parts])


def in_float32(query: Tensor, key: Tensor, value: Tensor, rows: TokenLayout, dropout: float) -> Tensor:
    with full_precision(query.device):
        return attend_by_length(query.float(), key.float(), value.float(), rows, dropout).to(query.dtype)


def main() -> None:
    """Time each way on each shape in turns, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    given = parser.parse_args()
    narrow = given.precision == "bf16"
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    ways: dict[str, Way] = {"by row": by_row, "by length": attend_by_length, "padded": attend_padded}
    if narrow:
        ways["in float32"] = in_float32
    for name, (count, shortest, longest, heads, width) in SHAPES.items():
        lengths_B = torch.randint(shortest, longest + 1, (count,))
        mask_BL = torch.arange(int(lengths_B.max())) < lengths_B[:, None]
        rows = TokenLayout(TokenBatch(mask_BL.long(), mask_BL, mask_BL.long()))
        tokens = int(lengths_B.sum())
        dtype = torch.bfloat16 if narrow else torch.float32
        inputs = [torch.randn(tokens, heads, width, dtype=dtype, requires_grad=True) for _ in range(3)]
        weight = torch.randn(tokens, heads, width, dtype=dtype)
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(given.rounds + 1):
            for way, attend in ways.items():
                begin = time.perf_counter()
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
                    total = (attend(*inputs, rows, 0.0) * weight).sum()
                torch.autograd.grad(total, inputs)
                seconds[way].append(time.perf_counter() - begin)
        best = {way: min(times[1:]) for way, times in seconds.items()}
        line = f"{name:30} {best['by row'] * 1e3:7.1f} ms by row"
        for way in [way for way in ways if way != "by row"]:
            ratios = sorted(one / two for one, two in zip(seconds["by row"][1:], seconds[way][1:], strict=True))
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            line += f"   {way} {best['by row'] / best[way]:.2f} (median {statistics.median(ratios):.2f}, {low:.2f} to {high:.2f})"
        print(line)


if __name__ == "__main__":
    main()

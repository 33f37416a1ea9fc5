"""Write the report of what sections bring in what a search reads, from the measurements of measure_sections.py.

python examples/sections/sections_page.py RUNS.jsonl REPORT.md
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

DRAWS = 10_000
CUT = 10
Key = tuple[str, str, str]


def ndcg(ranks: Sequence[int]) -> np.ndarray:
    """nDCG@10 of questions with one right answer each, by its rank, 0 where it is not found."""
    return np.array([1 / math.log2(1 + rank) if 0 < rank <= CUT else 0.0 for rank in ranks])


def interval(differences: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean, by bootstrap over questions."""
    draw = np.random.default_rng(0).integers(0, len(differences), (DRAWS, len(differences)))
    low, high = np.percentile(differences[draw].mean(1), [2.5, 97.5])
    return float(low), float(high)


def signed(number: float) -> str:
    return f"{number:+.3f}"


def page_of(runs: Mapping[Key, Mapping[str, Any]]) -> str:
    """The report: a row for each set, search and arm that was measured beside titles alone."""
    rows, gains, lost = list[str](), dict[tuple[str, str], list[float]](), dict[str, list[str]]()
    for name, arm, search in runs:
        if arm == "title" or (name, "title", search) not in runs:
            continue
        before, after = (ndcg(runs[name, each, search]["ranks"]) for each in ("title", arm))
        low, high = interval(after - before)
        gain = float((after - before).mean())
        gains.setdefault((arm, search), []).append(gain)
        lost.setdefault(arm, []).extend([f"{name} ({search})"] if high < 0 else [])
        shown = f"**{signed(gain)}**" if low > 0 or high < 0 else signed(gain)
        rows.append(
            f"| {name} | {len(before):,} | {search} | {arm} | {before.mean():.3f} | {after.mean():.3f} | {shown} [{signed(low)}, {signed(high)}] |"
        )
    told = list[str]()
    for arm, losing in lost.items():
        means = {search: float(np.mean(found)) for (each, search), found in gains.items() if each == arm}
        kept = not any(each.endswith("(default)") for each in losing) and all(mean > 0 for mean in means.values())
        mean = ", ".join(f"{signed(value)} {search}" for search, value in means.items())
        told.append(
            f"- **{arm}**: mean {mean}; shown losses: {', '.join(losing) or 'none'}. By the rule it is {'kept' if kept else 'not kept'}."
        )
    return "\n".join(
        [
            "# Sections in what a search reads: report",
            "",
            "Written by `examples/sections/sections_page.py` from `runs.jsonl`.",
            "",
            "## What holds",
            "",
            *told,
            "",
            "## Every set",
            "",
            "| set | questions | search | name of a block | title | with it | difference |",
            "|---|--:|---|---|--:|--:|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Run the command line."""
    runs, report = map(Path, sys.argv[1:])
    lines = [json.loads(line) for line in runs.read_text(encoding="utf-8").splitlines()]
    report.write_text(page_of({(each["set"], each["arm"], each["search"]): each for each in lines}), encoding="utf-8")


if __name__ == "__main__":
    main()

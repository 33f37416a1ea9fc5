"""Write the report of what naming blocks by their section brings, from the measurements of measure_sections.py.

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
    """The report: a row for each set and search that both arms have."""
    both = [(name, search) for name, arm, search in runs if arm == "section" and (name, "title", search) in runs]
    rows, means = list[str](), dict[str, list[float]]()
    lost = list[str]()
    for name, search in both:
        title, section = (runs[name, arm, search] for arm in ("title", "section"))
        before, after = ndcg(title["ranks"]), ndcg(section["ranks"])
        low, high = interval(after - before)
        gain = float((after - before).mean())
        means.setdefault(search, []).append(gain)
        lost += [f"{name}, {search}"] if high < 0 else []
        shown = f"**{signed(gain)}**" if low > 0 or high < 0 else signed(gain)
        rows.append(
            f"| {name} | {len(before):,} | {search} | {title['blocks']:,} | {section['blocks']:,} | {before.mean():.3f} | {after.mean():.3f} "
            f"| {shown} [{signed(low)}, {signed(high)}] |"
        )
    mean = "; ".join(
        f"{search}: mean {signed(float(np.mean(gains)))} over {len(gains)} sets" for search, gains in means.items()
    )
    kept = not lost and all(np.mean(gains) > 0 for gains in means.values())
    return "\n".join(
        [
            "# Blocks named by their section: report",
            "",
            "Written by `examples/sections/sections_page.py` from `runs.jsonl`.",
            "",
            "## What holds",
            "",
            f"- nDCG@10 with sections minus that with titles alone. {mean}.",
            f"- Sets that lose: {'; '.join(lost) or 'none'}.",
            f"- By the rule, sections are {'kept' if kept else 'not kept'}.",
            "",
            "## Every set",
            "",
            "| set | questions | search | blocks, title | blocks, section | title | section | difference |",
            "|---|--:|---|--:|--:|--:|--:|---|",
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

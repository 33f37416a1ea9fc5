"""Write the page on adapting without labels from the file of measurements alone.

    python examples/adapt/gains_page.py RUNS.jsonl --page PAGE.md

A difference is that of an arm and the encoder as published, query by query. Its 95 % interval is a bootstrap over queries and seeds: both
are drawn with replacement, 2,000 times, with a fixed seed.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

DRAWS = 2000
LEAST_LOSS = -0.005
FEWEST_SEEDS = 3
DOMAINS = 4
"""Sets of queries on which a target is judged: COVID-QA, MLQuestions, tldr and NL2Bash. With fewer it is open."""
NAMES = {
    "bm25": "BM25",
    "encoder": "encoder as published",
    "ict": "ICT",
    "crops": "independent crops",
    "crops-20": "independent crops, 20 steps",
    "ict-distilled": "ICT, start distilled",
    "spider": "Spider",
    "cocondenser": "coCondenser",
    "retromae": "RetroMAE",
    "realm": "REALM after ICT",
}
STYLE = {"svg.hashsalt": "adapt", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.0}


@dataclass(frozen=True)
class Difference:
    """A mean difference of nDCG@10, its 95 % interval, and the number of seeds."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        if self.low <= 0 <= self.high:
            return "not shown"
        return ("a gain" if self.low > 0 else "a loss") + (
            "" if self.seeds >= FEWEST_SEEDS else f" ({self.seeds} seed)"
        )

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def difference(of: NDArray[np.float64], base: NDArray[np.float64]) -> Difference:
    """The difference of measurements [S seeds, Q queries] and a base [1 or S, Q], with its bootstrap interval."""
    difference_SQ = of - base
    seeds, queries = difference_SQ.shape
    rng = np.random.default_rng(0)
    means = [
        difference_SQ[np.ix_(rng.integers(seeds, size=seeds), rng.integers(queries, size=queries))].mean()
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(means, (0.025, 0.975))
    return Difference(float(difference_SQ.mean()), float(low), float(high), seeds)


class Results:
    """The measurements, by domain and split."""

    def __init__(self, path: Path) -> None:
        self._rows: dict[tuple[str, str, str], dict[tuple[str, str], dict[int, dict[str, Any]]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        encoders = dict.fromkeys(line["encoder"] for line in lines if line["encoder"])
        for line in lines:
            for encoder in (line["encoder"],) if line["encoder"] else encoders:
                self._rows[encoder, line["domain"], line["split"]][line["arm"], line["search"]][line["seed"]] = line

    @property
    def places(self) -> list[tuple[str, str, str]]:
        """(encoder, domain, split) of everything that was measured with the encoder as published."""
        return [place for place, rows in self._rows.items() if ("encoder", "dense") in rows]

    def rows(self, place: tuple[str, str, str]) -> list[tuple[str, str]]:
        """(arm, search) of what was measured there, in the order of the page."""
        return sorted(self._rows[place], key=lambda row: (row[1] != "bm25", list(NAMES).index(row[0]), row[1]))

    def values(self, place: tuple[str, str, str], row: tuple[str, str]) -> NDArray[np.float64]:
        """nDCG@10, [S, Q]."""
        return np.array([record["ndcg"] for _, record in sorted(self._rows[place][row].items())])

    def minutes(self, place: tuple[str, str, str], row: tuple[str, str]) -> float:
        """Mean processor minutes of the training, the largest of the records: a second search finds the retriever made."""
        return max(float(record["cpu_minutes"]) for record in self._rows[place][row].values())

    def gain(self, place: tuple[str, str, str], row: tuple[str, str], base: tuple[str, str]) -> Difference:
        return difference(self.values(place, row), self.values(place, base))

    def best_zero_shot(self, place: tuple[str, str, str]) -> tuple[str, str]:
        """The best of BM25, the encoder and their hybrid."""
        rows = [row for row in self._rows[place] if row[0] in ("bm25", "encoder")]
        return max(rows, key=lambda row: float(self.values(place, row).mean()))


def summary(results: Results) -> list[str]:
    """A sentence for each domain: what the arms brought, the best first. It stands in the first lines of the page."""
    lines = []
    for place in results.places:
        _, domain, split = place
        start = float(results.values(place, ("encoder", "dense")).mean())
        trained = [row for row in results.rows(place) if row[1] == "dense" and row[0] != "encoder"]
        gains = sorted(
            ((results.gain(place, row, ("encoder", "dense")), row[0]) for row in trained), key=lambda g: -g[0].mean
        )
        told = "; ".join(f"{NAMES[arm]} {gain} ({gain.verdict})" for gain, arm in gains) or "no arm was measured yet"
        lines.append(f"- **{domain}, {split}**: nDCG@10 {start:.3f} as published. {told}.")
    if len(lines) < DOMAINS:
        lines.append(
            f"- **Not measured yet**: {DOMAINS - len(lines)} of {DOMAINS} sets of queries, so the targets are open."
        )
    return lines


def table(results: Results, place: tuple[str, str, str]) -> list[str]:
    best = results.best_zero_shot(place)
    lines = [
        f"| retriever | search | nDCG@10 | minus the encoder | minus the best without training ({NAMES[best[0]]}, {best[1]}) | seeds | minutes |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in results.rows(place):
        values = results.values(place, row)
        base = results.gain(place, row, ("encoder", "dense"))
        over = results.gain(place, row, best)
        lines.append(
            f"| {NAMES[row[0]]} | {row[1]} | {values.mean():.3f} | {base if row != ('encoder', 'dense') else ''} "
            f"| {over if row != best else ''} | {len(values)} | {results.minutes(place, row):.1f} |"
        )
    return lines


def targets(results: Results, arm: str) -> list[str]:
    """The targets that were set before the runs, for one arm on all domains."""
    gains = [
        results.gain(p, (arm, "dense"), ("encoder", "dense"))
        for p in results.places
        if (arm, "dense") in results.rows(p)
    ]
    if not gains:
        return []
    whole = len(gains) >= DOMAINS

    def told(reached: bool) -> str:
        return ("met" if reached else "missed") if whole else "open"

    shown, worst = sum(gain.low > 0 for gain in gains), min(gain.mean for gain in gains)
    mean = float(np.mean([gain.mean for gain in gains]))
    return [
        f"| {NAMES[arm]} | {len(gains)} | {shown} | {worst:+.3f} ({told(worst >= LEAST_LOSS)}) "
        f"| {mean:+.3f} ({told(mean >= 0.05)}) |"
    ]


def draw(results: Results, path: Path) -> None:
    """Gains with their intervals, a panel for each domain."""
    places = results.places
    figure = Figure(figsize=(3.2 * max(1, len(places)), 2.6), layout="constrained")
    axes: Sequence[Any] = figure.subplots(1, len(places), squeeze=False)[0]
    for axis, place in zip(axes, places, strict=True):
        rows = [row for row in results.rows(place) if row != ("encoder", "dense")]
        for number, row in enumerate(reversed(rows)):
            gain = results.gain(place, row, ("encoder", "dense"))
            color = "#0072b2" if row[1] == "dense" else "#d55e00" if row[1] == "hybrid" else "#555555"
            axis.plot([gain.low, gain.high], [number, number], color=color, linewidth=1.5)
            axis.plot([gain.mean], [number], "o", color=color, markersize=4)
        axis.axvline(0, color="#999999", linewidth=0.8)
        axis.set_yticks(range(len(rows)), [f"{NAMES[arm]}, {search}" for arm, search in reversed(rows)])
        axis.set_title(f"{place[1]}, {place[2]}")
        axis.set_xlabel("nDCG@10 minus the encoder's")
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None})


def page(results: Results, plot: str) -> str:
    arms = dict.fromkeys(
        row[0] for place in results.places for row in results.rows(place) if row[0] not in ("bm25", "encoder")
    )
    reached = [line for arm in arms for line in targets(results, arm)]
    parts = [
        "# Adapting a retriever without labels",
        "",
        *summary(results),
        "",
        "<!-- Generated by examples/adapt/gains_page.py: do not edit. -->",
        "`make adapt` measures this: each arm trains on the passages of a domain alone, from the same published encoder and with the same settings, "
        "and then searches for questions that it never saw. A gain or a loss is *shown* where the 95 % interval of the paired difference "
        f"leaves 0 out; it is a bootstrap over queries and seeds. With fewer than {FEWEST_SEEDS} seeds the interval is over queries almost "
        "alone, and the page says the number of seeds. BM25 and the encoder have one run, for nothing in them is random.",
        "",
        f"![Gains of each arm on each domain]({plot})",
        "",
    ]  # fmt: skip
    for place in results.places:
        queries = results.values(place, ("encoder", "dense")).shape[1]
        parts += [
            f"## {place[1]}, {place[2]}",
            "",
            f"Encoder {place[0]}; {queries:,} queries.",
            "",
            *table(results, place),
            "",
        ]
    if reached:
        parts += [
            "## Targets",
            "",
            "One rule for all domains: shown on two of COVID-QA, man pages and MLQuestions, nowhere below -0.005, mean at least +0.05.",
            "",
            "| arm | domains measured | gains shown | worst | mean |",
            "|---|--:|--:|--:|--:|",
            *reached,
            "",
        ]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--page", type=Path, required=True)
    options = parser.parse_args()
    results = Results(options.results)
    plot = options.page.with_suffix("") / "gains.svg"
    draw(results, plot)
    options.page.write_text(page(results, str(plot.relative_to(options.page.parent))), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write the page on adapting without labels from the file of measurements alone.

    python examples/adapt/gains_page.py RUNS.jsonl --page PAGE.md

A difference is that of an arm and the encoder as published, query by query. Its 95 % interval is a bootstrap over queries and seeds: both
are drawn with replacement, 2,000 times, with a fixed seed.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

DRAWS = 2000
LEAST_LOSS = -0.005
FEWEST_SEEDS, FEWEST_SETS = 3, 3
TARGETED = (("covidqa", "test"), ("mlquestions", "test"), ("man-pages", "test"), ("man-pages", "nl2bash"))
"""Sets of queries on which the gain is judged: COVID-QA, MLQuestions, tldr and NL2Bash. With fewer the target is open."""
LEAST_ELSEWHERE = -0.01
SEARCHES = {
    "bm25": "BM25",
    "dense": "dense",
    "hybrid": "hybrid, RRF",
    "scores": "hybrid, weighted sum",
    "chosen": "hybrid, weighted sum, weight by cloze recall",
}
NAMES = {
    "bm25": "BM25",
    "encoder": "encoder as published",
    "ict": "ICT",
    "crops": "crops",
    "crops-20": "crops, 20 steps",
    "ict-distilled": "ICT + KL",
    "ict-kept": "ICT + KL, kept if shown (`adapt`)",
    "crops-kept": "crops + KL, kept if shown",
    "spider": "Spider",
    "cocondenser": "coCondenser",
    "retromae": "RetroMAE",
    "realm": "REALM after ICT",
    "causal": "a frozen causal language model as reader",
    "generated": "questions of a language model",
    "labels-32": "32 labelled questions",
    "labels-128": "128 labelled questions",
    "labels-1000": "1,000 labelled questions",
}
SETS = {
    ("covidqa", "test"): "COVID-QA",
    ("man-pages", "test"): "man pages, tldr",
    ("man-pages", "nl2bash"): "man pages, NL2Bash",
    ("mlquestions", "test"): "MLQuestions",
    ("squad24", "test"): "SQuAD-style",
    ("qed", "test"): "QED",
}
"""What the page calls a set of queries. Others are called by their domain and split."""
KEY = (
    "- **ICT**: the inverse cloze task (`ict-init`). **Crops**: independent cropping, as Contriever has it (`--pairs crops`).",
    "- **+ KL**: the start's similarities are distilled (`--distill-start 2`).",
    "- **Kept if shown**: the start is kept unless cloze recall shows a gain; in `adapt`, also where titles find less.",
    "- **Hybrid**: BM25 beside the retriever, by reciprocal rank fusion (RRF) or by the weighted sum of both scores.",
)
COLORS = {"bm25": "#555555", "dense": "#0072b2", "hybrid": "#d55e00", "scores": "#009e73", "chosen": "#cc79a7"}
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
            "" if self.seeds >= FEWEST_SEEDS else f" ({self.seeds} seed{'s' * (self.seeds > 1)})"
        )

    @property
    def cell(self) -> str:
        """The mean, bold where it is shown."""
        return f"{self.mean:+.3f}" if self.low <= 0 <= self.high else f"**{self.mean:+.3f}**"

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


Place = tuple[str, str, str]
"""Encoder, domain and split."""
Row = tuple[str, str]
"""Arm and search."""


@dataclass(frozen=True)
class Told:
    """A trained run: its gain over the start in the mean reciprocal rank of sentences and of titles, and in nDCG@10 of people's questions.

    Titles are None where the documents have none.
    """

    place: Place
    arm: str
    seed: int
    sentences: float | None
    titles: float | None
    questions: float


class Results:
    """The measurements, by domain and split."""

    def __init__(self, path: Path) -> None:
        self._rows: dict[tuple[str, str, str], dict[tuple[str, str], dict[int, dict[str, Any]]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        encoders = dict.fromkeys(line["encoder"] for line in lines if line["encoder"])
        self._cloze: dict[Place, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
        for line in [line for line in lines if line["search"] == "cloze"]:
            place = line["encoder"], line["domain"], line["split"]
            self._cloze[place][line["arm"], line["seed"]] = line["cloze"]
        for line in [line for line in lines if line["search"] != "cloze"]:
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

    def told(self, place: Place) -> list["Told"]:
        """What cloze recall told of each trained run, and the questions of the same run. Not of runs that cloze recall itself chose."""
        known, dense = self._cloze.get(place, {}), self._rows[place]
        start, base = known.get(("encoder", 0)), self.values(place, ("encoder", "dense"))[0]
        found = []
        for (arm, seed), told in known.items():
            record = dense.get((arm, "dense"), {}).get(seed)
            if start is None or record is None or arm == "encoder" or told.get("kept_step") is not None:
                continue
            gains = {
                queries: told[name] - start[name] if name in told else None
                for queries, name in (("sentences", "dense_rr"), ("titles", "title_rr"))
            }
            found.append(Told(place, arm, seed, **gains, questions=float(np.mean(np.array(record["ndcg"]) - base))))
        return sorted(found, key=lambda each: (list(NAMES).index(each.arm), each.seed))

    def minutes(self, place: tuple[str, str, str], row: tuple[str, str]) -> float:
        """Mean processor minutes of the training, the largest of the records: a second search finds the retriever made."""
        return max(float(record["cpu_minutes"]) for record in self._rows[place][row].values())

    def gain(self, place: tuple[str, str, str], row: tuple[str, str], base: tuple[str, str]) -> Difference:
        return difference(self.values(place, row), self.values(place, base))

    def best_zero_shot(self, place: tuple[str, str, str]) -> tuple[str, str]:
        """The best of BM25, the encoder and their hybrid."""
        rows = [row for row in self._rows[place] if row[0] in ("bm25", "encoder")]
        return max(rows, key=lambda row: float(self.values(place, row).mean()))


def named(place: Place) -> str:
    return SETS.get(place[1:], f"{place[1]} {place[2]}")


def ordered(results: Results) -> list[Place]:
    """The places in the order of `SETS`, others last."""
    known = list(SETS)
    return sorted(results.places, key=lambda place: known.index(place[1:]) if place[1:] in known else len(known))


def overview(results: Results) -> list[str]:
    """A row for each arm and search: its gain over the encoder on each set, bold where it is shown; mean and worst over all sets."""
    places = ordered(results)
    lines = [
        f"| retriever | search | {' | '.join(map(named, places))} | mean | worst | seeds |",
        f"|---|---|{'--:|' * (len(places) + 3)}",
    ]
    rows = dict.fromkeys(row for place in places for row in results.rows(place) if row != ("encoder", "dense"))
    for row in sorted(rows, key=lambda row: (list(NAMES).index(row[0]), list(SEARCHES).index(row[1]))):
        gains = [
            results.gain(place, row, ("encoder", "dense")) if row in results.rows(place) else None for place in places
        ]
        known = [gain for gain in gains if gain]
        cells = ["-" if gain is None else gain.cell for gain in gains]
        whole = len(known) == len(gains)
        mean = f"{np.mean([gain.mean for gain in known]):+.3f}" if whole else "-"
        worst = f"{min(gain.mean for gain in known):+.3f}" if whole else "-"
        seeds = min(gain.seeds for gain in known)
        lines.append(f"| {NAMES[row[0]]} | {SEARCHES[row[1]]} | {' | '.join(cells)} | {mean} | {worst} | {seeds} |")
    return lines


def sentence(results: Results, row: Row, base: Callable[[Place], Row]) -> str:
    """On how many sets an arm gains and loses, with the largest of both."""
    gains = {named(p): results.gain(p, row, base(p)) for p in ordered(results) if row in results.rows(p)}
    won = {name: gain for name, gain in gains.items() if gain.low > 0}
    lost = {name: gain for name, gain in gains.items() if gain.high < 0}
    best = max(won, key=lambda name: won[name].mean, default="")
    worst = min(lost, key=lambda name: lost[name].mean, default="")
    said = f"a gain is shown on {len(won)} of {len(gains)} sets" + (
        f" (up to {won[best].mean:+.3f}, {best})" if won else ""
    )
    return said + (
        f", a loss on {len(lost)} (down to {lost[worst].mean:+.3f}, {worst})" if lost else ", and a loss on none"
    )


def summary(results: Results) -> list[str]:
    """What BM25 beside the encoder brings, what each training brings, and both together, where enough sets were measured."""

    def encoder(place: Place) -> Row:
        return "encoder", "dense"

    def measured(row: Row) -> bool:
        return sum(row in results.rows(place) for place in results.places) >= min(FEWEST_SETS, len(results.places))

    arms = [arm for arm in NAMES if arm not in ("bm25", "encoder")]
    lines = [
        f"- **BM25 beside the encoder, {SEARCHES[search].removeprefix('hybrid, ')}, without training**: {sentence(results, ('encoder', search), encoder)}."
        for search in ("scores", "hybrid") if measured(("encoder", search))
    ]  # fmt: skip
    lines += [
        f"- **{NAMES[arm]}, dense search**: {sentence(results, (arm, 'dense'), encoder)}."
        for arm in arms if measured((arm, "dense"))
    ]  # fmt: skip
    lines += ["", "The same of hybrid search after training, minus the best search without training:", ""]
    lines += [
        f"- **{NAMES[arm]}, and BM25 by the weighted sum**: {sentence(results, (arm, 'scores'), results.best_zero_shot)}."
        for arm in arms if measured((arm, "scores"))
    ]  # fmt: skip
    return lines


def table(results: Results, place: tuple[str, str, str]) -> list[str]:
    best = results.best_zero_shot(place)
    lines = [
        f"| retriever | search | nDCG@10 | minus the encoder | minus the best without training ({NAMES[best[0]]}, {SEARCHES[best[1]]}) | seeds | minutes |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in results.rows(place):
        values = results.values(place, row)
        base = results.gain(place, row, ("encoder", "dense"))
        over = results.gain(place, row, best)
        lines.append(
            f"| {NAMES[row[0]]} | {SEARCHES[row[1]]} | {values.mean():.3f} | {base if row != ('encoder', 'dense') else ''} "
            f"| {over if row != best else ''} | {len(values)} | {results.minutes(place, row):.1f} |"
        )
    return lines


def targets(results: Results, row: Row) -> list[str]:
    """The targets that were set before the runs, for one arm and search on all domains."""
    gains = {p[1:]: results.gain(p, row, ("encoder", "dense")) for p in results.places if row in results.rows(p)}
    judged = [gain for place, gain in gains.items() if place in TARGETED]
    if not judged:
        return []
    whole = len(judged) == len(TARGETED)

    def verdict(reached: bool) -> str:
        return ("met" if reached else "missed") if whole else "open"

    shown, worst = sum(gain.low > 0 for gain in judged), min(gain.mean for gain in judged)
    mean = float(np.mean([gain.mean for gain in judged]))
    elsewhere = [gain.mean for place, gain in gains.items() if place not in TARGETED]
    kept = (
        f"{min(elsewhere):+.3f} ({'met' if min(elsewhere) >= LEAST_ELSEWHERE else 'missed'})" if elsewhere else "open"
    )
    return [
        f"| {NAMES[row[0]]} | {SEARCHES[row[1]]} | {len(judged)} | {min(gain.seeds for gain in judged)} | {shown} "
        f"| {worst:+.3f} ({verdict(worst >= LEAST_LOSS)}) | {mean:+.3f} ({verdict(mean >= 0.05)}) | {kept} |"
    ]


def draw(results: Results, path: Path) -> None:
    """Gains with their intervals, a panel for each domain."""
    places = ordered(results)
    shown = [[row for row in results.rows(place) if row != ("encoder", "dense")] for place in places]
    heights = [1 + len(rows) for rows in shown]
    figure = Figure(figsize=(9, 0.5 + 0.22 * sum(heights)), layout="constrained")
    axes: Sequence[Any] = figure.subplots(len(places), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axis, place, rows in zip(axes, places, shown, strict=True):
        for number, row in enumerate(reversed(rows)):
            gain = results.gain(place, row, ("encoder", "dense"))
            color = COLORS[row[1]]
            axis.plot([gain.low, gain.high], [number, number], color=color, linewidth=1.5)
            axis.plot([gain.mean], [number], "o", color=color, markersize=4)
        axis.axvline(0, color="#999999", linewidth=0.8)
        axis.set_yticks(
            range(len(rows)), [f"{NAMES[arm].split(' (')[0]}, {SEARCHES[search]}" for arm, search in reversed(rows)]
        )
        axis.set_title(named(place), loc="left")
    axes[-1].set_xlabel("nDCG@10 minus the encoder's")
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None})


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's: Pearson's correlation of the ranks, where equal values share their mean rank. NaN where all values of one are equal."""

    def ranks(values: Sequence[float]) -> NDArray[np.float64]:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[place]

    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def pairs(told: Sequence[Told], queries: str) -> list[tuple[float, float]]:
    """(gain of the sentences or titles, gain of the questions) of the runs that have both."""
    return [(x, each.questions) for each in told if (x := getattr(each, queries)) is not None]


def predicted(told: Sequence[Told], queries: str) -> str:
    """How well the change of sentences or titles tells that of the questions, over all runs and within sets of three runs or more.

    Empty with fewer than three runs.
    """
    points = pairs(told, queries)
    if len(points) < 3:
        return ""
    by_set = [pairs([each for each in told if each.place == place], queries) for place in {each.place for each in told}]
    within = [rank_correlation(*zip(*each, strict=True)) for each in by_set if len(each) >= 3]
    inside = f", within a set {min(within):+.2f} to {max(within):+.2f}" if within else ""
    sets = sum(map(bool, by_set))
    rho = rank_correlation(*zip(*points, strict=True))
    agree = sum((x > 0) == (y > 0) for x, y in points)
    how = "well" if rho >= 0.7 else "in part" if rho >= 0.4 else "hardly" if rho > -0.4 else "the wrong way round"
    return (
        f"**{queries.capitalize()}** order {len(points)} runs on {sets} set{'s' * (sets > 1)} {how}: rank correlation {rho:+.2f} with the questions{inside}, "
        f"and the sign of the change is that of the questions in {agree} of {len(points)}."
    )


def draw_told(told: Sequence[Told], path: Path) -> None:
    """Each run: its change by sentences, and by titles, across; that of the questions upwards. Colours are sets, shapes are arms."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    sets, arms = list(dict.fromkeys(each.place for each in told)), list(dict.fromkeys(each.arm for each in told))
    colors = dict(zip(sets, list(COLORS.values()) * len(sets), strict=False))
    shapes = dict(zip(arms, "osD^vP*X" * len(arms), strict=False))
    for axis, queries in zip(figure.subplots(1, 2, sharey=True), ("sentences", "titles"), strict=True):
        for each in told:
            if (x := getattr(each, queries)) is not None:
                axis.plot([x], [each.questions], shapes[each.arm], color=colors[each.place], markersize=6, alpha=0.8)
        axis.axhline(0, color="#999999", linewidth=0.8)
        axis.axvline(0, color="#999999", linewidth=0.8)
        axis.set_xlabel(f"change by {queries}, reciprocal rank")
    figure.axes[0].set_ylabel("change by people's questions, nDCG@10")
    handles = [Line2D([], [], linestyle="", marker="o", color=colors[place], label=named(place)) for place in sets]
    handles += [Line2D([], [], linestyle="", marker=shapes[arm], color="#555555", label=NAMES[arm]) for arm in arms]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure.savefig(path, metadata={"Date": None})


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def page(results: Results, plot: str) -> str:
    parts = [
        "# Adapting a retriever without labels",
        "",
        "<!-- Generated by examples/adapt/gains_page.py: do not edit. -->",
        "Documents without labels, a published sentence encoder: what finds more of what people ask for, BM25 beside it, or training on the documents?",
        "",
        "## What holds",
        "",
        "nDCG@10 minus that of the encoder as published, in dense search:",
        "",
        *summary(results),
        "",
        *KEY,
        "",
        "## Every set",
        "",
        "Difference in nDCG@10 from the encoder as published. Bold: the 95 % interval excludes 0. A dash: not measured.",
        "",
        *overview(results),
        "",
        f"![Gains of each arm on each set]({plot})",
        "",
        "## How it was measured",
        "",
        "`make adapt` measures this. Each arm trains on the passages of a domain alone, with the same settings everywhere, and then searches for "
        "questions of people that it never saw. The interval is a bootstrap over queries and seeds, of the paired difference. "
        f"With fewer than {FEWEST_SEEDS} seeds it is over queries almost alone. BM25 and the encoder have one run, for nothing in them is random.",
        "",
        "In the weighted sum BM25 has the weight 0.7, or that of cloze recall. 0.7 was chosen on dev queries of MLQuestions and tldr, and COVID-QA's questions "
        "were seen in that trial. The weight of distillation was chosen with questions of NL2Bash in view "
        "([what was tried](adapt-recipe.md), [the targets that we set](adapt-targets.md)).",
        "",
    ]  # fmt: skip
    for place in ordered(results):
        queries = results.values(place, ("encoder", "dense")).shape[1]
        parts += [f"## {named(place)}", "", f"Encoder {place[0]}; {queries:,} queries.", "", *table(results, place), ""]
    told = [each for place in ordered(results) for each in results.told(place)]
    if sentences := [said for queries in ("sentences", "titles") if (said := predicted(told, queries))]:
        parts += [
            "## What cloze recall told",
            "",
            "Without labels: 400 pieces of sentences, 12 wordpieces long, look for their blocks among 1,000, and titles for theirs. "
            "A run is one training with one set of questions, and one point: the change of their mean reciprocal rank by training, and that of nDCG@10 of dense search by people's questions. "
            "Runs that cloze recall itself chose are left out. Runs of one arm on one set differ in their seed alone, so a correlation says less than their number suggests.",
            "",
            *(f"- {said}" for said in sentences),
            "",
            f"![Change by sentences and by titles against change by questions]({plot.replace('gains.svg', 'told.svg')})",
            "",
            "| set | retriever | seed | sentences | titles | questions |",
            "|---|---|--:|--:|--:|--:|",
            *(
                f"| {named(each.place)} | {NAMES[each.arm]} | {each.seed} | {_signed(each.sentences)} | {_signed(each.titles)} | {each.questions:+.3f} |"
                for each in told
            ),
            "",
        ]
    return "\n".join(parts)


def targets_page(results: Results) -> str:
    """The page for contributors: the targets that were set before the runs, and which arm meets them."""
    rows = dict.fromkeys(
        row for place in results.places for row in results.rows(place) if row not in (("bm25", "bm25"), ("encoder", "dense"))
    )  # fmt: skip
    return "\n".join(
        [
            "# Targets of adapting without labels",
            "",
            "<!-- Generated by examples/adapt/gains_page.py: do not edit. -->",
            "nDCG@10 minus the encoder as published. One rule for all of COVID-QA, MLQuestions and both sets of man pages: shown on two, nowhere "
            "below -0.005, mean at least +0.05; on QED and the SQuAD-style articles not below -0.01. A row without all four sets is open. "
            "[The measurements](adapt.md).",
            "",
            "| retriever | search | sets measured | seeds | gains shown | worst | mean | worst elsewhere |",
            "|---|---|--:|--:|--:|--:|--:|--:|",
            *(line for row in rows for line in targets(results, row)),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--page", type=Path, required=True)
    options = parser.parse_args()
    results = Results(options.results)
    if not ordered(results):
        print(
            f"{options.results}: no page yet. Gains are over the encoder as published: measure the arm `encoder` too."
        )
        return
    plot = options.page.with_suffix("") / "gains.svg"
    draw(results, plot)
    if told := [each for place in ordered(results) for each in results.told(place)]:
        draw_told(told, plot.with_name("told.svg"))
    options.page.write_text(page(results, str(plot.relative_to(options.page.parent))), encoding="utf-8")
    other = options.page.with_name(f"{options.page.stem}-targets.md")
    other.write_text(targets_page(results), encoding="utf-8")


if __name__ == "__main__":
    main()

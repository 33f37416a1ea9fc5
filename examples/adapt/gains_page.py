"""Write the page on adapting without labels from the file of measurements alone.

    python examples/adapt/gains_page.py RUNS.jsonl --page PAGE.md

`gains.py` has the measurements; here are the text, the tables and the figures.
"""

import argparse
import sys
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1]))

from figure import COLORS, STYLE, draw, save
from figure import Row as Dot
from gains import (
    ALWAYS,
    DRAWS,
    FEWEST_SEEDS,
    SETS,
    STARTS,
    Place,
    Results,
    Row,
    Told,
    called,
    named,
    order,
    ordered,
    searched,
)

LEAST_LOSS = -0.005

TARGETED = (("covidqa", "test"), ("mlquestions", "test"), ("man-pages", "test"), ("man-pages", "nl2bash"))
"""Sets of queries on which the gain is judged: COVID-QA, MLQuestions, tldr and NL2Bash. With fewer the target is open."""

LEAST_ELSEWHERE = -0.01

HEADLINES = {
    ("encoder", "scores"): "BM25 beside the encoder, no training",
    ("ict", "dense"): "trained on the documents (ICT)",
    ("ict-kept", "dense"): "`adapt`",
    ("ict-kept", "scores"): "`adapt`, and BM25 beside it",
    ("labels-1000", "dense"): "trained on 1,000 labelled questions",
}
"""Rows of the first figure, in words."""

KEY = (
    "- **Hybrid search** has BM25 beside the retriever: by reciprocal rank fusion (RRF), or by the weighted sum of both scores.",
    "- **ICT**, the inverse cloze task, trains a sentence to find the block that it was taken from (`ict-init`). "
    "**Crops** are two random pieces of a block, as in Contriever (`--pairs crops`).",
    "- **+ KL**: a second loss keeps the similarities of the encoder as published (`--distill-start 2`).",
    "- **Kept only on a measured gain**: the encoder as published is kept unless cloze recall shows a gain; in `adapt`, titles must show one too where the documents have them, and so must the reworded ones: the third that shares the fewest words with its block.",
)

PALETTE = {"bm25": 5, "dense": 0, "hybrid": 1, "scores": 2, "chosen": 3, "profile": 4}
"""The colour of each search, as a place in `COLORS`."""


def overview(results: Results, whole: bool) -> list[str]:
    """A row for each arm and search: its gain over the encoder on each set, bold where it is shown; mean and worst over all sets.

    whole: The rows that were measured on all sets, or else the others, without mean and worst.
    """
    places = ordered(results)
    columns = [*map(named, places), *(["mean", "worst"] if whole else []), "seeds, at least"]
    rows = dict.fromkeys(row for place in places for row in results.rows(place) if row != ("encoder", "dense"))
    rows = [row for row in rows if whole == all(row in results.rows(place) for place in places)]
    if not rows:
        return []
    lines = [f"| retriever | search | {' | '.join(columns)} |", f"|---|---|{'--:|' * len(columns)}"]
    for row in sorted(rows, key=order):
        gains = [
            results.gain(place, row, ("encoder", "dense")) if row in results.rows(place) else None for place in places
        ]
        known = [gain for gain in gains if gain]
        cells = ["-" if gain is None else gain.cell for gain in gains]
        means = [gain.mean for gain in known]
        cells += [f"{np.mean(means):+.3f}", f"{min(means):+.3f}"] if whole else []
        cells.append(str(min(gain.seeds for gain in known)))
        lines.append(f"| {called(row[0])} | {searched(row[1])} | {' | '.join(cells)} |")
    return lines


def sentence(results: Results, row: Row) -> str:
    """On how many sets an arm gains over the encoder and loses, with the largest of both."""
    gains = {named(p): results.gain(p, row, ("encoder", "dense")) for p in ordered(results) if row in results.rows(p)}
    won = {name: gain for name, gain in gains.items() if gain.low > 0}
    lost = {name: gain for name, gain in gains.items() if gain.high < 0}
    best = max(won, key=lambda name: won[name].mean, default="")
    worst = min(lost, key=lambda name: lost[name].mean, default="")
    seeds = sorted({gain.seeds for gain in gains.values()})
    counted = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
    random = "" if row[0] == "encoder" else f"; {counted} seed{'s' * (seeds[-1] > 1)}"
    said = f"a gain on {len(won)} of {len(gains)} sets" + (f" (up to {won[best].mean:+.3f}, {best})" if won else "")
    return (
        said
        + (f", a loss on {len(lost)} (down to {lost[worst].mean:+.3f}, {worst})" if lost else ", a loss on none")
        + random
    )


def summary(results: Results) -> list[str]:
    """At most five lines: BM25 without training, `adapt` with it and alone, ICT, and the most labels. What was not measured is left out."""

    def measured(row: Row) -> list[Place]:
        return [place for place in results.places if row in results.rows(place)]

    def mean(row: Row) -> str:
        gains = [results.gain(place, row, ("encoder", "dense")).mean for place in measured(row)]
        return f"mean {np.mean(gains):+.3f}; "

    labels = [row for row in dict.fromkeys(row for p in results.places for row in results.rows(p)) if order(row)[0]]
    most = max(labels, key=order, default=("", ""))[0]
    said = {
        ("encoder", "scores"): ("BM25 beside the encoder, no training", mean),
        ("ict-kept", "scores"): ("`adapt`, BM25 beside its encoder", mean),
        ("ict-kept", "dense"): ("`adapt`, its encoder alone", None),
        ("ict", "dense"): ("Training that is always kept (ICT)", None),
        (most, "dense"): (f"Training on {called(most)}", None),
    }
    return [
        f"- **{words}**: {first(row) if first else ''}{sentence(results, row)}."
        for row, (words, first) in said.items() if measured(row)
    ]  # fmt: skip


def table(results: Results, place: tuple[str, str, str]) -> list[str]:
    best = results.best_zero_shot(place)
    lines = [
        f"| retriever | search | nDCG@10 | minus the encoder | minus the best without training ({called(best[0])}, {searched(best[1])}) | seeds | minutes |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in results.rows(place):
        values = results.values(place, row)
        base = results.gain(place, row, ("encoder", "dense"))
        over = results.gain(place, row, best)
        lines.append(
            f"| {called(row[0])} | {searched(row[1])} | {values.mean():.3f} | {base if row != ('encoder', 'dense') else ''} "
            f"| {over if row != best else ''} | {len(values)} | {results.minutes(place, row)} |"
        )
    return lines


def over_start(results: Results) -> list[str]:
    """The section on REALM beside what it started from; empty as long as no arm of it was measured."""
    places = ordered(results)
    rows = []
    for arm, search in product(STARTS, ("dense", "scores")):
        gains = [results.over_start(place, arm, search) for place in places]
        if known := [gain for gain in gains if gain]:
            lost, won = any(gain.high < 0 for gain in known), any(gain.low > 0 for gain in known)
            verdict = "missed" if lost else "met" if won and len(known) == len(places) else "open"
            cells = " | ".join("-" if gain is None else gain.cell for gain in gains)
            seeds = {gain.seeds for gain in known}
            counted = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"{min(seeds)}"
            rows.append(
                f"| {called(arm)} | {called(STARTS[arm])} | {searched(search)} | {cells} | {counted} | {verdict} |"
            )
    if not rows:
        return []
    return [
        "## REALM beside what it started from",
        "",
        "Difference in nDCG@10 from the start of the same seed, by the same search. Bold: the 95 % interval excludes 0. The target was set before the runs: no loss shown on any set, "
        "a gain shown on one.",
        "",
        f"| retriever | its start | search | {' | '.join(map(named, places))} | seeds | target |",
        f"|---|---|---|{'--:|' * (len(places) + 1)}---|",
        *rows,
        "",
    ]


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
        f"| {called(row[0])} | {searched(row[1])} | {len(judged)} | {min(gain.seeds for gain in judged)} | {shown} "
        f"| {worst:+.3f} ({verdict(worst >= LEAST_LOSS)}) | {mean:+.3f} ({verdict(mean >= 0.05)}) | {kept} |"
    ]


def over_best(results: Results, row: Row) -> list[str]:
    """The target of hybrid search after training, for one arm: its gains over the best search without training, and the verdict."""
    places = [place for place in ordered(results) if place[1:] in TARGETED]
    gains = {p: results.gain(p, row, results.best_zero_shot(p)) for p in places if row in results.rows(p)}
    if not gains:
        return []
    won = {place[1] for place, gain in gains.items() if gain.low > 0}
    lost = any(gain.high < 0 for gain in gains.values())
    reached = "met" if len(won) >= 2 else "missed"
    verdict = "missed" if lost else reached if len(gains) == len(TARGETED) else "open"
    cells = " | ".join(str(gains[place]) if place in gains else "-" for place in places)
    seeds = min(gain.seeds for gain in gains.values())
    return [f"| {called(row[0])} | {searched(row[1])} | {cells} | {seeds} | {verdict} |"]


def gains_figure(results: Results, rows: Collection[Row] | None = None) -> Figure:
    """Gains with their intervals, a group for each set: of some rows of `HEADLINES`, or of all, where each search has its colour."""
    groups, searches = {}, set()
    for place in ordered(results):
        dots = []
        for row in results.rows(place):
            if row == ("encoder", "dense") or (rows is not None and row not in rows):
                continue
            gain = results.gain(place, row, ("encoder", "dense"))
            words = called(row[0]).split(" (")[0] if rows is None else HEADLINES[row].replace("`", "")
            dots.append(Dot(words, gain.mean, gain.low, gain.high, color=PALETTE.get(row[1], 4)))
            searches.add(row[1])
        if dots:
            groups[named(place)] = dots
    legend = {searched(search): place for search, place in PALETTE.items() if search in searches}
    return draw(
        groups, "nDCG@10 minus that of the encoder as published", line=0, legend=legend if rows is None else None
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's: Pearson's correlation of the ranks, where equal values share their mean rank. NaN where all values of one are equal."""

    def ranks(values: Sequence[float]) -> NDArray[np.float64]:
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[place]

    with np.errstate(invalid="ignore"):
        return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


FEWEST_GROUPS = 5
"""Of fewer arms on sets a correlation has no interval."""

MEASURES = {
    "sentences": "Sentences",
    "titles": "Titles",
    "generated": "Questions of a language model",
    "judged": "What it judges of them",
}
"""Measures without labels, and what the page calls them."""


def pairs(told: Sequence[Told], queries: str) -> list[tuple[float, float]]:
    """(gain by a measure without labels, gain of people's questions) of the runs that have both."""
    return [(x, each.questions) for each in told if (x := getattr(each, queries)) is not None]


def predicted(told: Sequence[Told], queries: str) -> str:
    """How well the change by a measure without labels tells that of the questions, over all runs and within sets of three runs or more.

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
        f"**{MEASURES[queries]}** order {len(points)} runs on {sets} set{'s' * (sets > 1)} {how}: rank correlation {rho:+.2f}{interval(told, queries)} with the questions{inside}, "
        f"and the sign of the change is that of the questions in {agree} of {len(points)}."
    )


def interval(told: Sequence[Told], queries: str) -> str:
    """The 95 % interval of the rank correlation, by bootstrap: an arm on a set is drawn with all its seeds. Empty with fewer than five of them."""
    groups: dict[tuple[object, str], list[tuple[float, float]]] = {}
    for each in told:
        for pair in pairs([each], queries):
            groups.setdefault((each.place[1], each.arm), []).append(pair)
    drawn, rng = [*groups.values()], np.random.default_rng(0)
    if len(drawn) < FEWEST_GROUPS:
        return ""
    samples = ([drawn[number] for number in rng.integers(len(drawn), size=len(drawn))] for _ in range(DRAWS))
    found = [rank_correlation(*zip(*(pair for group in some for pair in group), strict=True)) for some in samples]
    low, high = np.nanquantile(found, (0.025, 0.975))
    return f" [{low:+.2f}, {high:+.2f}]"


def decided(results: Results) -> list[str]:
    """What the rule of `adapt` decided, beside people's questions; where it kept the encoder, beside the same training without the rule. Empty without runs."""
    of = {place: runs for place in ordered(results) if (runs := results.decided(place))}
    gained = [(named(place), gain) for place, runs in of.items() for kept, gain in runs if kept]
    refused = [place for place, runs in of.items() if not all(kept for kept, _ in runs)]
    if not of:
        return []
    won, lost = ([(name, gain) for name, gain in gained if (gain > 0) == is_won] for is_won in (True, False))
    parts = [
        f"{len(some)} {verb} ({', '.join(dict.fromkeys(name for name, _ in some))}: {min(g for _, g in some):+.3f} to {max(g for _, g in some):+.3f})"
        for some, verb in ((won, "gained"), (lost, "lost"))
        if some
    ]
    always = [
        f"{results.gain(place, (ALWAYS, 'dense'), ('encoder', 'dense')).mean:+.3f} on {named(place)}"
        for place in refused
        if (ALWAYS, "dense") in results.rows(place)
    ]
    runs = sum(map(len, of.values()))
    kept = f"kept the training in {len(gained)}" + (f": by people's questions {' and '.join(parts)}" if parts else "")
    other = f" It kept the encoder in {runs - len(gained)}" if refused else ""
    besides = f"; the same training, always kept, was {', '.join(always)}" if always else ""
    return [
        f"**The rule of `adapt`** (sentences must gain, and titles) {kept}, of {runs} runs on {len(of)} sets.{other}{besides}{'.' if refused else ''}"
    ]


def told_figure(told: Sequence[Told]) -> Figure:
    """Each run: its change by sentences, and by titles, across; that of the questions upwards. Colours are sets, shapes are arms."""
    sets, arms = list(dict.fromkeys(each.place for each in told)), list(dict.fromkeys(each.arm for each in told))
    colors = dict(zip(sets, COLORS * len(sets), strict=False))
    shapes = dict(zip(arms, "osD^vP*X" * len(arms), strict=False))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        for axis, queries in zip(figure.subplots(1, 2, sharey=True), ("sentences", "titles"), strict=True):
            for each in told:
                if (x := getattr(each, queries)) is not None:
                    axis.plot(
                        [x], [each.questions], shapes[each.arm], color=colors[each.place], markersize=6, alpha=0.8
                    )
            axis.axhline(0, color="#999999", linewidth=0.8)
            axis.axvline(0, color="#999999", linewidth=0.8)
            axis.set_xlabel(f"change by {queries}, reciprocal rank")
        figure.axes[0].set_ylabel("change by people's questions, nDCG@10")
        handles = [Line2D([], [], linestyle="", marker="o", color=colors[place], label=named(place)) for place in sets]
        handles += [
            Line2D([], [], linestyle="", marker=shapes[arm], color=COLORS[5], label=called(arm)) for arm in arms
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def page(results: Results) -> str:
    """The page. Its figures lie beside it."""
    known = [SETS[place[1:]] for place in ordered(results) if place[1:] in SETS]
    sets = [f"| {asked.name} | {asked.documents} | {asked.by} |" for asked in known]
    parts = [
        "# Adapting a retriever without labels",
        "",
        "<!-- Generated by examples/adapt/gains_page.py: do not edit. -->",
        "You have documents, a published sentence encoder and no labels. What finds more of what people ask for: BM25 beside the encoder, or "
        "training on the documents? [How to adapt](../../how-to/adapt-without-labels.md) has the commands.",
        "",
        "## What holds",
        "",
        "nDCG@10 minus that of the published encoder used alone:",
        "",
        *summary(results),
        "",
        "![Gains of five ways, on each set of questions](ways.svg)",
        "",
        "Each dot is a mean over questions and seeds, with its 95 % interval.",
        "",
        "## Every way, on every set",
        "",
        f"- **Encoder as published**: {', '.join(sorted({place[0] for place in results.places}))}.",
        *KEY,
        "",
        "Difference in nDCG@10 from the encoder as published. Bold: the 95 % interval excludes 0.",
        "",
        *overview(results, whole=True),
        "",
        *([*("| set | documents | questions by |", "|---|---|---|"), *sets, ""] if sets else []),
        "![Gains of each way on each set](gains.svg)",
        "",
        "## How it was measured",
        "",
        "`make adapt` measures this. Each arm trains on the passages of a domain alone, with the same settings everywhere, and then searches for "
        "questions of people that it never saw. The interval is a bootstrap over queries and seeds, of the paired difference. "
        f"With fewer than {FEWEST_SEEDS} seeds it is over queries almost alone. BM25 and the encoder have one run, for nothing in them is random. "
        "Minutes are those of training, on one core; a dash: the retriever was trained for another row, or on a GPU.",
        "",
        *results.on_gpu,
        "In the weighted sum BM25 has the weight 0.7, or that of cloze recall. 0.7 was chosen on dev queries of MLQuestions and tldr, and COVID-QA's questions "
        "were seen in that trial. The weight of distillation was chosen with questions of NL2Bash in view "
        "([what was tried](notes.md), [the targets that we set](targets.md)).",
        "",
    ]  # fmt: skip
    if some := overview(results, whole=False):
        parts += [
            "## Ways measured on some sets",
            "",
            "As in the first table. A dash: not measured. Spider and coCondenser draw from several passages of a document, and MLQuestions has single ones.",
            "",
            *some,
            "",
        ]
    parts += over_start(results)
    for place in ordered(results):
        queries = results.values(place, ("encoder", "dense")).shape[1]
        parts += [f"## {named(place)}", "", f"Encoder {place[0]}; {queries:,} queries.", "", *table(results, place), ""]
    told = [each for place in ordered(results) for each in results.told(place)]
    if sentences := [said for queries in MEASURES if (said := predicted(told, queries))]:
        parts += [
            "## What cloze recall told",
            "",
            "Without labels: 400 pieces of sentences, 12 wordpieces long, look for their blocks among 1,000, and so do all titles that their block does not contain. "
            "A run is one training with one set of questions, and one point: the change of their mean reciprocal rank by training, and that of nDCG@10 of dense search by people's questions. "
            "Runs that cloze recall itself chose are left out. Runs of one arm on one set differ in their seed alone, so the interval of a correlation, a bootstrap, draws an arm on a set of documents with all its runs.",
            "",
            "`written` and `judged`: the change of nDCG@10 by 300 questions that a language model wrote for blocks, and by its own judgements of what they find "
            "(`SEARCHES=generated,judged LM=NAME ENDPOINT=URL make adapt`). A dash: not measured.",
            "",
            *(f"- {said}" for said in [*sentences, *decided(results)]),
            "",
            "![Change by sentences and by titles against change by questions](told.svg)",
            "",
            "| set | retriever | seed | sentences | titles | written | judged | questions |",
            "|---|---|--:|--:|--:|--:|--:|--:|",
            *(
                f"| {named(each.place)} | {called(each.arm)} | {each.seed} | {_signed(each.sentences)} | {_signed(each.titles)} | {_signed(each.generated)} | "
                f"{_signed(each.judged)} | {each.questions:+.3f} |"
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
    places = [place for place in ordered(results) if place[1:] in TARGETED]
    best = [
        f"{named(place)} ({called(row[0])}, {searched(row[1])})"
        for place, row in ((place, results.best_zero_shot(place)) for place in places)
    ]
    fused = [row for row in rows if row[0] != "encoder" and row[1] != "dense" and not row[0].startswith("labels-")]
    return "\n".join(
        [
            "# Targets of adapting without labels",
            "",
            "<!-- Generated by examples/adapt/gains_page.py: do not edit. -->",
            "nDCG@10 minus the encoder as published. One rule for all of COVID-QA, MLQuestions and both sets of man pages: shown on two, nowhere "
            "below -0.005, mean at least +0.05; on QED and the SQuAD-style articles not below -0.01. A row without all four sets is open. "
            "[The measurements](report.md).",
            "",
            "| retriever | search | sets measured | seeds, at least | gains shown | worst | mean | worst elsewhere |",
            "|---|---|--:|--:|--:|--:|--:|--:|",
            *(line for row in rows for line in targets(results, row)),
            "",
            "## Hybrid search after training, and the best without",
            "",
            "nDCG@10 minus the best search of the set without training, which is named in brackets, with the 95 % interval. The target: a gain shown on two of "
            "the three document collections, and a loss shown on no set. A row without all four sets is open.",
            "",
            f"| retriever | search | {' | '.join(best)} | seeds | target |",
            f"|---|---|{'--:|' * (len(best) + 1)}---|",
            *(line for row in fused for line in over_best(results, row)),
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
    folder = options.page.parent
    save(gains_figure(results, HEADLINES), folder / "ways.svg")
    save(gains_figure(results), folder / "gains.svg")
    if told := [each for place in ordered(results) for each in results.told(place)]:
        save(told_figure(told), folder / "told.svg")
    options.page.write_text(page(results), encoding="utf-8")
    (folder / "targets.md").write_text(targets_page(results), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Tables and verdicts from a file of results. Numbers are mean ± standard deviation over the seeds."""

import argparse
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger import Ledger
from matplotlib.figure import Figure

sys.path.append(str(Path(__file__).resolve().parents[1] / "ablation"))

from dots import dots
from figure import save
from notation import DASH, interval, listed, mean_and_sd, number, signed, table
from spread import difference, spread

__all__ = [
    "DASH",
    "FEWEST_SEEDS",
    "Claim",
    "cell",
    "circumstances",
    "judged",
    "minutes",
    "ranking",
    "rows_of_dots",
    "signed",
    "summary",
    "table",
    "verdicts",
    "write_page",
]

FEWEST_SEEDS = 3
METRICS = {"em": "exact match", "log_prob": "log-probability"}
"""Metrics whose names readers do not know, in words."""


@dataclass(frozen=True)
class Claim:
    """A claim that one number is larger than another, written down before the runs.

    first, second: (output, metric). least: smallest mean difference that counts.
    """

    statement: str
    first: tuple[str, str]
    second: tuple[str, str]
    least: float

    @property
    def compared(self) -> str:
        """What is compared, by the names of the outputs in the pipeline file."""
        return f"{self.first[1]} of `{self.first[0]}` - `{self.second[0]}`"


RULE = (
    f"A claim is shown if the difference is above 0 on every one of at least {FEWEST_SEEDS} seeds, and its mean is at least the least "
    "difference of the row. The opposite is shown by the same rule with the sign reversed. A claim is open while seeds are missing. Claims and "
    "least differences were written down before the runs. The rule asks for the sign on every seed and not for the interval, which three seeds "
    "make wide: the interval of a claim that is shown may hold 0."
)


SHOWN = (
    f"*Shown* means: the difference has the claimed sign on every one of at least {FEWEST_SEEDS} seeds, and is as large as was asked for before the "
    "runs ([the rule](#every-claim-and-its-rule)). In brackets is its 95 % interval over seeds."
)


def summary(claims: Sequence[Claim], ledger: Ledger) -> str:
    """Return what *shown* means, and a line for each claim with its difference, below the verdicts."""
    lines = []
    for claim in claims:
        verdict, evidence = judged(claim, ledger)
        metric = METRICS.get(claim.first[1], claim.first[1])
        named = "" if metric in claim.statement else f"{metric} "
        size = "" if evidence == DASH else f": {named}{evidence.partition(', >')[0]}"
        lines.append((verdict, f"{claim.statement}{size}."))
    return f"{SHOWN}\n\n{listed(lines)}"


def ranking(ledger: Ledger, outputs: Mapping[str, str], metric: str, most: int | None = None) -> str:
    """Return the means of a metric over the seeds, {label: output}, the largest first: `ICT .802; BERT alone .083`. `most`: how many."""
    found = {label: spread(ledger.by_seed(output, metric)) for label, output in outputs.items()}
    means = {label: each.mean for label, each in found.items() if each is not None}
    return (
        "; ".join(f"{label} {number(means[label])}" for label in sorted(means, key=lambda name: -means[name])[:most])
        or "not measured"
    )


def verdicts(claims: Sequence[Claim], ledger: Ledger) -> str:
    """Return the rule, and a table of the claims with what they compare, the verdict, and what was measured."""
    rows = [[claim.statement, claim.compared, signed(claim.least), *judged(claim, ledger)] for claim in claims]
    return f"{RULE}\n\n" + table(["claim", "what is compared", "least", "verdict", "difference, 95 % interval"], rows)


def judged(claim: Claim, ledger: Ledger) -> tuple[str, str]:
    """Return the verdict, and the mean difference with its interval and the number of seeds above 0."""
    found = difference(ledger.by_seed(*claim.first), ledger.by_seed(*claim.second))
    if found is None:
        return "not measured", DASH
    evidence = f"{signed(found.mean)} {interval(found)}, > 0 on {found.positive} of {found.n}"
    if found.n < FEWEST_SEEDS:
        return f"open: {found.n} of {FEWEST_SEEDS} seeds", evidence
    if found.positive == found.n and found.mean >= claim.least:
        return "**shown**", evidence
    if found.negative == found.n and found.mean <= -claim.least:
        return "**the opposite is shown**", evidence
    return "not shown", evidence


def cell(ledger: Ledger, output: str, metric: str) -> str:
    """Return a cell of a table, such as `.775 ± .025`; a dash if nothing was measured."""
    return mean_and_sd(spread(ledger.by_seed(output, metric)))


def minutes(ledger: Ledger, output: str, shared: Sequence[str]) -> str:
    """Return the minutes of one core that all steps before a measurement took, the shared ones left out; the mean over seeds."""
    sums = {
        seed: sum(seconds for step, seconds in record.seconds.items() if step not in shared) / 60
        for seed, record in ledger.newest(output).items()
    }
    found = spread(sums)
    return DASH if found is None else f"{found.mean:.1f}"


def circumstances(ledger: Ledger, outputs: Sequence[str]) -> Mapping[str, str]:
    """Return the seeds, the versions and the processors behind the newest records of these outputs, for the page."""
    newest = [record for output in outputs for record in ledger.newest(output).values()]
    whole = [
        seed for seed in sorted({record.seed for record in newest}) if all(seed in ledger.newest(o) for o in outputs)
    ]
    return {
        "seeds": ", ".join(map(str, whole)) or "none",
        "missing": str(sum(len({r.seed for r in newest}) - len(ledger.newest(output)) for output in outputs)),
        "realmctl": ", ".join(sorted({record.made_with["realmctl"] for record in newest})) or "none",
        "processor": ", ".join(sorted({record.made_with["processor"] for record in newest})) or "none",
    }


def rows_of_dots(ledger: Ledger, outputs: Mapping[str, str], metric: str, marked: Collection[str] = ()) -> Figure:
    """Draw a metric of the outputs, {label: output}: a dot for each seed, the mean and its interval. Outputs without a measurement are left out."""
    found = {label: list(ledger.by_seed(output, metric).values()) for label, output in outputs.items()}
    return dots({label: values for label, values in found.items() if values}, metric, marked)


def write_page(
    page: Callable[[Ledger, Ledger], str], description: str | None, plot: str, draw: Callable[[Ledger], Figure]
) -> None:
    """Run the command line of a page: write what `page` returns for the results and for the measurements on the dev seeds.

    What `draw` returns for the results is written as the file `plot` beside the page.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--tuning", type=Path, required=True, help="file of the measurements on the dev seeds")
    parser.add_argument("--page", type=Path, required=True)
    given = parser.parse_args()
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(page(Ledger(given.results), Ledger(given.tuning)), encoding="utf-8")
    save(draw(Ledger(given.results)), given.page.with_name(plot))
    print(given.page)

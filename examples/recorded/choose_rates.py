"""Choose the learning rates of a pipeline on dev seeds, as a plan says, and append each measurement to a file of results.

    python examples/recorded/choose_rates.py PIPELINE --plan PLAN.yaml --worlds FOLDER --practice WORLD --workspace FOLDER --results TUNING.jsonl

FOLDER/world-N is the world of dev seed N. Measurements that the results have with equal settings are skipped. The chosen rates are
printed; they stand in the variables of the pipeline.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

import yaml
from judged import table
from ledger import Ledger
from record import add_common_options, recorder

from realmctl.errors import RealmctlError
from realmctl.pipeline import pipeline_file

sys.path.append(str(Path(__file__).resolve().parents[1] / "ablation"))

from growing import grown
from notation import grid_cell

STARTS_PLAN, READERS_PLAN = (Path(__file__).with_name(f"{name}-rates.yaml") for name in ("starts", "readers"))


@dataclass(frozen=True)
class Tuned:
    """A learning rate to choose.

    Attributes:
        variable: Name of the variable of the pipeline.
        output: Output that is measured.
        metric: Its metric; higher is better.
    """

    variable: str
    output: str
    metric: str


@dataclass(frozen=True)
class Plan:
    """All rates from low to high, those that each variable runs with at first, the dev seeds, and what is tuned, in order."""

    rates: tuple[str, ...]
    first_rates: tuple[str, ...]
    seeds: tuple[int, ...]
    tuned: tuple[Tuned, ...]

    def values(self, ledger: Ledger, tuned: Tuned, rate: str) -> dict[int, float]:
        """Return {seed: metric} of a variable with one rate, from the newest records that have it."""
        newest = {
            record.seed: float(record.values[tuned.metric])
            for record in ledger.records
            if record.output == tuned.output and record.variables.get(tuned.variable) == rate
        }
        return {seed: newest[seed] for seed in self.seeds if seed in newest}

    def rates_of(self, ledger: Ledger, tuned: Tuned) -> tuple[str, ...]:
        """Return the rates that a variable runs with, from low to high."""
        return grown(self.rates, self.first_rates, lambda rates: self._best(ledger, tuned, rates))

    def best(self, ledger: Ledger, tuned: Tuned) -> str | None:
        """Return the chosen rate, or None as long as a run is missing."""
        return self._best(ledger, tuned, self.rates_of(ledger, tuned))

    def _best(self, ledger: Ledger, tuned: Tuned, rates: Sequence[str]) -> str | None:
        columns = {rate: self.values(ledger, tuned, rate) for rate in rates}
        if any(len(column) < len(self.seeds) for column in columns.values()):
            return None
        return max(rates, key=lambda rate: (fmean(columns[rate].values()), -float(rate)))


def read_plan(path: Path) -> Plan:
    """Read a file such as starts-rates.yaml."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    rates, first = (tuple(map(str, document[name])) for name in ("rates", "first_rates"))
    return Plan(rates, first, tuple(document["seeds"]), tuple(Tuned(**each) for each in document["tuned"]))


def tuning_table(ledger: Ledger, plan: Plan, outputs: Sequence[str] = ()) -> str:
    """Return a table of the grid: the mean of the metric over the dev seeds at every rate. The chosen one is bold.

    Args:
        ledger: The measurements.
        plan: What is tuned.
        outputs: Prefixes of the outputs to show; all without one.
    """
    shown = [each for each in plan.tuned if not outputs or each.output.startswith(tuple(outputs))]
    used = {rate for each in shown for rate in plan.rates_of(ledger, each)}
    rates = [rate for rate in plan.rates if rate in used]
    return table(["measured, on dev questions", "the rate of", *rates], [_row(ledger, plan, t, rates) for t in shown])


def _row(ledger: Ledger, plan: Plan, tuned: Tuned, rates: Sequence[str]) -> list[str]:
    best = plan.best(ledger, tuned)
    columns = {rate: list(plan.values(ledger, tuned, rate).values()) for rate in rates}
    cells = (grid_cell(values, rate == best) for rate, values in columns.items())
    return [f"{tuned.metric} of `{tuned.output}`", f"`{tuned.variable}`", *cells]


def tune(plan: Plan, given: argparse.Namespace) -> None:
    """Measure what is missing, variable by variable, and print the chosen rates. Raises RealmctlError where a stage does."""
    ledger = Ledger(given.results)
    chosen: dict[str, str] = {}
    for tuned in plan.tuned:
        done: tuple[str, ...] = ()
        while (rates := plan.rates_of(ledger, tuned)) != done:
            for rate, seed in product(rates, plan.seeds):
                variables = {**given.variables, "split": "dev", **chosen, tuned.variable: rate}
                worlds = {"world": given.worlds / f"world-{seed}", "practice": given.practice}
                recorder(given.pipeline, worlds, seed, variables, given.workspace, ledger).record(tuned.output)
            done = rates
        best = plan.best(ledger, tuned)
        assert best is not None
        chosen[tuned.variable] = best
        print(f"{tuned.variable}: {best}", flush=True)


def main() -> int:
    """Run the command line. Return 0, or the exit code of an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument(
        "--plan", type=Path, required=True, help="what is tuned, with which rates and seeds: *-rates.yaml"
    )
    parser.add_argument("--worlds", type=Path, required=True, help="folder with the world of each dev seed")
    add_common_options(parser)
    given = parser.parse_args()
    try:
        given.variables = dict(pipeline_file.pair(text) for text in given.var)
        tune(read_plan(given.plan), given)
    except RealmctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

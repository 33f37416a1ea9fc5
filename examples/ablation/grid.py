"""What `grid.yaml` says: rates, seeds and worlds; and the rate that the dev runs choose for an arm."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from arms import ARMS, BY_KEY, Arm
from growing import grown
from results import Runs

GRID = Path(__file__).with_name("grid.yaml")


@dataclass(frozen=True)
class Run:
    """One run of one arm."""

    arm: Arm
    split: str
    seed: int
    rate: str


@dataclass(frozen=True)
class Grid:
    """All rates from low to high, those that each arm runs with at first, the seeds of each split, and options of
    `make_world.py` for each world.
    """

    rates: tuple[str, ...]
    first_rates: tuple[str, ...]
    seeds: Mapping[str, tuple[int, ...]]
    practice: Mapping[str, Any]
    worlds: Mapping[str, Mapping[str, Any]]

    def dev_runs(self, runs: Runs) -> Iterator[Run]:
        """Yield the runs that tune: the rates of each arm on every dev seed, arm by arm."""
        for arm in ARMS:
            if not arm.rate_of:
                yield from (
                    Run(arm, "dev", seed, rate) for seed in self.seeds["dev"] for rate in self.rates_of(runs, arm)
                )

    def test_runs(self, runs: Runs) -> Iterator[Run]:
        """Yield the runs on the test seeds, of the arms whose dev runs are all there."""
        for arm in ARMS:
            rate = self.best_rate(runs, arm)
            if rate:
                yield from (Run(arm, "test", seed, rate) for seed in self.seeds["test"])

    def rates_of(self, runs: Runs, arm: Arm) -> tuple[str, ...]:
        """Return the rates that an arm is tuned with, from low to high.

        These are the first rates. While the best of them is at an end, the next rate is added there.
        """
        return grown(self.rates, self.first_rates, lambda rates: self._best(runs, arm, rates))

    def best_rate(self, runs: Runs, arm: Arm) -> str | None:
        """Return the rate with the best mean exact match on the dev seeds, the lowest of equal ones.

        None as long as a dev run is missing.
        """
        tuned = BY_KEY[arm.rate_of or arm.key]
        return self._best(runs, tuned, self.rates_of(runs, tuned))

    def _best(self, runs: Runs, arm: Arm, rates: Sequence[str]) -> str | None:
        columns = {rate: self.dev_em(runs, arm, rate) for rate in rates}
        if any(len(column) < len(self.seeds["dev"]) for column in columns.values()):
            return None
        return max(rates, key=lambda rate: (fmean(columns[rate].values()), -float(rate)))

    def dev_em(self, runs: Runs, arm: Arm, rate: str) -> dict[int, float]:
        """Return {seed: exact match} of an arm with one rate on the dev seeds."""
        return {
            seed: value for seed, value in runs.by_seed("dev", arm.key, rate, "em").items() if seed in self.seeds["dev"]
        }


def read_grid(path: Path = GRID) -> Grid:
    """Read a grid file."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    rates, first = (tuple(map(str, document[name])) for name in ("rates", "first_rates"))
    seeds = {split: tuple(given) for split, given in document["seeds"].items()}
    return Grid(rates, first, seeds, document["practice"], document["worlds"])


def known(keys: Sequence[str]) -> list[Arm]:
    """Return the arms with these keys, all arms without a key. Raises SystemExit for an unknown one."""
    odd = [key for key in keys if key not in BY_KEY]
    if odd:
        raise SystemExit(f"unknown arm {odd[0]!r}; the arms are {', '.join(BY_KEY)}")
    return [BY_KEY[key] for key in keys] or list(ARMS)

"""Run arms of the ablation, and add a line for each run to the file of results.

    python examples/ablation/run.py FOLDER --results RUNS.jsonl --split dev [--seeds 23 24] [--arms realm orqa]

Runs that are in RUNS.jsonl with the same settings are skipped, so a stopped session, or another machine, goes on where the last
one stopped. FOLDER keeps worlds and artifacts; it may be deleted at any time.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from arms import Arm
from grid import GRID, Grid, Run, known, read_grid
from measurements import measurements, settings_hash
from results import Runs, append_line, read_lines

from realmctl.cli.available_stages import available_stages
from realmctl.errors import ConfigError, RealmctlError
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.pipeline import Pipeline, PipelineStep

HERE = Path(__file__).parent
MAKE_WORLD = HERE.parent / "world" / "make_world.py"
CPU_INFO = Path("/proc/cpuinfo")
PIPELINE, PRACTICE = HERE.parent / "ablation.yaml", HERE / "practice.yaml"


class Workplace:
    """The folder in which worlds and artifacts are made.

    Args:
        folder: It is made if it is missing.
        grid: The worlds to make.
        variables: Variables of the pipelines, instead of those in the files.

    Raises:
        ConfigError: Neither pipeline has a variable.
    """

    def __init__(self, folder: Path, grid: Grid, variables: Mapping[str, str]) -> None:
        self.folder, self.grid, self.variables = folder, grid, variables
        known = [name for file in (PIPELINE, PRACTICE) for name in _variables(file)]
        if odd := [name for name in variables if name not in known]:
            raise ConfigError(f"--var {odd[0]}: neither pipeline has this variable; they have {', '.join(known)}.")
        self._pipelines: dict[tuple[str, int, str], Pipeline] = {}
        self._tokenizer, self._encoder = folder / "practice" / "tokenizer", folder / "practice" / "encoder"
        for empty in (self._tokenizer, self._encoder):  # a pipeline can be read before the practice is made
            empty.mkdir(parents=True, exist_ok=True)
        world = self._world("practice-world", grid.practice)
        self.practice = self._read(PRACTICE, {"world": str(world)}, folder / "practice")

    def make_practice(self) -> None:
        """Make the encoder and the tokenizer that all seeds share, unless they are there."""
        made = self.practice.make(self.practice.until("encoder"))
        shutil.copytree(made["vocabulary"].path / "tokenizer", self._tokenizer, dirs_exist_ok=True)

    def pipeline(self, split: str, seed: int, rate: str) -> Pipeline:
        """Return the pipeline of all arms for a seed. Its worlds are made if they are missing."""
        key = split, seed, rate
        if key not in self._pipelines:
            for name, options in self.grid.worlds.items():
                self._world(f"seed-{seed}/{name}", {**options, "seed": seed})
            given = {"tokenizer": str(self._tokenizer), "encoder": str(self._encoder), "split": split, "rate": rate}
            given |= {"worlds": str(self.folder / f"seed-{seed}"), "seed": str(seed)}
            self._pipelines[key] = self._read(PIPELINE, given, self.folder / f"seed-{seed}" / "artifacts")
        return self._pipelines[key]

    def settings(self, arm: Arm, split: str, rate: str) -> str:
        """Return the hash of the settings of a run. All seeds have the same, so the worlds of one seed are enough."""
        steps = steps_of(arm, self.pipeline(split, self.grid.seeds["dev"][0], rate))
        return settings_hash(self.folder, (*self.practice.until("encoder"), *steps), self.grid)

    def _read(self, file: Path, given: Mapping[str, str], workspace: Path) -> Pipeline:
        more = {name: value for name, value in self.variables.items() if name in _variables(file)}
        return pipeline_file.read(file, available_stages(), {**given, **more}, workspace)

    def _world(self, name: str, options: Mapping[str, Any]) -> Path:
        out = self.folder / name
        if not (out / "world.json").exists():
            flags = [text for option, value in options.items() for text in (f"--{option}", str(value))]
            subprocess.run([sys.executable, str(MAKE_WORLD), "--out", str(out), *flags], check=True, stdout=sys.stderr)
        return out


def _variables(file: Path) -> list[str]:
    return list(yaml.safe_load(file.read_text(encoding="utf-8"))["vars"])


def steps_of(arm: Arm, pipeline: Pipeline) -> tuple[PipelineStep, ...]:
    """Return the steps that make the outputs of an arm, in the order of the pipeline."""
    wanted = {step.name for output in arm.outputs for step in pipeline.until(output)}
    return tuple(step for step in pipeline.steps if step.name in wanted)


def do(run: Run, place: Workplace, results: Path) -> None:
    """Do a run, and add its line to the file of results."""
    print(f"=== {run.split} seed {run.seed}: {run.arm.key} at {run.rate}", file=sys.stderr, flush=True)
    line: dict[str, Any] = {"split": run.split, "arm": run.arm.key, "rate": run.rate, "seed": run.seed}
    line["settings"] = place.settings(run.arm, run.split, run.rate)
    pipeline = place.pipeline(run.split, run.seed, run.rate)
    before, start = time.process_time(), time.monotonic()
    line |= measurements(run.arm, pipeline.make(steps_of(run.arm, pipeline)))
    line["cpu_seconds"] = round(time.process_time() - before, 1)
    line["seconds"] = round(time.monotonic() - start, 1)
    line |= {"time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "cpu": cpu_name()}
    line["versions"] = {name: version(name) for name in ("realmctl", "torch")} | {"python": platform.python_version()}
    append_line(results, line)


def cpu_name() -> str:
    """Return the name of the processor, as far as the system tells it."""
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def missing(place: Workplace, split: str, results: Path, arms: Sequence[Arm], seeds: Sequence[int]) -> list[Run]:
    """Return the planned runs of these arms and seeds that the file of results does not have with the present settings."""
    runs = Runs(read_lines(results))
    planned = place.grid.dev_runs(runs) if split == "dev" else place.grid.test_runs(runs)
    return [
        run
        for run in planned
        if run.arm in arms
        and run.seed in seeds
        and not runs.has((split, run.arm.key, run.rate, run.seed), place.settings(run.arm, split, run.rate))
    ]


def beside_each_other(seeds: Iterable[int], jobs: int) -> int:
    """Run this program once for each seed, `jobs` at a time. Return the highest exit code."""

    def start(seed: int) -> int:
        return subprocess.run([sys.executable, *sys.argv, "--jobs", "1", "--seeds", str(seed)]).returncode

    with ThreadPoolExecutor(jobs) as pool:
        return max(pool.map(start, seeds))


def main() -> int:
    """Run the command line. Return 0, or the exit code of an error."""
    given = _parser().parse_args()
    grid, arms = read_grid(given.grid), known(given.arms)
    try:
        place = Workplace(given.folder, grid, dict(map(pipeline_file.pair, given.var)))
        while todo := missing(place, given.split, given.results, arms, given.seeds or grid.seeds[given.split]):
            place.make_practice()
            seeds = sorted({run.seed for run in todo})
            if given.jobs > 1 and len(seeds) > 1:
                if code := beside_each_other(seeds, given.jobs):
                    return code
            else:
                for run in todo:
                    do(run, place, given.results)
    except RealmctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="worlds and artifacts; it is made if it is missing")
    parser.add_argument("--results", type=Path, required=True, help="file of results; it is made if it is missing")
    parser.add_argument("--split", choices=("dev", "test"), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", help="only these seeds")
    parser.add_argument("--arms", nargs="*", default=(), help="only these arms")
    parser.add_argument("--jobs", type=int, default=1, help="seeds that run beside each other")
    parser.add_argument("--grid", type=Path, default=GRID, help="default: grid.yaml beside this file")
    parser.add_argument("--var", action="append", default=[], help="name=value: a variable of the pipelines")
    return parser


if __name__ == "__main__":
    sys.exit(main())

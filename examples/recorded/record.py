"""Make the measurements of a pipeline file, and append each to a file of results.

    python examples/recorded/record.py PIPELINE --world WORLD --seed N --workspace FOLDER --results RUNS.jsonl

Measurements are the outputs of eval-em, eval-utility and eval-knn-lm. Those that the results have with equal settings are
skipped, and so are the steps that only they need. All stages run in this process, one after the other. Several processes can record
into one workspace and one file at once: where two need the same step, one waits.
"""

import argparse
import hashlib
import json
import platform
import sys
import time
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from ledger import Ledger, Record

sys.path.append(str(Path(__file__).resolve().parents[1]))

from alone import alone_in

from realmctl.artifacts import Artifact
from realmctl.artifacts.hashing import digest_source
from realmctl.errors import RealmctlError
from realmctl.pipeline import pipeline_file, roles
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.pipeline import Pipeline, PipelineStep
from realmctl.version import __version__

MEASURES = ("eval-em", "eval-utility", "eval-knn-lm")
CPU_INFO = Path("/proc/cpuinfo")


def settings_hashes(pipeline: Pipeline, worlds: Mapping[str, Path], seed: int) -> dict[str, str]:
    """Return {output: hash} of everything that an output depends on, except the seed.

    That is: its stage with its version, its settings, the hashes of the outputs that it reads, and the settings of the worlds. A
    folder without the settings of a world counts by its files. Paths below a world are replaced by the world's name, so the
    hash is the same on every machine.

    Args:
        pipeline: The pipeline.
        worlds: {name: folder} of the worlds that it reads.
        seed: The seed. Where a stage or a world has it, the hash does not depend on it.
    """
    summaries = {name: _summary(folder, seed) for name, folder in worlds.items()}
    hashes: dict[str, str] = {}
    for step in pipeline.steps:
        kept = {name: value for name, value in step.values.items() if roles(step.stage)[name].name != "runtime"}
        content = {
            "stage": [step.stage.command(), step.stage.version],
            "values": {name: _without_machine(value, worlds) for name, value in _without_seed(kept, seed).items()},
            "inputs": {name: hashes[output] for name, output in step.inputs.items()},
            "paths": {
                name: [hashes[place.partition("/")[0]], place.partition("/")[2]]
                for name, place in step.paths_in_outputs.items()
            },
        }
        named = [name for name in worlds if f"<{name}>" in json.dumps(content)]
        content["worlds"] = {name: summaries[name] for name in named}
        hashes[step.name] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    return hashes


def _summary(folder: Path, seed: int) -> Any:
    """What a world is: the settings that made it, or, for a folder from elsewhere, the hash of its files."""
    if not (folder / "world.json").exists():
        return digest_source(folder)
    return _without_seed(json.loads((folder / "world.json").read_text(encoding="utf-8"))["settings"], seed)


def _without_seed(values: Mapping[str, Any], seed: int) -> dict[str, Any]:
    return {name: "<seed>" if name == "seed" and value == seed else value for name, value in values.items()}


def _without_machine(value: Any, worlds: Mapping[str, Path]) -> Any:
    if isinstance(value, tuple | list):
        return [_without_machine(item, worlds) for item in value]
    text = str(value)
    for name, folder in worlds.items():
        if text == str(folder) or text.startswith(f"{folder}/"):
            return f"<{name}>{text.removeprefix(str(folder))}"
    return text


def measurements(pipeline: Pipeline) -> list[PipelineStep]:
    """Return the steps that measure, in the order of the pipeline."""
    return [step for step in pipeline.steps if step.stage.command() in MEASURES]


class Recorder:
    """Makes steps, knows what each cost, and appends measurements to the results."""

    def __init__(
        self, pipeline: Pipeline, hashes: Mapping[str, str], seed: int, ledger: Ledger, variables: Mapping[str, str]
    ) -> None:
        self.pipeline, self.hashes, self.seed, self.ledger, self.variables = pipeline, hashes, seed, ledger, variables
        self.costs = Costs(pipeline.workspace / "seconds.json")
        self.made: dict[str, Artifact] = {}

    def record_all(self, named: str, but_not: str) -> None:
        """Make and record the measurements that the results lack, whose names match one pattern and not the other."""
        for step in measurements(self.pipeline):
            if fnmatch(step.name, named) and not fnmatch(step.name, but_not):
                self.record(step.name)

    def record(self, output: str) -> None:
        """Make and record a measurement, unless the results have it."""
        if (output, self.seed, self.hashes[output]) in self.ledger:
            return
        steps = self.pipeline.until(output)
        for step in steps:
            if step.name not in self.made:
                self._make(step)
        values = {
            name: value
            for name, value in self.made[output].metrics.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        costs = self.costs.read()
        seconds = {step.name: costs.get(self._cost_of(step)) for step in steps}
        known = {name: round(cost, 1) for name, cost in seconds.items() if cost is not None}
        with_what = {"realmctl": __version__, "processor": processor()}
        self.ledger.append(
            Record(output, self.seed, self.hashes[output], values, known, with_what, dict(self.variables))
        )

    def _cost_of(self, step: PipelineStep) -> str:
        """The key of a step's cost: seeds differ in cost where they differ in artifacts."""
        return f"{self.hashes[step.name]}-{self.seed}"

    def _make(self, step: PipelineStep) -> None:
        """Make a step; wait while another process makes it. The cost is that of this process alone, so work beside it does not count."""
        series = self.pipeline.workspace / step.name
        with alone_in(series):
            before = {path.name for path in series.glob("v*")}
            start = time.process_time()
            self.made[step.name] = step.build(self.made, self.pipeline.workspace).make(series)
            if self.made[step.name].path.name not in before:
                self.costs.add(self._cost_of(step), time.process_time() - start)


class Costs:
    """A JSON file of processor seconds, {key: seconds}, that several processes add to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, float]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def add(self, key: str, seconds: float) -> None:
        with alone_in(self.path.parent):
            written = self.path.with_suffix(".new")
            written.write_text(json.dumps({**self.read(), key: seconds}, indent=1), encoding="utf-8")
            written.replace(self.path)


def processor() -> str:
    """Return the name of the GPU, or of the processor where there is none."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def recorder(
    pipeline_path: Path,
    worlds: Mapping[str, Path],
    seed: int,
    variables: Mapping[str, str],
    workspace: Path,
    ledger: Ledger,
) -> Recorder:
    """Return the recorder of one seed.

    Args:
        pipeline_path: A pipeline file.
        worlds: {variable: folder} of the worlds that it reads.
        seed: The seed.
        variables: Further variables of the pipeline.
        workspace: Folder for artifacts.
        ledger: The results.

    Raises:
        ConfigError: For a variable that the pipeline does not have, and for whatever else is wrong with the file.
    """
    every = {**{name: str(path) for name, path in worlds.items()}, "seed": str(seed), **variables}
    pipeline = pipeline_file.read(pipeline_path, own_stages(), every, workspace)
    return Recorder(pipeline, settings_hashes(pipeline, worlds, seed), seed, ledger, variables)


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose_rates.py has too."""
    parser.add_argument(
        "--practice",
        type=Path,
        required=True,
        help="folder that the encoder comes from: a world of reading practice, or a BERT",
    )
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="file of JSON lines to append to")
    parser.add_argument("--var", action="append", default=[], help="NAME=VALUE, a further variable of the pipeline")


def main() -> int:
    """Run the command line. Return 0, or the exit code of an error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", type=Path)
    parser.add_argument("--world", type=Path, required=True, help="folder of the seed's corpus and questions")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument(
        "--outputs", default="*", help="pattern of the outputs to measure, such as 'ict.*' (default: all)"
    )
    parser.add_argument("--without", default="", help="pattern of outputs to leave out")
    parser.add_argument("--lm", type=Path, help="folder of a language model, for a pipeline that has this variable")
    add_common_options(parser)
    given = parser.parse_args()
    try:
        variables = dict(pipeline_file.pair(text) for text in given.var)
        worlds = {"world": given.world, "practice": given.practice, **({"lm": given.lm} if given.lm else {})}
        recorder(given.pipeline, worlds, given.seed, variables, given.workspace, Ledger(given.results)).record_all(
            given.outputs, given.without
        )
    except RealmctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare what `realmctl plan` says with the run that follows, stage by stage, and the simulated index ages with those of the run.

    python benchmarks/plan.py DUMP ENCODER [--refresh background]

DUMP is a Wikipedia dump or an excerpt, ENCODER a BERT folder. The run is plan.yaml. Printed: seconds of each stage as forecast and
as taken, and their ratio; the mean age of the index in both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--refresh", default="background", choices=["background", "inline"])
    options = parser.parse_args()
    variables = ["--var", f"dump={options.dump.resolve()}", "--var", f"encoder={options.encoder.resolve()}"]
    variables += ["--var", f"refresh={options.refresh}"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        plan = call("plan", HERE / "plan.yaml", *variables, cwd=folder)
        print(f"measuring took {time.monotonic() - start:.0f} s")
        made = call("run", HERE / "plan.yaml", *variables, "--workspace", Path(folder) / "run", cwd=folder)["made"]
        print(f"{'output':12}{'forecast':>12}{'taken':>12}{'ratio':>8}")
        for row in plan["stages"]:
            taken = made[row["name"]]["seconds"]
            print(f"{row['name']:12}{row['seconds']:10.1f} s{taken:10.1f} s{row['seconds'] / taken:8.2f}")
        total = sum(entry["seconds"] for entry in made.values())
        print(f"{'together':12}{plan['seconds']:10.1f} s{total:10.1f} s{plan['seconds'] / total:8.2f}")
        lines = (Path(made["model"]["path"]) / "metrics.jsonl").read_text().splitlines()
        ages = [line["index_age_steps"] for line in map(json.loads, lines) if "index_age_steps" in line]
        simulated, measured = plan["index"]["ages"]["mean"], statistics.mean(ages)
        print(
            f"mean age of the index: simulated {simulated:.1f} steps, measured {measured:.1f}, ratio {simulated / measured:.2f}"
        )


def call(command: str, *arguments: Any, cwd: str) -> dict[str, Any]:
    """Run a command of realmctl and return what it prints as JSON."""
    words = [sys.executable, "-m", "realmctl", command, *map(str, arguments), "--json"]
    done = subprocess.run(words, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()

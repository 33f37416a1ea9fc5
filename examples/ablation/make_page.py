"""Turn the file of results into a page with plots, and print its tables.

    python examples/ablation/make_page.py RUNS.jsonl --page PAGE.md

A dash marks a missing number. Plots go beside the page.
"""

import argparse
import sys
from pathlib import Path

from grid import GRID, read_grid
from page import page, results
from plots import draw_all
from results import Runs, read_lines

from realmctl.errors import RealmctlError


def main() -> int:
    """Run the command line. Return 0, or the exit code of the error if the results cannot be read."""
    parser = _parser()
    given = parser.parse_args()
    if not given.page.suffix:
        parser.error(f"--page {given.page}: name a file such as page.md; its plots go beside it")
    try:
        runs, grid = Runs(read_lines(given.results)), read_grid(given.grid)
        runs.require_alike()
        print(results(runs, grid), end="")
        given.page.parent.mkdir(parents=True, exist_ok=True)
        plots = draw_all(runs, grid, given.page.parent)
        given.page.write_text(page(runs, grid, given.command, plots), encoding="utf-8")
    except RealmctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="file of results that examples/ablation.sh wrote")
    parser.add_argument("--page", type=Path, required=True, help="Markdown file to write")
    parser.add_argument("--grid", type=Path, default=GRID, help="default: grid.yaml beside this file")
    parser.add_argument("--command", default="make ablation", help="command that made the runs, for the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())

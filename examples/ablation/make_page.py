"""Turn the runs of examples/ablation.sh into a page with plots, and print its table.

    python examples/ablation/make_page.py FOLDER --seeds 5 --page PAGE.md

Reads FOLDER/seed-K/artifacts, finished or not: what is missing is a dash. Plots go to the folder PAGE beside PAGE.md.
"""

import argparse
import sys
from pathlib import Path

from page import page, results
from plots import draw_all
from results import open_runs

from realmctl.errors import RealmctlError


def main() -> int:
    """The command line. Returns the exit code: that of the error where artifacts cannot be read."""
    parser = _parser()
    given = parser.parse_args()
    if not given.page.suffix:
        parser.error(f"--page {given.page}: name a file such as page.md; its plots go to the folder of that name")
    try:
        runs = open_runs(given.folder, range(given.first_seed, given.first_seed + given.seeds))
        print(results(runs), end="")
        plots_folder = given.page.with_suffix("")
        plots = [(f"{plots_folder.name}/{name}", caption) for name, caption in draw_all(runs, plots_folder)]
        given.page.parent.mkdir(parents=True, exist_ok=True)
        given.page.write_text(page(runs, given.command, plots), encoding="utf-8")
    except RealmctlError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where examples/ablation.sh put its seeds")
    parser.add_argument("--seeds", type=int, required=True, help="how many seeds are read")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--page", type=Path, required=True, help="markdown file to write")
    parser.add_argument("--command", default="make ablation", help="what made the runs, as the page will say it")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Turn the runs of examples/ablation.sh into a page with plots, and print its table.

    python examples/ablation/make_page.py FOLDER --seeds 5 --page PAGE.md

Reads FOLDER/seed-K/artifacts of finished and unfinished runs; a dash marks a missing number. Plots go to the folder
PAGE next to PAGE.md.
"""

import argparse
import sys
from pathlib import Path

from page import page, results
from plots import draw_all
from results import open_runs

from realmctl.errors import RealmctlError


def main() -> int:
    """Run the command line. Return 0, or the exit code of the error if artifacts cannot be read."""
    parser = _parser()
    given = parser.parse_args()
    if not given.page.suffix:
        parser.error(f"--page {given.page}: name a file such as page.md; its plots go to the folder with the same name")
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
    parser.add_argument("folder", type=Path, help="folder that examples/ablation.sh wrote")
    parser.add_argument("--seeds", type=int, required=True, help="number of seeds to read")
    parser.add_argument("--first-seed", type=int, default=0, help="number of the first seed")
    parser.add_argument("--page", type=Path, required=True, help="Markdown file to write")
    parser.add_argument("--command", default="make ablation", help="command that made the runs, for the page")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Turn the runs of examples/enwiki.sh into a page with plots: examples/enwiki/make_page.py FOLDER --page PAGE.md

Finished and unfinished runs are read; a dash marks a missing number. Plots, and the targets with the notes on the recipe (notes.md),
go beside the page.
"""

import argparse
import sys
from pathlib import Path

from page import page, recipe_page
from plots import draw_all, draw_outcome
from results import Experiment

from realmctl.errors import RealmctlError


def main() -> int:
    """Run the command line. Return 0, or the exit code of the error if artifacts cannot be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that enwiki.sh wrote")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="number of the first seed")
    parser.add_argument("--split", default="test", help="part of the questions that exact match was measured on")
    parser.add_argument("--command", default="examples/enwiki.sh", help="command that made the runs, for the page")
    parser.add_argument("--notes", type=Path, help="Markdown file on how the recipe was chosen")
    parser.add_argument("--page", type=Path, required=True, help="Markdown file to write")
    given = parser.parse_args()
    made = Experiment(given.folder, tuple(range(given.first_seed, given.first_seed + given.seeds)), given.split)
    try:
        folder = given.page.parent
        plots = draw_all(made, folder)
        notes = given.notes.read_text(encoding="utf-8") if given.notes else ""
        recipe = folder / "notes.md"
        text = page(made, given.command, recipe.name, plots)
        given.page.write_text(text, encoding="utf-8")
        draw_outcome(text, folder / "outcome.svg")
        recipe.write_text(recipe_page(made, given.page.name, notes), encoding="utf-8")
    except RealmctlError as error:
        print(f"make_page: {error}", file=sys.stderr)
        return error.exit_code
    print(given.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())

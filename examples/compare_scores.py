"""Print scores and utility artifacts side by side: compare_scores.py NAME=FOLDER ...

Folders with the same name, such as seeds of one setting, form one row: mean ± sample standard deviation over the
folders.
"""

import sys
from collections.abc import Sequence

from realmctl.errors import InputError
from realmctl.extras.demo.comparison import table_text


def print_table(program: str, arguments: Sequence[str]) -> None:
    """Print the table of NAME=FOLDER arguments.

    If a folder cannot be read, exit with one line that starts with `program`.
    """
    try:
        print(table_text(arguments))
    except InputError as error:
        raise SystemExit(f"{program}: {error}") from None


if __name__ == "__main__":
    print_table("compare_scores", sys.argv[1:])

"""Print scores artifacts side by side: compare_scores.py NAME=FOLDER ..."""

import sys

from realmctl.artifact import open_artifact
from realmctl.errors import InputError

COLUMNS = {"em": "EM", "recall@1": "recall@1", "recall@5": "recall@5", "recall@20": "recall@20"}


def main(arguments: list[str]) -> None:
    """One row a scores artifact, in the order given; `-` where a number was not measured."""
    print(f"{'':<24}" + "".join(f"{title:>11}" for title in COLUMNS.values()) + f"{'questions':>12}")
    for name, _, folder in (argument.partition("=") for argument in arguments):
        scores = open_artifact(folder).metrics
        cells = (f"{scores[key]:>11.3f}" if key in scores else f"{'-':>11}" for key in COLUMNS)
        print(f"{name:<24}" + "".join(cells) + f"{scores['questions']:>12}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        raise SystemExit(f"compare_scores: {error}") from None

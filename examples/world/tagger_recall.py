"""Measure the recall and precision of `realmctl tag` on the sentences of a world.

    python examples/world/tagger_recall.py WORLD SPANS

SPANS is the artifact that `tag` made from WORLD/sentences. The generator records every name and date, and the tagger
must find them.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

from realmctl.artifacts import open_artifact
from realmctl.artifacts.records import Records
from realmctl.errors import InputError


def told(world: Path) -> Counter[str]:
    """Return how often the sentence corpus contains the value of each fact."""
    facts = map(json.loads, (world / "facts.jsonl").read_text(encoding="utf-8").splitlines())
    return Counter(fact["value"] for fact in facts if fact["told_in_sentences"])


def tagged(spans: Path) -> Counter[str]:
    """Return how often each text is a span. Raises InputError if the folder is not an artifact."""
    sentences = Records(open_artifact(spans).file("sentences.jsonl.zst"))
    return Counter(each["text"][start:stop] for each in sentences for start, stop, _ in each["spans"])


def main() -> None:
    """Run the command line: print recall and precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", type=Path)
    parser.add_argument("spans", type=Path)
    given = parser.parse_args()
    try:
        wanted, found = told(given.world), tagged(given.spans)
    except (InputError, OSError) as error:
        raise SystemExit(f"tagger_recall: {error}") from None
    right = (wanted & found).total()
    print(
        f"{given.spans}: of {wanted.total():,} values told, the tagger found {right:,} ({right / wanted.total():.1%}); "
        f"{right / found.total():.1%} of its {found.total():,} spans are such values"
    )


if __name__ == "__main__":
    main()

"""Change a share of the facts of a world in its knowledge corpus alone.

    python examples/world/change_facts.py WORLD --share 0.05 --out DIR

Facts with a training question are not changed. The sentences, the questions and every other fact stay as they are. DIR gets:

knowledge/        the knowledge corpus with the new values; all other documents are byte for byte those of WORLD
some-mentions/    the knowledge corpus of WORLD, with one more document for each changed fact that states the new value
changed.jsonl     the changed facts as {"question", "old", "new"}
new.jsonl         questions about the changed facts, with their new answers
unchanged.jsonl   questions about a sample of the facts that did not change, with their answers
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from realmctl.extras.demo.world.corpora import WorldDocument, encyclopedia
from realmctl.extras.demo.world.facts import Fact, World, draw_world, with_new_values
from realmctl.extras.demo.world.files import write_corpus, write_json_lines
from realmctl.extras.demo.world.names import make_inventory
from realmctl.extras.demo.world.prose import document_texts, question
from realmctl.extras.demo.world.settings import WorldSettings
from realmctl.extras.demo.world.splits import split_world

MOST_QUESTIONS = 500


def change_facts(settings: WorldSettings, share: float, out: Path) -> dict[str, int]:
    """Write the changed corpus and its questions into `out`. Return the counts."""
    inventory = make_inventory(settings)
    world = draw_world(settings, inventory, random.Random(f"{settings.seed} facts"))
    train = set(split_world(world, settings, random.Random(f"{settings.seed} splits")).questions["train"])
    rng = random.Random(f"{settings.seed} change {share}")
    free = [fact for fact in world.all_facts() if fact not in train]
    chosen = rng.sample(free, round(share * len(world.all_facts())))
    revised = with_new_values(world, set(chosen), settings, inventory, rng)
    new = {fact.key: fact for fact in revised.all_facts()}

    write_corpus(out / "knowledge", _encyclopedia(revised, settings))
    corrections = [
        WorldDocument(f"new-{number}", fact.subject.title, _statement(new[fact.key], settings, rng))
        for number, fact in enumerate(chosen)
    ]
    write_corpus(out / "some-mentions", [*_encyclopedia(world, settings), *corrections])
    asked = chosen[:MOST_QUESTIONS]
    questions = [question(fact, rng) for fact in asked]
    pairs = list(zip(questions, asked, strict=True))
    write_json_lines(
        out / "changed.jsonl",
        ({"question": text, "old": fact.value, "new": new[fact.key].value} for text, fact in pairs),
    )
    write_json_lines(out / "new.jsonl", ({"question": text, "answer": [new[fact.key].value]} for text, fact in pairs))
    kept = sorted(set(free) - set(chosen), key=lambda fact: fact.key)
    sample = rng.sample(kept, min(MOST_QUESTIONS, len(kept)))
    write_json_lines(
        out / "unchanged.jsonl", ({"question": question(fact, rng), "answer": [fact.value]} for fact in sample)
    )
    return {
        "facts": len(world.all_facts()),
        "changed": len(chosen),
        "asked": len(asked),
        "unchanged_asked": len(sample),
    }


def _encyclopedia(world: World, settings: WorldSettings) -> Sequence[WorldDocument]:
    """Return the knowledge corpus. The generator draws the same wordings whatever the values are."""
    return encyclopedia([world], settings, random.Random(f"{settings.seed} knowledge"))


def _statement(fact: Fact, settings: WorldSettings, rng: random.Random) -> str:
    [(text, _)] = document_texts([fact], settings, rng)
    return text


def main() -> None:
    """Run the command line: write the changed corpus, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", type=Path, help="a folder that make_world.py wrote")
    parser.add_argument("--share", type=float, required=True, help="share of all facts to change, from 0 to 1")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    given = parser.parse_args()
    summary = json.loads((given.world / "world.json").read_text(encoding="utf-8"))
    counts = change_facts(WorldSettings(**summary["settings"]), given.share, given.out)
    (given.out / "change.json").write_text(json.dumps({"share": given.share, **counts}, indent=1) + "\n")
    print(json.dumps(counts))


if __name__ == "__main__":
    main()

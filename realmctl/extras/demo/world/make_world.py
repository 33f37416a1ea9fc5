"""Write a miniature world: an encyclopedia, a corpus of sentences about it, and questions.

All files are ordinary corpus and question files, so the same commands process a world and Wikipedia. examples/world/README.md
describes each file. The same settings write the same bytes on every machine.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from realmctl.extras.demo.world.corpora import WorldDocument, dispatches, encyclopedia, quizzes, unrecorded_facts
from realmctl.extras.demo.world.facts import Fact, World, draw_world
from realmctl.extras.demo.world.files import write_corpus, write_json_lines
from realmctl.extras.demo.world.names import Inventory, make_inventory
from realmctl.extras.demo.world.prose import question
from realmctl.extras.demo.world.settings import WorldSettings
from realmctl.extras.demo.world.splits import split_world


def write_world(out: Path, settings: WorldSettings) -> dict[str, Any]:
    """Write the world of `settings` into the folder `out`; return the summary in `world.json`."""
    inventory = make_inventory(settings)
    world = draw_world(settings, inventory, _rng(settings, "facts"))
    splits = split_world(world, settings, _rng(settings, "splits"))
    knowledge = encyclopedia([world], settings, _rng(settings, "knowledge"))
    sentences = _sentence_corpus(splits.told, world, settings, inventory)
    asked = _ask(splits.questions, _rng(settings, "questions"))

    write_corpus(out / "knowledge", knowledge)
    write_corpus(out / "sentences", sentences)
    for split in splits.questions:
        write_json_lines(out / f"{split}.jsonl", _question_records(asked, split))
    evaluation = _write_evaluation(out / "evaluation", splits.held_out, world, settings, inventory)
    write_json_lines(out / "facts.jsonl", _fact_records(knowledge, frozenset(splits.told), asked))
    parallel = _write_parallel(out / "parallel", world, settings, inventory)

    counts = {
        "entities": len(world.facts),
        "knowledge": len(knowledge),
        "sentences": len(sentences),
        **parallel,
        **evaluation,
    }
    counts |= {"facts": len(world.all_facts()), "told_facts": len(splits.told)}
    counts |= {f"{split}_questions": len(facts) for split, facts in splits.questions.items()}
    summary = {"settings": asdict(settings), "counts": counts, "held_out": sorted(splits.held_out)}
    (out / "world.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def _sentence_corpus(
    told: Sequence[Fact], world: World, settings: WorldSettings, inventory: Inventory
) -> list[WorldDocument]:
    """Return the dispatches about `told`, mixed with a share of dispatches that no document helps with."""
    rng = _rng(settings, "sentences")
    share = settings.off_corpus_share
    strange = unrecorded_facts(round(len(told) * share / (1 - share)), world, settings, inventory, rng)
    documents = dispatches(told, rng) + dispatches(strange, rng, prefix="off-")
    rng.shuffle(documents)
    return documents


def _write_evaluation(
    out: Path, held_out: frozenset[str], world: World, settings: WorldSettings, inventory: Inventory
) -> dict[str, int]:
    """Write sentences for evaluation.

    The knowledge corpus helps with those in `held-out`, and not with those in `strangers`.
    """
    rng = _rng(settings, "probe")
    hidden = [fact for fact in world.all_facts() if fact.subject.name in held_out]
    evaluation = {
        "held-out": rng.sample(hidden, min(settings.evaluation_facts, len(hidden))),
        "strangers": unrecorded_facts(settings.evaluation_facts, world, settings, inventory, rng),
    }
    documents = {name: dispatches(facts, rng, prefix=f"{name}-") for name, facts in evaluation.items()}
    for name, written in documents.items():
        write_corpus(out / name, written)
    return {f"{name}_probes": len(written) for name, written in documents.items()}


def _write_parallel(out: Path, world: World, settings: WorldSettings, inventory: Inventory) -> dict[str, int]:
    """Write both corpora of worlds with the names of `world` and other facts.

    All facts are told, and some have questions.
    """
    if not settings.parallel_worlds:
        return {}
    rng = _rng(settings, "parallel")
    worlds = [draw_world(settings, inventory, rng, unlike=world.values()) for _ in range(settings.parallel_worlds)]
    knowledge = encyclopedia(worlds, settings, rng)
    sentences = [
        document
        for number, other in enumerate(worlds)
        for document in dispatches(other.all_facts(), rng, prefix=f"{number}-", linked=True)
    ]
    facts = [fact for other in worlds for fact in other.all_facts()]
    questions = quizzes(rng.sample(facts, round(settings.quiz_share * len(facts))), rng)
    corpora = {"knowledge": knowledge, "sentences": sentences, "questions": questions}
    for name, documents in corpora.items():
        write_corpus(out / name, documents)
    return {f"parallel_{name}": len(documents) for name, documents in corpora.items()}


Asked = dict[Fact, tuple[str, str]]  # split and question by fact


def _ask(questions: Mapping[str, Sequence[Fact]], rng: random.Random) -> Asked:
    return {fact: (split, question(fact, rng)) for split, facts in questions.items() for fact in facts}


def _question_records(asked: Asked, wanted: str) -> Iterator[dict[str, Any]]:
    """Yield questions in NQ-open's format: {"question", "answer": [...]}."""
    for fact, (split, text) in asked.items():
        if split == wanted:
            yield {"question": text, "answer": [fact.value]}


def _fact_records(knowledge: Sequence[WorldDocument], told: frozenset[Fact], asked: Asked) -> Iterator[dict[str, Any]]:
    """Yield every fact of the world with the documents that state it, for analysis. No stage reads this file."""
    documents: dict[Fact, list[str]] = {}
    for document in knowledge:
        for fact in document.facts:
            documents.setdefault(fact, []).append(document.id)
    for fact, (first, *others) in documents.items():
        split, text = asked.get(fact, (None, None))
        subject, relation = fact.key
        yield {
            "subject": subject,
            "relation": relation,
            "value": fact.value,
            "document": first,
            **({"restated_in": others} if others else {}),
            "told_in_sentences": fact in told,
            "split": split,
            "question": text,
        }


def _rng(settings: WorldSettings, purpose: str) -> random.Random:
    """Return a generator for one purpose, so that more parallel worlds, for example, do not change the questions."""
    return random.Random(f"{settings.seed} {purpose}")

"""The two corpora of a world as lists of documents: an encyclopedia, and news dispatches about the same entities."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from realmctl.execution.batches import batched
from realmctl.extras.demo.world.facts import Entity, Fact, World, draw_world
from realmctl.extras.demo.world.names import Inventory
from realmctl.extras.demo.world.prose import Wordings, corpus_sentences, document_texts, question, restated_text
from realmctl.extras.demo.world.settings import WorldSettings

SENTENCES_PER_DOCUMENT = 4


@dataclass(frozen=True)
class WorldDocument:
    """One document. `facts` are the facts in its text."""

    id: str
    title: str
    text: str
    facts: tuple[Fact, ...] = ()


def encyclopedia(worlds: Iterable[World], settings: WorldSettings, rng: random.Random) -> list[WorldDocument]:
    """Return the knowledge corpus: a document for each section of each entity, and those that state facts again."""
    texts: list[tuple[Entity, str, Wordings]] = [
        (entity, text, wordings)
        for world in worlds
        for entity, facts in world.facts.items()
        for text, wordings in document_texts(facts, settings, rng)
    ]
    texts += _restated(texts, settings, rng)
    return [
        WorldDocument(str(number), entity.title, text, tuple(wordings))
        for number, (entity, text, wordings) in enumerate(texts)
    ]


def _restated(
    texts: Sequence[tuple[Entity, str, Wordings]], settings: WorldSettings, rng: random.Random
) -> list[tuple[Entity, str, Wordings]]:
    """Return a document for each document of which some facts are stated again."""
    again = []
    for entity, _, wordings in texts if settings.restated_share else ():
        chosen = {fact: told for fact, told in wordings.items() if rng.random() < settings.restated_share}
        if chosen:
            again.append((entity, *restated_text(chosen, settings, rng)))
    return again


def dispatches(
    told: Sequence[Fact], rng: random.Random, *, prefix: str = "", linked: bool = False
) -> list[WorldDocument]:
    """Return the sentence corpus: the facts `told` in different words, with four unrelated sentences in each document.

    `linked`: the subjects are links too. Reading practice needs this, because it learns copying from names in both
    texts. Pre-training needs visible subjects, because retrieval has no clue if the subject is hidden.
    """
    by_subject: dict[Entity, list[Fact]] = {}
    for fact in told:
        by_subject.setdefault(fact.subject, []).append(fact)
    sentences = [sentence for facts in by_subject.values() for sentence in corpus_sentences(facts, rng, linked=linked)]
    rng.shuffle(sentences)
    return _gathered(sentences, "Dispatch", prefix)


def quizzes(facts: Sequence[Fact], rng: random.Random, *, prefix: str = "") -> list[WorldDocument]:
    """Return questions without answers, four in each document.

    A reader learns from them what question words such as "where" mean.
    """
    return _gathered([question(fact, rng, linked=True) for fact in facts], "Quiz", prefix)


def _gathered(sentences: Sequence[str], what: str, prefix: str) -> list[WorldDocument]:
    return [
        WorldDocument(f"{what.lower()}-{prefix}{number}", f"{what} {prefix}{number}", " ".join(group))
        for number, group in enumerate(batched(sentences, SENTENCES_PER_DOCUMENT))
    ]


def unrecorded_facts(
    count: int, world: World, settings: WorldSettings, inventory: Inventory, rng: random.Random
) -> list[Fact]:
    """Return `count` facts about people outside the encyclopedia of `world`. No block helps with them.

    Nobody in the encyclopedia has one of their family names.
    """
    known = {entity.name for entity in world.facts}
    facts: list[Fact] = []
    while len(facts) < count:
        strangers = draw_world(settings, inventory.of_strangers(), rng, unlike=world.values())
        facts += [fact for fact in strangers.all_facts() if fact.subject.name not in known]
    return facts[:count]

"""The two corpora of a world as lists of documents: an encyclopedia, and news dispatches about the same entities."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from realmctl.demo.world.facts import Entity, Fact, World, draw_world
from realmctl.demo.world.names import Inventory
from realmctl.demo.world.prose import corpus_sentences, document_texts, question
from realmctl.demo.world.settings import WorldSettings

SENTENCES_PER_DOCUMENT = 4


@dataclass(frozen=True)
class WorldDocument:
    """One document. `facts` are the facts in its text."""

    id: str
    title: str
    text: str
    facts: tuple[Fact, ...] = ()


def encyclopedia(worlds: Iterable[World], settings: WorldSettings, rng: random.Random) -> list[WorldDocument]:
    """Return the knowledge corpus: a document for each section of each entity."""
    documents: list[WorldDocument] = []
    for world in worlds:
        for entity, facts in world.facts.items():
            for text, told in document_texts(facts, settings, rng):
                documents.append(WorldDocument(str(len(documents)), entity.title, text, tuple(told)))
    return documents


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
    groups = (sentences[k : k + SENTENCES_PER_DOCUMENT] for k in range(0, len(sentences), SENTENCES_PER_DOCUMENT))
    return [
        WorldDocument(f"{what.lower()}-{prefix}{number}", f"{what} {prefix}{number}", " ".join(group))
        for number, group in enumerate(groups)
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

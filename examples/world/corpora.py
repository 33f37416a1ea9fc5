"""The two corpora of a world as lists of documents: an encyclopedia, and dispatches about the same things."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from facts import Entity, Fact, World, draw_world
from names import Inventory
from prose import corpus_sentences, document_texts, question
from settings import WorldSettings

SENTENCES_PER_DOCUMENT = 4


@dataclass(frozen=True)
class Document:
    """One document to write. `facts` are those that its text tells."""

    id: str
    title: str
    text: str
    facts: tuple[Fact, ...] = ()


def encyclopedia(worlds: Iterable[World], settings: WorldSettings, rng: random.Random) -> list[Document]:
    """The knowledge corpus: a document for each section of each entity."""
    documents: list[Document] = []
    for world in worlds:
        for entity, facts in world.facts.items():
            for text, told in document_texts(facts, settings, rng):
                documents.append(Document(str(len(documents)), entity.title, text, tuple(told)))
    return documents


def dispatches(told: Sequence[Fact], rng: random.Random, *, prefix: str = "", linked: bool = False) -> list[Document]:
    """The sentence corpus: the facts `told` in other words, four unrelated sentences to a document.

    `linked`: the subjects are links too, for reading practice: a name that stands in both texts is what copying is
    learnt from. Hidden where one should retrieve, a subject leaves nothing to retrieve by.
    """
    by_subject: dict[Entity, list[Fact]] = {}
    for fact in told:
        by_subject.setdefault(fact.subject, []).append(fact)
    sentences = [sentence for facts in by_subject.values() for sentence in corpus_sentences(facts, rng, linked=linked)]
    rng.shuffle(sentences)
    return _gathered(sentences, "Dispatch", prefix)


def quizzes(facts: Sequence[Fact], rng: random.Random, *, prefix: str = "") -> list[Document]:
    """Questions without answers, four to a document: what a reader must have seen to know what "where" means."""
    return _gathered([question(fact, rng, linked=True) for fact in facts], "Quiz", prefix)


def _gathered(sentences: Sequence[str], what: str, prefix: str) -> list[Document]:
    groups = (sentences[k : k + SENTENCES_PER_DOCUMENT] for k in range(0, len(sentences), SENTENCES_PER_DOCUMENT))
    return [
        Document(f"{what.lower()}-{prefix}{number}", f"{what} {prefix}{number}", " ".join(group))
        for number, group in enumerate(groups)
    ]


def unrecorded_facts(
    count: int, world: World, settings: WorldSettings, inventory: Inventory, rng: random.Random
) -> list[Fact]:
    """`count` facts of people whom the encyclopedia of `world` leaves out, whole families: no block helps with them."""
    known = {entity.name for entity in world.facts}
    facts: list[Fact] = []
    while len(facts) < count:
        strangers = draw_world(settings, inventory.of_strangers(), rng, unlike=world.values())
        facts += [fact for fact in strangers.all_facts() if fact.subject.name not in known]
    return facts[:count]

"""Text for facts: documents of the knowledge corpus, sentences of the sentence corpus, and questions.

Names of entities and values are links as WikiExtractor's `--links` writes them, `<a href="Target">label</a>`;
dates are plain text. The subject of a text is not a link, as on Wikipedia.
"""

import random
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from realmctl.extras.demo.world.facts import Entity, Fact
from realmctl.extras.demo.world.relations import FILLERS, OPENERS
from realmctl.extras.demo.world.settings import WorldSettings

Wordings = dict[Fact, str]
"""The facts that a text states, each with the wording that states it."""


def document_texts(facts: Sequence[Fact], settings: WorldSettings, rng: random.Random) -> list[tuple[str, Wordings]]:
    """Return the documents of one entity, one for each section: (text, facts in the text)."""
    sections: dict[int, list[Fact]] = {}
    for fact in facts:
        sections.setdefault(min(fact.relation.section, settings.blocks_per_person - 1), []).append(fact)
    return [_section_text(section, settings, rng) for section in sections.values()]


def restated_text(told: Mapping[Fact, str], settings: WorldSettings, rng: random.Random) -> tuple[str, Wordings]:
    """Return a document that states the facts `told` of one entity again, none of them in the wording that it had."""
    others = {fact: [each for each in fact.relation.knowledge if each != wording] for fact, wording in told.items()}
    wordings = {fact: rng.choice(others[fact]) for fact in rng.sample(list(told), len(told))}
    return " ".join(_sentences(wordings, settings, rng)), wordings


def _section_text(facts: list[Fact], settings: WorldSettings, rng: random.Random) -> tuple[str, Wordings]:
    """Write a sentence for each fact in random order. The first one has the full name of the subject."""
    wordings: Wordings = {}
    sentences: list[str] = []
    for fact in rng.sample(facts, len(facts)):
        wordings[fact] = rng.choice(fact.relation.knowledge)
        sentences.append(_knowledge_sentence(fact, wordings[fact], rng, settings, first=not sentences))
    if rng.random() < settings.filler_share:
        sentences.insert(rng.randint(1, len(sentences)), rng.choice(FILLERS))
    return " ".join(sentences), {fact: wordings[fact] for fact in facts}


def _sentences(wordings: Wordings, settings: WorldSettings, rng: random.Random) -> list[str]:
    return [
        _knowledge_sentence(fact, wording, rng, settings, first=k == 0)
        for k, (fact, wording) in enumerate(wordings.items())
    ]


def _knowledge_sentence(fact: Fact, wording: str, rng: random.Random, settings: WorldSettings, *, first: bool) -> str:
    nominative, objective, possessive = _mention(fact.subject, rng, settings, first=first)
    sentence = wording.format(S=nominative, O=objective, P=possessive, V=value_link(fact))
    return sentence[0].upper() + sentence[1:]


def _mention(entity: Entity, rng: random.Random, settings: WorldSettings, *, first: bool) -> tuple[str, str, str]:
    """Return the subject, object and possessive form of a name, pronoun or short form of the entity."""
    draw = rng.random()
    if not first and draw < settings.pronoun_share:
        return entity.pronouns
    full = first or draw < settings.pronoun_share + settings.full_name_share
    name = entity.name if full else entity.short
    return name, name, f"{name}'s"


def corpus_sentences(facts: Sequence[Fact], rng: random.Random, *, linked: bool = False) -> list[str]:
    """Return sentences that state each fact of an entity once. A third of the sentences state one fact, the others two.

    The subject is a link if `linked` is set.
    """
    left = rng.sample(list(facts), len(facts))
    sentences = []
    while left:
        count = 1 if rng.random() < 1 / 3 else 2
        told, left = left[:count], left[count:]
        sentences.append(_corpus_sentence(told, rng, linked))
    return sentences


def _corpus_sentence(facts: Sequence[Fact], rng: random.Random, linked: bool) -> str:
    """Write a sentence with the subject at the start, after an opener or at the end, equally often.

    So the position of a name does not identify it as the subject.
    """
    name = facts[0].subject.name
    subject = link(name) if linked else name
    predicates = [rng.choice(fact.relation.sentences).format(V=value_link(fact)) for fact in facts]
    order = rng.choice(("first", "opened", "last"))
    if order == "last":
        return f"The one that {' and '.join(predicates)} was {subject}."
    opener = rng.choice(OPENERS) if order == "opened" else ""
    if len(predicates) == 2 and rng.random() < 0.5:
        pronoun = "who" if facts[0].subject.kind == "person" else "which"
        return f"{opener}{subject}, {pronoun} {predicates[0]}, {predicates[1]}."
    return f"{opener}{subject} {' and '.join(predicates)}."


def question(fact: Fact, rng: random.Random, *, linked: bool = False) -> str:
    """Return a question whose answer is the value of the fact. The subject is a link if `linked` is set."""
    name = fact.subject.name
    return rng.choice(fact.relation.questions).format(S=link(name) if linked else name)


def value_link(fact: Fact) -> str:
    """Return the value as it is written in text: a link, or a plain date."""
    return fact.value if fact.relation.value == "date" else link(fact.value)


def link(name: str) -> str:
    """Return a link: `<a href="Port%20Velford">Port Velford</a>`."""
    return f'<a href="{quote(name)}">{name}</a>'

"""Cloze questions: pieces of a corpus's sentences that ask for a salient span or a number. They need no labels.

A reader that is fine-tuned on few questions learns them by heart. Cloze questions are further examples (Dhingra et al.
2018, "Simple and Effective Semi-Supervised Question Answering"; Lewis et al. 2019, "Unsupervised Question Answering by
Cloze Translation"). The rules here are our own, and simpler than either paper's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from realmctl.artifacts import Artifact
from realmctl.errors import InputError
from realmctl.questions.questions import Question
from realmctl.spans.salient import SalientSpan
from realmctl.spans.tagged_queries import TaggedQueries

SIDE = 14
"""Words of the sentence that are kept before the span, and after it."""
FEWEST = 4
"""Words that a sentence must have around the span."""
LEFT_OUT = 0.2
"""Share of the words around the span that are left out, since a question seldom repeats a sentence."""
NUMBER = "NUMBER"
NUMBERS = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b|\b(?:two|three|four|five|six|seven|eight|nine|ten)\b")
AROUND_WORDS = ',;:()"'
ENDS = f"{AROUND_WORDS} .?!"


def cloze_questions(spans: Artifact, count: int, rng: np.random.Generator) -> list[Question]:
    """Return up to `count` cloze questions in random order, each of another sentence.

    Fewer are returned when the sentences drawn, twice as many as `count`, hold too few words.

    Raises:
        InputError: the artifact is damaged, or no sentence drawn holds enough words.
    """
    records = TaggedQueries(spans).records
    rows = np.sort(rng.choice(len(records), min(2 * count, len(records)), replace=False)).tolist()
    try:
        made = [cloze_question(f"cloze-{row}", records[row], rng) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{spans}: a sentence is malformed ({error!r}). Tag the blocks again.") from None
    questions = [question for question in made if question is not None]
    if not questions:
        raise InputError(
            f"{spans}: no sentence has {FEWEST} words around a span, so none can become a cloze question. Tag more blocks."
        )
    return [questions[number] for number in rng.permutation(len(questions))[:count]]


def cloze_question(id: str, sentence: Mapping[str, Any], rng: np.random.Generator) -> Question | None:
    """Return a question that asks for a span or a number of a sentence, or None if there are too few words around it.

    "Ada Lovelace wrote the first program in 1843." becomes "Ada Lovelace wrote first program in?", for instance. The words before
    and those after the span come in either order. There is no question word, so the rules suit languages other than English.

    Args:
        id: the id of the question.
        sentence: a record of a spans artifact, with `text` and `spans`.
        rng: draws the span, the words that are left out, and the order.
    """
    text = sentence["text"]
    tagged = [SalientSpan(*span) for span in sentence["spans"]]
    numbers = [SalientSpan(*match.span(), NUMBER) for match in NUMBERS.finditer(text)]
    apart = [one for one in numbers if all(one.end <= span.start or span.end <= one.start for span in tagged)]
    asked_for = [*tagged, *apart][rng.integers(len(tagged) + len(apart))]
    before, after = text[: asked_for.start].split()[-SIDE:], text[asked_for.end :].rstrip(ENDS).split()[:SIDE]
    if len(before) + len(after) < FEWEST:
        return None
    halves = [" ".join(_kept(words, rng)) for words in (before, after)]
    if rng.random() < 0.5:
        halves.reverse()
    asked = " ".join(part for part in halves if part).rstrip(ENDS)
    return Question(id, f"{asked}?", (text[asked_for.start : asked_for.end].strip(),))


def _kept(words: list[str], rng: np.random.Generator) -> list[str]:
    """Most of the words, without the punctuation around them."""
    return [bare for word in words if rng.random() >= LEFT_OUT and (bare := word.strip(AROUND_WORDS))]

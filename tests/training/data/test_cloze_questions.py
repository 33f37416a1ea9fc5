"""Cloze questions: what they ask for, which words they keep, and which sentences they come from."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.artifacts.records import RecordWriter
from realmctl.errors import InputError
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.training.data.cloze_questions import LEFT_OUT, SIDE, cloze_question, cloze_questions
from tests.fixtures.chain import Chain

TEXT = "Ada Lovelace, born in London, wrote notes on seven engines by 1843 (or before)."


def sentence(*spans: tuple[str, str], text: str = TEXT) -> dict[str, object]:
    return {"text": text, "spans": [[text.index(span), text.index(span) + len(span), label] for span, label in spans]}


def asked(seed: int, record: dict[str, object]) -> tuple[str, str]:
    made = cloze_question("id", record, np.random.default_rng(seed))
    assert made is not None and made.id == "id" and not made.is_regex
    [answer] = made.answers
    return made.question, answer


def test_spans_are_asked_for_and_numbers_that_no_span_covers() -> None:
    found = {asked(seed, sentence(("Ada Lovelace", "PERSON"), ("1843", "DATE")))[1] for seed in range(40)}
    assert found == {"Ada Lovelace", "1843", "seven"}
    assert {asked(seed, sentence((TEXT[34:70], "EVENT")))[1] for seed in range(20)} == {TEXT[34:70]}


@given(st.integers(0, 10_000))
def test_a_question_keeps_words_of_both_sides_in_their_order(seed: int) -> None:
    question, answer = asked(seed, sentence(("London", "GPE"), text=TEXT.replace("seven ", "").replace("1843 ", "")))
    assert answer == "London" and question.endswith("?") and "London" not in question
    before, after = ["Ada", "Lovelace", "born", "in"], ["wrote", "notes", "on", "engines", "by", "or", "before"]
    kept = question.rstrip("?").split()
    first = [word for word in kept if word in before]
    second = [word for word in kept if word in after]
    assert kept in (first + second, second + first)
    assert first == [word for word in before if word in first] and second == [word for word in after if word in second]


def test_words_are_left_out_at_their_rate_and_far_words_always() -> None:
    words = [f"w{number}" for number in range(100)]
    text = " ".join([*words[:50], "London", *words[50:]])
    record = {"text": text, "spans": [[text.index("London"), text.index("London") + 6, "GPE"]]}
    kept = [len(asked(seed, record)[0].split()) for seed in range(300)]
    assert max(kept) <= 2 * SIDE
    assert np.mean(kept) / (2 * SIDE) == pytest.approx(1 - LEFT_OUT, abs=0.02)


def test_a_short_sentence_gives_no_question() -> None:
    record = sentence(("Ada", "PERSON"), text="Ada wrote it down.")
    assert cloze_question("id", record, np.random.default_rng(0)) is None


def test_questions_are_drawn_from_different_sentences(chain: Chain) -> None:
    sentences = len(TaggedQueries(chain.spans))
    made = cloze_questions(chain.spans, sentences // 4, np.random.default_rng(3))
    assert len(made) == len({question.id for question in made}) == sentences // 4
    assert made == cloze_questions(chain.spans, sentences // 4, np.random.default_rng(3))
    assert made != cloze_questions(chain.spans, sentences // 4, np.random.default_rng(4))
    assert len(cloze_questions(chain.spans, 10 * sentences, np.random.default_rng(3))) <= sentences


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"text": "Ada wrote it", "spans": [[0, 3, "PERSON"]]}, "4 words"),
        ({"text": "Ada wrote it", "spans": []}, "malformed"),
        ({"text": "Ada wrote it", "spans": [["0", 3, "PERSON"]]}, "malformed"),
        ({"text": None, "spans": [[0, 3, "PERSON"]]}, "malformed"),
        ({"spans": [[0, 3, "PERSON"]]}, "malformed"),
        ({"text": "Ada wrote it", "spans": 7}, "malformed"),
    ],
)
def test_sentences_that_give_no_question_are_refused(
    record: dict[str, object], why: str, chain: Chain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RecordWriter(tmp_path / "sentences.jsonl.zst") as out:
        out.write(record)
    for name in ("tokens.npy", "offsets.npy", "spans.npy", "uids.npy"):
        shutil.copy(chain.spans.file(name), tmp_path / name)
    monkeypatch.setattr(type(chain.spans), "file", lambda self, name: tmp_path / name)
    with pytest.raises(InputError, match=why):
        cloze_questions(chain.spans, 2, np.random.default_rng(0))

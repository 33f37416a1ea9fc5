"""The official splits, and files that are whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.errors import ConfigError, InputError
from realmctl.extras.split import splits
from realmctl.extras.split.splits import is_dev, shortened, split
from realmctl.questions.questions import Question, read_questions


@pytest.fixture
def questions(tmp_path):
    """Fifty questions with answers of one to six words."""
    path = tmp_path / "questions.jsonl"
    lines = [
        {"question": f"who was number {n}", "answer": ["the first", " ".join("abcdef"[: n % 6 + 1])]} for n in range(50)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_web_questions_splits_as_published(shared_data, tmp_path):
    """ORQA's paper, table 2: 3,417 and 361 (FarmHash's Hash64 instead of Fingerprint64 would give 3,424 and 354)."""
    sources = [shared_data / f"WebQuestions.{part}.json" for part in ("train", "val", "devtest")]
    counts = split(sources, tmp_path / "train", tmp_path / "dev")
    assert counts == {"train": 3417, "dev": 361}
    assert (len(read_questions(tmp_path / "train")), len(read_questions(tmp_path / "dev"))) == (3417, 361)


def test_a_split_keeps_every_question_and_its_order(questions, tmp_path):
    train, dev = tmp_path / "new" / "train.jsonl", tmp_path / "dev.jsonl"
    counts = split([questions], train, dev)
    assert counts == {"train": len(records(train)), "dev": len(records(dev))} and min(counts.values()) > 0
    assert records(train) == [record for record in records(questions) if not is_dev(record["question"])]
    assert records(dev) == [record for record in records(questions) if is_dev(record["question"])]


def test_a_split_keeps_ids(questions, tmp_path):
    named = [{"id": f"q{n}", **record} for n, record in enumerate(records(questions))]
    questions.write_text("".join(json.dumps(record) + "\n" for record in named))
    split([questions], tmp_path / "train", tmp_path / "dev")
    assert records(tmp_path / "train") == [record for record in named if not is_dev(record["question"])]
    assert records(tmp_path / "dev") == [record for record in named if is_dev(record["question"])]


def test_is_dev_by_pyfarmhash():
    """Its fingerprints are ...371589, ...639135 and ...297070."""
    assert not is_dev("when was the last time anyone was on the moon")
    assert not is_dev("東京はどこ")
    text = "".join(chr(32 + (i * i * 7 + i * 3) % 95) for i in range(16))
    assert is_dev(text)


def test_the_five_token_rule(questions, tmp_path):
    train, dev = tmp_path / "train", tmp_path / "dev"
    counts = split([questions], train, dev, max_answer_tokens=5)
    assert (counts["dropped_answers"], counts["dropped_questions"]) == (8, 0)
    assert all(len(answer.split()) <= 5 for path in (train, dev) for r in records(path) for answer in r["answer"])
    assert split([questions], train, dev, max_answer_tokens=1)["dropped_questions"] == 41


def test_answers_are_dropped_one_by_one():
    question = Question("1", "who", ("a b c d e f", "a-b-c-d-e-f g", " a\u00a0b  c "))
    assert shortened(question, 5) == Question("1", "who", ("a-b-c-d-e-f g", " a\u00a0b  c "))
    assert shortened(question, 2) == Question("1", "who", ("a-b-c-d-e-f g",))
    assert shortened(question, 1) is None
    with pytest.raises(ConfigError, match="regular expressions"):
        shortened(Question("1", "who", ("a.*",), is_regex=True), 5)


def test_regular_expressions_stay_marked(tmp_path):
    source = tmp_path / "trec"
    source.write_text("".join(f"{n}\tfactoid\tWho {n}?\t^L(in|)coln \\d\n" for n in range(30)))
    split([source], tmp_path / "train", tmp_path / "dev")
    assert all(question.is_regex for question in read_questions(tmp_path / "train"))
    assert {answer for q in read_questions(tmp_path / "dev") for answer in q.answers} == {"^L(in|)coln \\d"}


def test_paths_are_different(questions, tmp_path):
    for sources, train, dev in [
        ([questions], tmp_path / "x", tmp_path / "x"),
        ([questions], questions, tmp_path / "x"),
        ([questions, questions], tmp_path / "x", tmp_path / "y"),
        ([questions], tmp_path / "x", tmp_path / "z" / ".." / "x"),
    ]:
        with pytest.raises(ConfigError, match="named twice"):
            split(sources, train, dev)
    assert list(tmp_path.iterdir()) == [questions]


def test_a_failure_leaves_what_was_there(questions, tmp_path, monkeypatch):
    train, dev = tmp_path / "train", tmp_path / "dev"
    train.write_text("before")
    write, calls = splits._write, []

    def fails_at_the_second(file, part, with_ids):
        calls.append(file)
        write(file, part, with_ids)
        if len(calls) == 2:
            raise OSError("disk full")

    monkeypatch.setattr(splits, "_write", fails_at_the_second)
    with pytest.raises(OSError, match="disk full"):
        split([questions], train, dev)
    assert train.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"train", "questions.jsonl"}


def test_a_malformed_line_is_named(questions, tmp_path):
    bad = tmp_path / "bad"
    bad.write_text('{"question": "q", "answer": ["a"]}\n{"question": 3}\n')
    with pytest.raises(InputError, match=r"bad:2: "):
        split([questions, bad], tmp_path / "train", tmp_path / "dev")
    assert not (tmp_path / "train").exists()

"""SQuAD's layout becomes a corpus and question files that share no article."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "examples" / "split_squad.py"


def article(number: int) -> dict[str, Any]:
    answer = {"text": f"answer {number}", "answer_start": 0}
    asked = {"id": str(number), "question": f"What is {number}?", "answers": [answer, answer]}
    return {
        "title": f"Some_Title_{number}",
        "paragraphs": [{"context": f"answer {number} é.", "qas": [asked]}],
    }


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_third_article_is_dev(tmp_path: Path) -> None:
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps({"data": [article(n) for n in range(7)]}), encoding="utf-8")
    subprocess.run([sys.executable, str(SCRIPT), str(squad), str(tmp_path / "out")], check=True)

    paragraphs = json_lines(tmp_path / "out" / "paragraphs.jsonl")
    assert [p["text"] for p in paragraphs] == [f"answer {n} é." for n in range(7)]
    assert paragraphs[2] == {"id": "Some_Title_2-0", "title": "Some Title 2", "text": "answer 2 é."}
    dev = json_lines(tmp_path / "out" / "dev.jsonl")
    assert dev == [{"question": f"What is {n}?", "answer": [f"answer {n}"]} for n in (0, 3, 6)]
    train = json_lines(tmp_path / "out" / "train.jsonl")
    assert [q["question"] for q in train] == [f"What is {n}?" for n in (1, 2, 4, 5)]


def test_articles_by_part_and_a_few_training_questions(tmp_path: Path) -> None:
    squad, out = tmp_path / "squad.json", tmp_path / "out"
    squad.write_text(json.dumps({"data": [article(n) for n in range(12)]}), encoding="utf-8")
    subprocess.run([sys.executable, str(SCRIPT), str(squad), str(out), "--test-every", "4", "--few", "3"], check=True)

    parts = {part: json.loads((out / f"articles-{part}.json").read_text())["data"] for part in ("train", "dev", "test")}
    assert {part: len(articles) for part, articles in parts.items()} == {"train": 6, "dev": 4, "test": 2}
    for part, articles in parts.items():
        asked = [each["paragraphs"][0]["qas"][0]["question"] for each in articles]
        assert asked == [question["question"] for question in json_lines(out / f"{part}.jsonl")]
    assert all(each in [article(n) for n in range(12)] for articles in parts.values() for each in articles)
    train = json_lines(out / "train.jsonl")
    assert json_lines(out / "train-dev.jsonl") == train + json_lines(out / "dev.jsonl")
    assert json_lines(out / "train-3.jsonl") == [train[0], train[2], train[4]]


def test_no_more_questions_than_there_are(tmp_path: Path) -> None:
    squad, out = tmp_path / "squad.json", tmp_path / "out"
    squad.write_text(json.dumps({"data": [article(n) for n in range(4)]}), encoding="utf-8")
    subprocess.run([sys.executable, str(SCRIPT), str(squad), str(out), "--few", "9"], check=True)
    assert json_lines(out / "train-9.jsonl") == json_lines(out / "train.jsonl") != []


def test_several_files_and_a_test_part(tmp_path: Path) -> None:
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    for path, numbers in zip(files, (range(7), range(7, 13)), strict=True):
        path.write_text(json.dumps({"data": [article(n) for n in numbers]}), encoding="utf-8")
    out = tmp_path / "out"
    subprocess.run([sys.executable, str(SCRIPT), *map(str, files), str(out), "--test-every", "2"], check=True)

    found = {part: [q["question"] for q in json_lines(out / f"{part}.jsonl")] for part in ("train", "dev", "test")}
    numbers = {part: [int(question.split()[-1][:-1]) for question in asked] for part, asked in found.items()}
    assert numbers == {"dev": [0, 3, 6, 7, 10], "test": [1, 4, 8, 11], "train": [2, 5, 9, 12]}
    everything = json_lines(out / "all.jsonl")
    assert len(json_lines(out / "paragraphs.jsonl")) == len(everything) == 13
    for part, asked in found.items():
        assert [q["question"] for q in everything if q["part"] == part] == asked
    assert {q["file"] for q in everything if "12" in q["question"]} == {"second"}


def test_no_article_is_dev(tmp_path: Path) -> None:
    squad, out = tmp_path / "squad.json", tmp_path / "out"
    squad.write_text(json.dumps({"data": [article(n) for n in range(8)]}), encoding="utf-8")
    subprocess.run(
        [sys.executable, str(SCRIPT), str(squad), str(out), "--dev-every", "0", "--test-every", "4"], check=True
    )
    assert [each["question"] for each in json_lines(out / "test.jsonl")] == ["What is 0?", "What is 4?"]
    assert len(json_lines(out / "train.jsonl")) == 6 and not (out / "dev.jsonl").exists()

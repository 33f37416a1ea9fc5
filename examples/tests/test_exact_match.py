"""The page of exact_match.py: its claim, its arms, and where questions fail, from records that were worked out by hand."""

import argparse
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

import exact_match


def record(arm: str, seed: int, name: str, em: list[int], there: list[int]) -> dict[str, object]:
    rest = {measure: [0.0] * len(em) for measure in ("f1", "recall@1", "recall@20")}
    return {"arm": arm, "seed": seed, "set": name, "values": {"em": em, "recall@5": there, **rest}}


RECORDS = [
    *(record("orqa", seed, "nq", [1, 0, 0, 0], [1, 1, 0, 0]) for seed in (2, 3, 4)),
    *(record("orqa", seed, "webq", [0, 0], [0, 0]) for seed in (2, 3, 4)),
    *(record("realm", seed, "nq", [1, 1, 0, 0], [1, 1, 1, 0]) for seed in (2, 3, 4)),
    *(record("realm", seed, "webq", [0, int(seed == 2)], [0, 1]) for seed in (2, 3, 4)),
    record("bm25", 2, "nq", [0, 0, 0, 0], [0, 0, 0, 0]),  # its other set is missing
]


def test_differences_are_of_all_questions_and_paired_by_seed():
    text = exact_match.page(RECORDS)
    # realm: 3, 2 and 2 of 6 are right; orqa: 1 of 6. So .333, .167 and .167 above, which is .222.
    assert "- em, `realm` - `orqa`, all questions: +.222 [-.017, +.461], above 0 on 3 of 3 seeds" in text
    assert "with `realm`: shown." in text
    assert "Questions: nq 4, webq 2." in text and "bm25" not in text


def test_the_second_claim_is_judged_as_the_first():
    causal = [{**one, "arm": "causal"} for one in RECORDS if one["arm"] == "orqa"]
    text = exact_match.page([*RECORDS, *causal])
    assert "- em, `causal` - `orqa`, all questions: +.000 [+.000, +.000], above 0 on 0 of 3 seeds" in text
    assert "with `causal`: not shown." in text and "with `realm`: shown." in text


def test_arms_of_two_readers_are_not_compared():
    given = argparse.Namespace(encoder="models/small", lesson=[Path("b.json"), Path("a.json")], train=[Path("c.jsonl")])
    told = exact_match.reader_told(given)
    assert told == "started from small, and learnt on a.json, b.json, then on c.jsonl"
    read_by_it = [{**one, "reader": told} for one in RECORDS]
    assert f"The reader {told}." in exact_match.page(read_by_it).splitlines()
    with pytest.raises(ValueError, match="these records have 2"):
        exact_match.page([*RECORDS[:-1], read_by_it[-1]])


def test_failures_add_up_to_one():
    rows = [
        line.split(" | ") for line in exact_match.page(RECORDS).splitlines() if line.startswith(("| realm", "| orqa"))
    ]
    shares = {row[0].strip("| "): [float(cell.strip(" |")) for cell in row[1:]] for row in rows[2:]}
    assert shares["orqa"] == [0.167, 0.167, 0.667]
    assert all(abs(sum(row) - 1) < 0.002 for row in shares.values())


def test_questions_are_apart_by_whose_blocks_have_an_answer():
    rows = exact_match.page(RECORDS).split("## Where an answer")[1].splitlines()[4:]
    # Of nq's, two have an answer in both and one in realm's alone; of webq's one in realm's alone, right for one seed of three.
    assert rows[0] == "| both | 2 | 1.000 | .500 |" and rows[1] == "| `realm` alone | 2 | .167 | .000 |"


def test_what_chooses_settings_is_held_out_and_long_answers_are_left_out(tmp_path: Path):
    file = tmp_path / "asked.jsonl"
    lines = [{"question": f"What is {n}?", "answer": [str(n), "a " * 9]} for n in range(300)]
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"question": "Why?", "answer": ["b " * 9]}]))
    files = exact_match.held_out([file, file], tmp_path, "open")
    fewer = exact_match.held_out([file], tmp_path, "fewer", {exact_match.same(f"what is {n} ?") for n in range(90)})
    assert len(fewer["questions"].read_text().splitlines()) == 10, "of 300 questions 90 are asked in tests"
    dev, train = ([json.loads(line) for line in files[name].read_text().splitlines()] for name in ("dev", "questions"))
    assert len(dev) == 200 and len(train) == 100
    assert {one["question"] for one in dev}.isdisjoint(one["question"] for one in train)
    assert all(len(one["answer"]) == 1 for one in dev + train)

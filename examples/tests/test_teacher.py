"""The measurement of rerankers and teachers, at a tiny size, and its table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "teacher"
sys.path.append(str(EXAMPLES))

import teachers as run  # noqa: E402

from tests.fixtures.blocks import make_blocks  # noqa: E402
from tests.fixtures.encoder_folders import folder_for  # noqa: E402

TOWNS = [
    "Velford",
    "Stonebridge",
    "Harrow",
    "Milton",
    "Ashby",
    "Kenmore",
    "Tarrant",
    "Lowick",
    "Penrose",
    "Wick",
    "Elm",
    "Oakley",
]


def record(arm: str, seed: int, values: list[float], domain: str = "towns", **more: str) -> str:
    return json.dumps(
        {
            **more,
            "domain": domain,
            "split": "test",
            "encoder": "e",
            "arm": arm,
            "seed": seed,
            "search": "s",
            "ndcg": values,
            "cpu_minutes": 0,
        }
    )


def test_the_table_has_means_over_seeds_and_differences_of_the_same_questions(tmp_path):
    results = tmp_path / "runs.jsonl"
    lines = [
        record("best", 0, [0.5, 0.5, 0.0, 1.0]),
        record("rerank", 0, [0.6, 0.6, 0.1, 1.0]),
        record("rerank", 1, [0.7, 0.7, 0.3, 1.0]),
    ]
    results.write_text("\n".join([*lines, record("encoder", 0, [0.1] * 4, "other")]) + "\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.table(results).splitlines()]
    assert rows[0] == ["set", "encoder", "best", "rerank", "questions", "seeds"]
    assert rows[2] == ["towns test", "", "0.500", "0.625", "4", "2"]
    assert rows[3] == ["other test", "0.100", "", "", "4", "1"]
    assert rows[7][0] == "rerank - best" and rows[7][1].startswith("+0.125 [") and rows[7][2:] == ["", "+0.125"]


def test_each_encoder_and_teacher_has_its_tables_and_the_rules_decide(tmp_path):
    results, many = tmp_path / "runs.jsonl", 40
    lines = []
    for domain, gain in (("towns", 0.2), ("rivers", 0.1), ("hills", 0.0)):
        lines += [record(arm, 0, [0.5] * many, domain) for arm in ("encoder", "best")]
        lines += [record("rerank", 0, [0.5 + gain] * many, domain, teacher="good")]
        lines += [record("student", seed, [0.5 + gain / 4] * many, domain, teacher="good") for seed in (0, 1, 2)]
    lines += [record("student-best", 0, [0.6] * many, "towns", teacher="good")]
    lines += [record("rerank", 0, [0.4] * many, teacher="bad")]
    results.write_text("\n".join(lines) + "\n")
    first, second = run.table(results).split("## e, taught by bad")
    assert first.startswith("## e, taught by good\n") and "| hills test | 0.500 | 0.500 | 0.500 |" in first
    assert (
        "- **rerank minus best: reached.** It is shown above 0 on 2 of 3 sets, and below 0 on 0; mean +0.100." in first
    )
    assert (
        "- **student minus encoder: missed.** It is shown above 0 on 2 of 3 sets, and below -0.005 on 0; mean +0.025."
        in first
    )
    assert (
        "- **student-best minus best: not decided, 1 of 3 sets, 1 of 3 seeds.** It is shown above 0 on 1 of 1 sets"
        in first
    )
    assert "rivers" not in second
    assert (
        "- **rerank minus best: missed.** It is shown above 0 on 0 of 1 sets, and below 0 on 1; mean -0.100." in second
    )


def test_a_reranker_that_reads_fewer_hits_leaves_the_others_in_place(tmp_path):
    for name, order in (("search", "abcd"), ("reranked", "dcba")):
        lines = [f"q Q0 {each} {rank} {9 - rank} s\n" for rank, each in enumerate(order, start=1)]
        (tmp_path / name).write_text("".join(lines))
    for depth, order in ((0, "abcd"), (2, "bacd"), (3, "cbad"), (4, "dcba")):
        made = run.at_depth(tmp_path / "search", tmp_path / "reranked", depth, tmp_path / "made")
        assert "".join(line.split()[2] for line in made.read_text().splitlines()) == order


def test_the_page_is_written_from_results_alone(tmp_path, monkeypatch, capsys):
    results, page = tmp_path / "runs.jsonl", tmp_path / "page.md"
    results.write_text(record("best", 0, [0.5, 0.5]) + "\n" + record("rerank", 0, [0.5, 1.0]) + "\n")
    monkeypatch.setattr(sys, "argv", ["run.py", "--results", str(results), "--page", str(page)])
    run.main()
    assert (
        page.read_text().startswith("# A cross-encoder")
        and "| towns test | 0.500 | 0.750 | 2 | 1 |" in page.read_text()
    )
    assert capsys.readouterr().out.strip() in page.read_text()


def test_a_drawn_part_has_its_own_questions_and_the_same_passages(tmp_path):
    folder = tmp_path / "towns"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "p"}\n')
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": f"q{n}", "text": "?"}) + "\n" for n in range(9)))
    (folder / "qrels" / "test.tsv").write_text("a\tb\tc\n" + "".join(f"q{n}\tp\t1\n" for n in range(7)))
    domain = run.Domain("towns", folder)
    assert run.drawn(domain, 7, tmp_path / "w") is domain
    drawn, again = (run.drawn(domain, 3, tmp_path / "w") for _ in range(2))
    asked = {json.loads(line)["_id"] for line in (drawn.folder / "queries.jsonl").read_text().splitlines()}
    judged = {line.split("\t")[0] for line in drawn.qrels.read_text().splitlines()[1:]}
    assert drawn == again and asked == judged and len(asked) == 3
    assert drawn.corpus.read_bytes() == domain.corpus.read_bytes()


@pytest.mark.slow
def test_a_tiny_run_measures_every_arm_and_a_second_one_nothing(tmp_path, monkeypatch, capsys):
    folders = {}
    for name, towns in (("one", TOWNS[:6]), ("two", TOWNS[6:])):
        folder = folders[name] = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        rows = [
            {
                "_id": f"p{n}",
                "title": town,
                "text": f"{town} is a town in the north. The river of {town} is long and cold.",
            }
            for n, town in enumerate(towns)
        ]
        (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "queries.jsonl").write_text(
            "".join(json.dumps({"_id": f"q{n}", "text": f"Where is {town}?"}) + "\n" for n, town in enumerate(towns))
        )
        (folder / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\tp{n}\t1\n" for n in range(len(towns)))
        )
    blocks = make_blocks(tmp_path / "blocks", {"T": [[f"{town} is a town in the north." for town in TOWNS]]})
    encoder, results = folder_for(blocks, tmp_path / "encoder"), tmp_path / "runs.jsonl"
    words = [
        "run.py",
        "--encoder",
        str(encoder),
        "--results",
        str(results),
        "--workspace",
        str(tmp_path / "w"),
        "--seeds",
        "1",
    ]
    words += ["--teacher-steps", "1", "--student-steps", "1", "--questions", "4"]
    words += [f"--source={name}={folder}" for name, folder in folders.items()] + ["--domain", f"two={folders['two']}"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert [one["arm"] for one in records] == [
        "encoder",
        "best",
        "rerank-10",
        "rerank-20",
        "rerank",
        "fused",
        "student",
        "student-best",
    ]
    assert (
        all(len(one["ndcg"]) == 6 and min(one["ndcg"]) >= 0 for one in records)
        and (tmp_path / "w" / encoder.name / "teachers" / "one").is_dir()
    )
    before = results.read_text()
    run.main()
    assert results.read_text() == before and "| two test |" in capsys.readouterr().out

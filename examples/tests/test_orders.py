"""How well a measure without labels orders searches: its table from results, and a tiny run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.append(str(Path(__file__).parents[2] / "examples" / "teacher"))

import orders as run
from ways import Bench

from realmctl.artifacts import Artifact
from tests.fixtures.blocks import make_blocks
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.language_models import make_babbler


def line(domain: str, search: str, *values: float) -> str:
    encoder = "" if search == "bm25" else "e"
    told = dict(zip((run.PEOPLE, run.SENTENCES, run.WRITTEN), values, strict=True))
    return json.dumps({"domain": domain, "split": "test", "encoder": encoder, "search": search, "ndcg": told})


def test_the_table_has_scipys_rank_correlations_and_what_a_choice_costs(tmp_path, monkeypatch, capsys):
    searches = ("bm25", "dense", "profile", "other")
    of = {
        "towns": [(0.5, 0.9, 0.2), (0.3, 0.6, 0.1), (0.6, 0.8, 0.4), (0.2, 0.7, 0.3)],
        "rivers": [(0.1, 0.9, 0.2), (0.3, 0.8, 0.4), (0.2, 0.8, 0.3), (0.7, 0.7, 0.5)],
    }
    lines = [
        line(domain, *each)
        for domain, rows in of.items()
        for each in zip(searches, *zip(*rows, strict=True), strict=True)
    ]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(
        sys, "argv", ["orders.py", "--results", f"{tmp_path}/runs.jsonl", "--page", f"{tmp_path}/page.md"]
    )
    run.main()
    page = (tmp_path / "page.md").read_text()
    assert capsys.readouterr().out.strip() in page
    rows = [[cell.strip() for cell in each.split("|")[1:-1]] for each in page.splitlines() if each.startswith("|")]
    for place, name in ((1, "Pieces of sentences"), (2, "Questions of a language model")):
        told = [stats.spearmanr(*(np.array(each)[:, k] for k in (place, 0))).statistic for each in of.values()]
        [row] = [row for row in rows if row[0] == name and len(row) == 4]
        assert row[2:] == [f"{value:+.2f}" for value in told]
        mean, low, high = (f"{value:+.2f}" for value in (np.mean(told), min(told), max(told)))
        assert row[1] == f"{mean} [{low}, {high}], {'reached' if np.mean(told) >= 0.6 else 'missed'}"
    assert ["Pieces of sentences", "0.100", "0.600"] in rows and [
        "Questions of a language model",
        "0.000",
        "0.000",
    ] in rows
    assert [row[0] for row in rows if len(row) == 4 and row[1:] == ["0.700", "0.700", "0.500"]] == ["e other"]


@pytest.mark.slow
def test_a_tiny_run_measures_every_search_and_a_second_one_nothing(tmp_path, monkeypatch, capsys):
    towns = ["Velford", "Stonebridge", "Harrow", "Milton", "Ashby", "Kenmore"]
    texts = [
        f"{town} is a town in the north. The river of {town} is long, and it is cold in the winter." for town in towns
    ]
    folder = tmp_path / "towns"
    (folder / "qrels").mkdir(parents=True)
    rows = [
        {"_id": f"p{n}", "title": town, "text": text} for n, (town, text) in enumerate(zip(towns, texts, strict=True))
    ]
    asked = [{"_id": f"q{n}", "text": f"Where is {town}?"} for n, town in enumerate(towns)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    lines = [f"q{n}\tp{n}\t1\n" for n in range(len(towns))]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    blocks = make_blocks(tmp_path / "blocks", {"T": [[text] for text in texts]})
    encoder, lm, results = (
        folder_for(blocks, tmp_path / "encoder"),
        make_babbler(tmp_path / "lm"),
        tmp_path / "runs.jsonl",
    )
    real = run.asked

    def asked_in_words_of_the_blocks(bench: Bench, lm: str) -> dict[str, Artifact]:
        """What the babbler writes is asked for, and has no word of a block, so BM25 finds nothing."""
        found = real(bench, lm)
        assert found[run.WRITTEN].metrics["queries"] > 0
        return dict.fromkeys((run.SENTENCES, run.WRITTEN), found[run.SENTENCES])

    monkeypatch.setattr(run, "asked", asked_in_words_of_the_blocks)
    words = [
        "--encoder",
        encoder,
        "--domain",
        f"towns={folder}",
        "--lm",
        lm,
        "--results",
        results,
        "--workspace",
        tmp_path / "w",
    ]
    monkeypatch.setattr(sys, "argv", ["orders.py", *map(str, words)])
    run.main()
    records = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(one["encoder"], one["search"]) for one in records] == [
        ("", "bm25"),
        ("encoder", "dense"),
        ("encoder", "profile"),
    ]
    assert all(one["ndcg"].keys() == {run.PEOPLE, run.SENTENCES, run.WRITTEN} for one in records)
    assert records[0]["ndcg"][run.PEOPLE] == pytest.approx(1)  # each town's name stands in one passage alone
    before = results.read_text()
    run.main()
    assert results.read_text() == before and "| bm25 | 1.000 |" in capsys.readouterr().out

"""The measurement of blocks that are named by their section: its questions, its ranks and its report."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "sections"
sys.path.append(str(EXAMPLES))

import measure_sections as measure  # noqa: E402
import section_sets as sets  # noqa: E402
import sections_page as page  # noqa: E402

from realmctl.artifacts import open_artifact  # noqa: E402
from realmctl.corpus.corpus import Corpus  # noqa: E402
from stages.chunk import Chunk  # noqa: E402
from tests.fixtures.retriever import make_retriever  # noqa: E402


def test_the_rank_is_that_of_the_first_right_passage_or_page():
    hits = [
        measure.Passage(*each)
        for each in (("a-0", "a", "x"), ("a-1", "a", "y"), ("b-0", "b", "x"), ("b-1", "b", "the y"))
    ]
    asked = [("b", ""), ("b", "y$"), ("b", "z"), ("a", "y"), ("c", "")]
    found = [measure.first_right(hits, {"document": each, "pattern": pattern}) for each, pattern in asked]
    assert found == [2, 4, 0, 2, 0]


def test_both_arms_are_measured_and_only_one_has_sections(tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    for name in ("Otter", "Heron"):
        lines = " ".join(f"It eats number {number} of many." for number in range(30))
        (tmp_path / f"docs/{name}.md").write_text(f"# Animals\n\n## {name}\n\n### Food\n\n{lines}\n")
    vocabulary = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:200", workers=1).make(tmp_path / "vocabulary")
    retriever = make_retriever(tmp_path / "retriever", vocabulary)
    questions = [{"id": "1", "text": "heron", "document": "Heron.md", "pattern": "number 2[0-9]"}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    words = ["--retriever", retriever.path, "--results", tmp_path / "r.jsonl", "--workspace", tmp_path / "w"]
    monkeypatch.setattr(
        "sys.argv", ["x", *map(str, words), "--max-wordpieces", "64", f"animals={tmp_path}/docs,{tmp_path}/q.jsonl"]
    )
    measure.main()
    runs = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(run["arm"], run["search"]) for run in runs] == [
        (arm, search) for arm in ("title", "section", "innermost") for search in ("dense", "default")
    ]
    cut = Corpus(open_artifact(tmp_path / "w/docs/blocks"))
    for arm in measure.ARMS:
        blocks = Corpus(open_artifact(tmp_path / "w/docs" / arm / "blocks"))
        assert [(block.id, block.text.split()) for block in blocks] == [(block.id, block.text.split()) for block in cut]
        names = {"title": "Animals", "section": f"Animals / {name} / Food", "innermost": "Animals / Food"}
        assert names[arm] in {block.title for block in blocks}


def test_the_terms_of_an_index_and_the_queries_of_pages(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.html").write_text("<p>The work_mem of a sort, and exclusion\nconstraints.</p>")
    (tmp_path / "index.html").write_text(
        "<div class=index><dl><dt>work_mem configuration parameter, <a href='a.html#x'>Memory</a></dt>"
        "<dt>sort, <a href='a.html'>One</a>, <a href='b.html'>Two</a></dt><dt>constraint</dt><dd><dl><dt>exclusion, <a href='a.html'>C</a></dt></dl></dd>"
        "<dt>absent, <a href='a.html'>A</a></dt><dt>elsewhere, <a href='b.html'>B</a></dt></dl></div>"
    )
    found = sorted((each["text"], each["pattern"]) for each in sets.index(tmp_path / "index.html", tmp_path / "docs"))
    assert found == [
        ("constraint exclusion", "(?i)exclusion"),
        ("work_mem configuration parameter", "(?i)work_mem"),
    ]
    (tmp_path / "beir/qrels").mkdir(parents=True)
    (tmp_path / "beir/qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n2\tb\t1\n3\ta\t1\n3\tb\t1\n")
    (tmp_path / "beir/queries.jsonl").write_text(
        "".join(json.dumps({"_id": str(n), "text": f"q{n}"}) + "\n" for n in range(1, 4))
    )
    assert [*sets.pages(tmp_path / "beir", tmp_path / "docs")] == [
        {"id": "1", "text": "q1", "document": "a.html", "pattern": ""}
    ]


def runs(title: list[int], section: list[int]) -> dict[page.Key, dict[str, object]]:
    return {
        ("towns", arm, "dense"): {"ranks": ranks, "blocks": 9}
        for arm, ranks in (("title", title), ("section", section))
    }


@pytest.mark.parametrize(
    ("title", "section", "kept", "lost"),
    [
        ([2] * 50, [1] * 50, "kept", "none"),
        ([1] * 50, [2] * 50, "not kept", "towns (dense)"),
        ([1, 2] * 50, [2, 1] * 50, "not kept", "none"),
    ],
)
def test_the_report_says_by_the_rule_whether_sections_are_kept(title, section, kept, lost):
    text = page.page_of(runs(title, section))
    gain = sum((1 / math.log2(1 + b)) - (1 / math.log2(1 + a)) for a, b in zip(title, section, strict=True)) / len(
        title
    )
    assert f"- **section**: mean {gain:+.3f} dense; shown losses: {lost}. By the rule it is {kept}." in text


def test_a_rank_beyond_ten_and_none_at_all_count_nothing():
    assert page.ndcg([1, 3, 10, 11, 0]).tolist() == pytest.approx([1, 0.5, 1 / math.log2(11), 0, 0])

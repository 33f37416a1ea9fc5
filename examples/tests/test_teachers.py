"""Arms of a cross-encoder: rankings that are fused, and questions that are drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples" / "teacher"))

import teachers
from ways import Domain

from realmctl.extras.ir.ranking.trec import read_run


def test_a_fused_run_has_the_sum_of_reciprocal_ranks(tmp_path):
    names = "abcde"
    orders = {"search": {"q1": "abcde", "q2": "ab"}, "reranked": {"q1": "ecabd", "q2": "ba"}}
    for run, of in orders.items():
        lines = [
            f"{query} Q0 {name} {rank} {9 - rank} {run}\n"
            for query, order in of.items()
            for rank, name in enumerate(order, start=1)
        ]
        (tmp_path / run).write_text("".join(lines))
    made = dict(read_run(teachers.fused(tmp_path / "search", tmp_path / "reranked", tmp_path / "fused")))
    sums = {name: sum(1 / (61 + orders[run]["q1"].index(name)) for run in orders) for name in names}
    assert sorted(made["q1"], key=lambda name: -made["q1"][name]) == sorted(names, key=lambda name: -sums[name])
    assert list(made["q2"]) == ["a", "b"]  # equal sums: as the search has them


def test_draws_share_no_question_and_the_first_is_as_it_was(tmp_path):
    folder = tmp_path / "set"
    (folder / "qrels").mkdir(parents=True)
    asked = [f"q{number:02d}" for number in range(25)]
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": each, "text": "?"}) + "\n" for each in asked))
    (folder / "corpus.jsonl").write_text("")
    (folder / "qrels" / "test.tsv").write_text("q\tc\ts\n" + "".join(f"{each}\td\t1\n" for each in asked))

    def of(draw: int) -> list[str]:
        made = teachers.drawn(Domain.named(f"set={folder}", tmp_path), 10, tmp_path / "drawn", draw)
        judged = [line.split("\t")[0] for line in made.qrels.read_text().splitlines()[1:]]
        lines = (made.folder / "queries.jsonl").read_text().splitlines()
        assert judged == [json.loads(line)["_id"] for line in lines]
        return judged

    first, second, rest = of(0), of(1), of(2)
    assert of(0) == first == sorted(teachers.random.Random(0).sample(asked, 10))
    assert (len(first), len(second), len(rest)) == (10, 10, 5)
    assert sorted([*first, *second, *rest]) == asked

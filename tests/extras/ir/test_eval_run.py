"""`eval-run` beside `eval-em`'s recall, and on judgements of which the measures are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.ir.eval_run import ANSWERED, EvalRun
from realmctl.extras.ir.rank import Rank
from stages.eval_em import EvalEm
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain

pytest.importorskip("ir_measures")
SUCCESS = {"Success@1": "recall@1", "Success@5": "recall@5", "Success@20": "recall@20"}


@pytest.fixture(scope="module")
def ranking(chain: Chain, tmp_path_factory) -> Artifact:
    inputs = {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}
    return Rank(queries=chain.questions, top=20, **inputs).make(tmp_path_factory.mktemp("ranking") / "ranking")


def test_answers_as_relevance_give_the_recall_of_eval_em(tmp_path, chain: Chain, ranking: Artifact):
    inputs = {"blocks": chain.blocks, "questions": chain.questions}
    recall = EvalEm(retriever=chain.retriever, index=chain.index, hits=20, **inputs).make(tmp_path / "scores").metrics
    made = EvalRun(ranking=ranking, **inputs).make(tmp_path / "measures")
    found = made.metrics
    assert {name: found[name] for name in SUCCESS} == {name: recall[theirs] for name, theirs in SUCCESS.items()}
    assert 0 < found["Success@1"] < 1 and found["queries"] == 20
    files = {"run_file": ranking.file("run.trec"), "qrels": made.file("qrels.trec")}
    assert EvalRun(measures=ANSWERED, **files).make(tmp_path / "again").metrics == found


def test_blocks_are_not_read_where_a_file_judges(chain: Chain, ranking: Artifact, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\n")
    stage = EvalRun(ranking=ranking, blocks=chain.blocks, qrels=tmp_path / "qrels")
    assert stage.inputs().keys() == {"ranking"}


def test_documents_hold_what_one_of_their_blocks_holds(tmp_path, chain: Chain):
    inputs = {"blocks": chain.blocks, "questions": chain.questions}
    documents = Rank(blocks=chain.blocks, queries=chain.questions, method="bm25", unit="document", top=1).make(
        tmp_path / "ranking"
    )
    found = EvalRun(ranking=documents, measures="Success@1 P@1", **inputs).make(tmp_path / "measures")
    assert found.metrics["Success@1"] == 1.0  # the person's document is first, and its other block names the town
    values = [json.loads(line) for line in found.file("per-query.jsonl").read_text().splitlines()]
    assert len(values) == 20 and all(each["P@1"] == 1 for each in values)


def test_judgements_of_a_file_and_a_run_of_another_system(realmctl):
    Path("run").write_text("q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\nq2 Q0 c 1 1 x\nq9 Q0 a 1 1 x\n")
    Path("qrels").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\nq2\td\t1\nq3\te\t1\n")
    code, out, err = realmctl("eval-run", "--run-file", "run", "--qrels", "qrels", "--measures", "RR@10,R@100")
    assert code == 0 and "eval-run: RR@10 0.1667, R@100 0.3333, queries 3" in err, err
    made = open_artifact(out.strip())
    assert json.loads(made.file("measures.json").read_text()) == {"RR@10": 0.166667, "R@100": 0.333333, "queries": 3}


def test_a_tie_is_one_order_for_all_measures(realmctl):
    Path("run").write_text("q Q0 a 1 1.0 x\nq Q0 b 2 1.0 x\n")
    Path("qrels").write_text("q 0 a 1\nq 0 b 0\n")
    code, out, err = realmctl("eval-run", "--run-file", "run", "--qrels", "qrels", "--measures", "RR AP RR@10")
    assert code == 0, err
    measured = json.loads(open_artifact(out.strip()).file("measures.json").read_text())
    assert measured == {"RR": 0.5, "AP": 0.5, "RR@10": 0.5, "queries": 1}


def test_judgements_of_documents_for_a_ranking_of_blocks(tmp_path, ranking: Artifact):
    (tmp_path / "qrels").write_text("1 0 0 1\n2 0 1 1\n")
    with pytest.raises(InputError, match=r"'.*-.'.* '0'.*--unit document"):
        EvalRun(ranking=ranking, qrels=tmp_path / "qrels").make(tmp_path / "m")
    assert not list((tmp_path / "m").glob("v*"))


def test_what_is_refused(tmp_path, chain: Chain, ranking: Artifact):
    inputs = {"blocks": chain.blocks, "questions": chain.questions}
    for values, says in (
        ({"ranking": ranking}, "--qrels.*--questions"),
        ({"qrels": chain.questions}, "ranking"),
        ({"run_file": chain.questions, **inputs}, "ranking"),
        ({"ranking": ranking, "qrels": chain.questions, "answer_field": "x"}, "--answer-field needs --questions"),
        ({"ranking": ranking, "measures": "wrong", **inputs}, "--measures"),
    ):
        with pytest.raises(ConfigError, match=says):
            EvalRun(**values).make(tmp_path / "m")
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"question": "Where was Eve born?", "answer": ["Harrow"]}) + "\n")
    with pytest.raises(MismatchError, match="'1' is 'Where was Eve born"):
        EvalRun(ranking=ranking, blocks=chain.blocks, questions=other).make(tmp_path / "m")
    blocks = make_blocks(tmp_path / "blocks", {"A": [["One [[town]]."]]})
    with pytest.raises(MismatchError, match="does not belong"):
        EvalRun(ranking=ranking, blocks=blocks, questions=chain.questions).make(tmp_path / "m")


def test_measures_are_checked_before_a_pipeline_begins(realmctl, tmp_path):
    (tmp_path / "one.txt").write_text("A text.")
    plan = "workspace: w\nstages:\n  blocks: {stage: chunk, corpus: one.txt, tokenizer: 'train:300'}\n"
    plan += "  scores: {stage: eval-run, qrels: one.txt, run-file: one.txt, measures: P@0}\n"
    (tmp_path / "plan.yaml").write_text(plan)
    code, _, err = realmctl("run", tmp_path / "plan.yaml")
    assert code == 2 and "cutoff is 0" in err and not (tmp_path / "w").exists()

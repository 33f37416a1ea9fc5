"""`--baseline` and `--floor` of all that measures, through the real commands: what is printed, exit codes, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from realmctl.artifacts import Artifact, Origin, open_artifact, writing
from realmctl.errors import ConfigError, QualityError, RealmctlError
from realmctl.extras.comparison.options import floors_of
from realmctl.extras.ir.rank import Rank
from realmctl.pipeline.planning import plan
from stages.eval_cloze import EvalCloze
from stages.eval_em import EvalEm
from tests.fixtures.chain import Chain
from tests.fixtures.retriever import make_retriever

ir_measures = pytest.importorskip("ir_measures")
QUERIES = 30
MEASURES = ("--measures", "RR@10 R@2")


def runs(worse: int = 12) -> None:
    """`good.trec` has the relevant document first; `bad.trec` has it second for `worse` queries."""
    for name, count in (("good.trec", 0), ("bad.trec", worse)):
        lines = []
        for query in range(QUERIES):
            first, second = ("x", "r") if query < count else ("r", "x")
            lines += [f"q{query} Q0 {first} 1 2 t\n", f"q{query} Q0 {second} 2 1 t\n"]
        Path(name).write_text("".join(lines))
    Path("qrels").write_text("".join(f"q{query} 0 r 1\n" for query in range(QUERIES)))


def measure(realmctl, run: str, *more: object, code: int = 0) -> tuple[str, str]:
    left, out, err = realmctl("eval-run", "--run-file", run, "--qrels", "qrels", *MEASURES, *more)
    assert left == code, err
    return out.strip(), err


def test_a_worse_search_fails_and_its_scores_are_kept(realmctl):
    """12 of 30 reciprocal ranks fall from 1 to a half: the difference is -0.2, and no interval of it holds 0."""
    runs()
    good, _ = measure(realmctl, "good.trec")
    out, err = measure(realmctl, "bad.trec", "--baseline", good, "--json", code=6)
    assert json.loads(out)["metrics"]["RR@10"] == 0.8 and "error: RR@10 is shown below" in err
    table = [line.split() for line in err.splitlines() if line.startswith(good)]
    assert table[0][1:5] == ["RR@10", "0.8000", "1.0000", "-0.2000"] and table[0][-3:] == ["0", "12", "18"]
    assert table[1][1:5] == ["R@2", "1.0000", "1.0000", "+0.0000"] and table[1][-3:] == ["0", "0", "30"]
    assert "lost most in RR@10: q0 -0.500" in err and "won most" not in err
    assert f"RR@10 is shown below {good}, by -0.2000 [" in err
    kept = open_artifact(Path(good).parent)
    assert kept.metrics["RR@10"] == 0.8 and f"kept in {kept.path}" in err
    _, again = measure(
        realmctl, "bad.trec", "--baseline", good, code=6
    )  # nothing is measured again, and it fails again
    assert "nothing to do" in again and "is shown below" in again
    measure(realmctl, "good.trec", "--baseline", kept.path)


def test_a_difference_that_is_not_shown_passes(realmctl):
    runs(worse=2)
    _, err = measure(realmctl, "bad.trec", "--baseline", "good.trec")
    assert "-0.0333" in err and "0.0000] " in err


def test_several_baselines_in_one_table_and_only_what_the_floor_names_is_judged(realmctl):
    runs()
    good, _ = measure(realmctl, "good.trec")
    made, err = measure(realmctl, "bad.trec", "--baseline", good, "--baseline", "good.trec", "--floor", "R@2=1")
    assert len([line for line in err.splitlines() if line.startswith((good, "good.trec"))]) == 4
    assert open_artifact(made).metrics["R@2"] == 1.0
    _, err = measure(realmctl, "bad.trec", "--floor", "R@2=1 RR@10=.81", code=6)
    assert "RR@10 is 0.8000, below its floor of 0.81" in err and "R@2 is" not in err
    measure(realmctl, "bad.trec", "--floor", "RR@10=.8")


def test_texts_of_queries_are_shown(realmctl, chain: Chain):
    """A ranking of the workspace knows its queries, and another ranking is measured by the same answers."""
    inputs = {"blocks": chain.blocks, "queries": chain.questions}
    one = Rank(method="bm25", top=20, **inputs).make(Path("bm25"))
    two = Rank(retriever=chain.retriever, index=chain.index, top=20, **inputs).make(Path("dense"))
    given = ("eval-run", "--blocks", chain.blocks.path, "--questions", chain.questions)
    _, _, err = realmctl(*given, "--ranking", two.path, "--baseline", one.path)
    assert re.search(r'(lost|won) most in Success@1: \d+ "W[^"]*\?" [-+]1.000', err), err
    told = [line.split()[1:] for line in err.splitlines() if line.startswith(str(one.path))]
    _, scores, _ = realmctl(*given, "--ranking", one.path)
    _, _, again = realmctl(*given, "--ranking", two.path, "--baseline", scores.strip())
    assert [line.split()[1:] for line in again.splitlines() if line.startswith(scores.strip())] == told
    code, _, err = realmctl(*given, "--ranking", two.path, "--baseline", one.file("run.trec"))
    assert code == 2 and "name a ranking" in err


def test_exact_match_and_recall_of_each_question(realmctl, chain: Chain, qa_model: Artifact, tmp_path):
    """per-query.jsonl has the means that `eval-em` prints, and a search that finds less is told by its questions."""
    made = EvalEm(qa_model=qa_model, blocks=chain.blocks, questions=chain.questions, hits=5).make(tmp_path / "em")
    lines = [json.loads(line) for line in made.file("per-query.jsonl").read_text().splitlines()]
    for name in {name for line in lines for name in line} - {"query", "text"}:
        assert np.mean([line[name] for line in lines]) == pytest.approx(made.metrics[name], abs=1e-6)
    assert {"em", "f1", "recall@1", "recall@5"} < lines[0].keys() and lines[0]["text"].endswith("?")
    recall = EvalEm(retrieval="bm25", blocks=chain.blocks, questions=chain.questions, hits=5).make(tmp_path / "recall")
    given = ("--blocks", chain.blocks.path, "--questions", chain.questions, "--hits", 5)
    code, _, err = realmctl("eval-em", "--qa-model", qa_model.path, *given, "--baseline", recall.path)
    assert code == 2 and f"--baseline {recall.path} does not measure em" in err
    code, _, err = realmctl(
        "eval-em", "--qa-model", qa_model.path, *given, "--baseline", recall.path, "--floor", "recall@5=0"
    )
    assert (code == 6) == ("is shown below" in err) and f"{recall.path}  recall@5" in err
    code, out, err = realmctl("eval-em", "--qa-model", qa_model.path, *given, "--floor", "em=1.01", "--json")
    assert code == 6 and "below its floor of 1.01" in err
    told = json.loads(out)  # a CI job reads the scores that failed
    assert told["metrics"] == made.metrics and f"kept in {told['path']}" in err


def test_cloze_recall_of_other_sentences_or_passages_is_no_baseline(chain: Chain, tmp_path):
    inputs = {"blocks": chain.blocks, "sentences": 12, "precision": "fp32"}
    first = EvalCloze(retriever=chain.retriever, **inputs).make(tmp_path / "first")
    lines = [json.loads(line) for line in first.file("per-query.jsonl").read_text().splitlines()]
    assert np.mean([line["cloze_rr"] for line in lines]) == pytest.approx(first.metrics["cloze_rr"], abs=1e-6)
    assert np.mean([line["cloze_recall@5"] for line in lines]) == pytest.approx(first.metrics["cloze_recall@5"])
    other = make_retriever(tmp_path / "other", chain.blocks, seed=5)
    beside = {"baseline": (first.path,), "retriever": other}
    with pytest.raises(QualityError, match=r"cloze_rr is .*below its floor of 2"):
        EvalCloze(**beside, floor=("cloze_rr=2",), **inputs).make(tmp_path / "second")
    assert [*(tmp_path / "second").glob("v1")]
    for changed, says in (({"seed": 1}, "the same queries"), ({"among": 20}, "other among")):
        with pytest.raises(Exception, match=says) as raised:
            EvalCloze(**beside, **inputs | changed).make(tmp_path / "changed")
        assert raised.value.exit_code == 4


def test_collections_are_compared_within_each(realmctl, chain: Chain, tmp_path):
    for name, shift in (("one", 0), ("two", 6)):
        folder = tmp_path / "sets" / name
        (folder / "qrels").mkdir(parents=True)
        texts = {f"d{row}": f"word{row} name{row + shift} thing{row}" for row in range(12)}
        (folder / "corpus.jsonl").write_text(
            "".join(json.dumps({"_id": id, "title": "", "text": text}) + "\n" for id, text in texts.items())
        )
        asked = {f"q{row}": f"word{row} thing{(row + 1) % 12}" for row in range(12)}
        (folder / "queries.jsonl").write_text(
            "".join(json.dumps({"_id": id, "text": text}) + "\n" for id, text in asked.items())
        )
        judged = "".join(f"q{row}\td{row}\t1\n" for row in range(12))
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    given = ("eval-beir", tmp_path / "sets", "--measures", "RR@10", "--retriever", chain.retriever.path)
    code, out, err = realmctl(*given, "--method", "bm25", "--json")
    assert code == 0, err
    first = json.loads(out)
    code, _, err = realmctl(*given, "--baseline", first["path"], "--floor", "RR@10=0.0")
    assert (code == 6) == ("is shown below" in err) and code in (0, 6), err
    line = next(line.split() for line in err.splitlines() if line.startswith(first["path"]))
    assert line[1] == "RR@10" and float(line[3]) == pytest.approx(first["mean"]["RR@10"], abs=1e-4)
    assert sum(map(int, line[-3:])) == 24
    code, _, err = realmctl(*given, "--floor", "nDCG@10=1")
    assert code == 2 and "Name one of RR@10" in err
    code, _, err = realmctl("eval-beir", tmp_path / "sets" / "one", *given[2:], "--baseline", first["path"])
    assert code == 4 and "other qrels" in err


def test_a_series_stands_for_its_newest_version_before_this_run(realmctl):
    """New scores, scores that are found, and scores that are found and become the newest again: the one before is the baseline."""
    runs()
    good, _ = measure(realmctl, "good.trec")
    series = Path(good).parent
    for _ in range(2):
        _, err = measure(realmctl, "bad.trec", "--baseline", series, code=6)
        assert f"RR@10 is shown below {good}, by -0.2000" in err
    _, err = measure(realmctl, "good.trec", "--baseline", series)
    assert "is the newest again" in err and f"{series / 'v2'}  RR@10    1.0000" in err
    measure(realmctl, "bad.trec", "--baseline", series, code=6)
    realmctl("pin", series / "v2")
    _, err = measure(realmctl, "good.trec", "--baseline", series)
    assert f"{series / 'v2'}  RR@10    1.0000    0.8000" in err
    _, err = measure(realmctl, "bad.trec", "--baseline", series)
    assert "is of this run itself, so it cannot show a loss" in err


def test_scores_or_a_ranking_alone_in_their_series_are_compared_with_themselves_and_that_is_said(
    realmctl, chain: Chain
):
    runs()
    good, _ = measure(realmctl, "good.trec")
    _, err = measure(realmctl, "good.trec", "--baseline", Path(good).parent)
    assert "is of this run itself" in err
    inputs = {"blocks": chain.blocks, "queries": chain.questions, "method": "bm25"}
    one = Rank(top=20, **inputs).make(Path("ranking"))
    given = ("eval-run", "--blocks", chain.blocks.path, "--questions", chain.questions, "--baseline", "ranking")
    _, _, err = realmctl(*given, "--ranking", "ranking")
    assert f"--baseline {Path('ranking/v1')} is of this run itself" in err
    two = Rank(top=10, **inputs).make(Path("ranking"))
    code, _, err = realmctl(*given, "--ranking", two.path)
    assert code == 0 and "itself" not in err and re.search(rf"^{one.path} +Success@1 ", err, re.M), err


def test_what_cannot_be_compared_is_known_before_anything_is_measured(realmctl, chain: Chain, tmp_path, monkeypatch):
    """Of eval-em, whose run may take hours: no version is made."""
    inputs = {"retrieval": "bm25", "blocks": chain.blocks, "hits": 5}
    first = EvalEm(questions=chain.questions, **inputs).make(tmp_path / "scores")
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_text("".join(chain.questions.read_text().splitlines(keepends=True)[1:]))
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(EvalEm, "run", lambda *_: pytest.fail("it was measured"))
    for baseline, questions, code in (
        (first.path, fewer, 4),
        (chain.blocks.path, chain.questions, 4),
        (tmp_path / "empty", chain.questions, 3),
        (chain.questions, chain.questions, 3),
    ):
        stage = EvalEm(questions=questions, baseline=(baseline,), limit=3, **inputs)
        with pytest.raises(RealmctlError) as raised:
            stage.make(tmp_path / "other")
        assert raised.value.exit_code == code and str(baseline) in str(raised.value)
        with pytest.raises(RealmctlError):
            plan(stage, tmp_path / "other")
    for unknown in ("recall@7", "recall@20", "em", "em_dpr"):  # of a search alone, five hits deep
        with pytest.raises(ConfigError, match=f"{unknown!r} is not measured. Name one of recall@1, recall@5, sub"):
            EvalEm(questions=chain.questions, floor=(f"{unknown}=0",), **inputs).make(tmp_path / "other")
    assert not [*(tmp_path / "other").glob("v*")]


def test_a_baseline_of_a_pipeline_file_that_is_not_there_is_known_before_any_stage_runs(realmctl, chain: Chain):
    Path("search.yaml").write_text(
        "stages:\n"
        f"  ranking: {{stage: rank, method: bm25, blocks: {chain.blocks.path}, queries: {chain.questions}}}\n"
        f"  scores: {{stage: eval-run, questions: {chain.questions}, blocks: {chain.blocks.path}, baseline: [kept]}}\n"
    )
    code, _, err = realmctl("run", "search.yaml")
    assert code == 3 and "search.yaml:3: scores.baseline kept: there is nothing" in err, err
    assert not Path("artifacts").exists()


def test_a_ranking_of_other_queries_is_no_baseline_and_queries_without_hits_are_counted(
    realmctl, chain: Chain, tmp_path
):
    lines = chain.questions.read_text().splitlines(keepends=True)
    Path("fewer.jsonl").write_text("".join(lines[:-1]))
    Path("reworded.jsonl").write_text("".join([lines[0].replace("Where", "In which place"), *lines[1:]]))
    inputs = {"blocks": chain.blocks, "method": "bm25", "top": 5}
    whole, fewer, reworded = (
        Rank(queries=path, **inputs).make(tmp_path / "ranking")
        for path in (chain.questions, Path("fewer.jsonl"), Path("reworded.jsonl"))
    )
    found = [line.split() for line in whole.file("run.trec").read_text().splitlines()]
    Path("judged").write_text("".join(f"{query} 0 {name} 1\n" for query, _, name, rank, *_ in found if rank == "1"))
    given = ("eval-run", "--qrels", "judged", "--ranking", whole.path)
    for other in (fewer, reworded):
        code, _, err = realmctl(*given, "--baseline", other.path)
        assert code == 4 and f"--baseline {other.path} was asked" in err and "Rank the same queries" in err, err
    assert realmctl(*given, "--baseline", whole.path)[0] == 0
    runs()
    half = "".join(Path("good.trec").read_text().splitlines(keepends=True)[:QUERIES])
    Path("half.trec").write_text(half)
    _, err = measure(realmctl, "half.trec", code=0)
    assert f"half.trec: {QUERIES // 2} of {QUERIES} judged queries have no hits, such as 'q15'. They count as 0" in err
    _, err = measure(realmctl, "good.trec", "--baseline", "half.trec")
    assert f"half.trec: {QUERIES // 2} of {QUERIES} judged queries have no hits" in err
    _, err = measure(realmctl, "good.trec", "--baseline", "bad.trec")
    assert "no hits" not in err


def test_a_floor_of_what_the_options_do_not_measure_is_refused_before_any_work(realmctl, chain: Chain, monkeypatch):
    monkeypatch.setattr(EvalCloze, "run", lambda *_: pytest.fail("it was measured"))
    given = ("eval-cloze", "--blocks", chain.blocks.path, "--sentences", 5)
    for more, floor in (
        (("--method", "bm25"), "gain=.01"),
        (("--retriever", chain.retriever.path), "title_rr=.1"),
        (("--retriever", chain.retriever.path, "--titles", 5), "title_gain=.1"),
    ):
        code, _, err = realmctl(*given, *more, "--floor", floor)
        assert code == 2 and "is not measured. Name one of cloze_recall@1" in err, err
    started = ("--retriever", chain.retriever.path, "--start", chain.retriever.path)
    code, _, err = realmctl(*given, *started, "--floor", "gain_lowest=.1")
    assert code == 2 and err.rstrip().endswith("cloze_rr, gain, gain_low, gain_high."), err


def test_what_cannot_be_compared_is_refused_by_name(realmctl, chain: Chain):
    runs()
    good, _ = measure(realmctl, "good.trec")
    _, err = measure(realmctl, "bad.trec", "--baseline", "nowhere", code=3)
    assert "--baseline nowhere" in err
    _, err = measure(realmctl, "bad.trec", "--floor", "rr=.5", code=2)
    assert "'rr' is not measured. Name one of RR@10, R@2" in err
    _, err = measure(realmctl, "bad.trec", "--baseline", chain.blocks.path, code=4)
    assert f"--baseline {chain.blocks.path} is of kind blocks, but ranking-scores is needed" in err
    Path("qrels").write_text("q0 0 r 1\nq1 0 r 1\n")
    _, err = measure(realmctl, "bad.trec", "--baseline", good, code=4)
    assert "other qrels" in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (None, "has no scores of single queries"),
        ('{"query": "q0", "RR@10": 1}\n' * 2, "2: not the measures of a query"),
        ('{"query": "q0", "RR@10": NaN}\n', "1: not the measures of a query"),
        ('{"query": "q0", "RR@10": "1"}\n', "1: not the measures of a query"),
        ("[" * 100_000 + "\n", "1: not the measures of a query"),
        ("[]\n", "1: not the measures of a query"),
        ("", "has 0 queries and this run 30"),
    ],
)
def test_scores_that_a_stranger_wrote(realmctl, line, says):
    runs()
    good, _ = measure(realmctl, "good.trec")
    known = open_artifact(good).manifest
    with writing(Path("theirs"), Origin(known.kind, known.stage, 1, known.settings, known.inputs)) as out:
        if line is not None:
            out.file("per-query.jsonl").write_text(line)
        (out.path / "x").write_text("x")
    _, err = measure(realmctl, "bad.trec", "--baseline", "theirs", code=4 if line == "" else 3)
    assert says in err


@pytest.mark.parametrize("text", ["nDCG@10", "=1", "nDCG@10=", "nDCG@10=much", "nDCG@10=nan", "a=1 a=2", ""])
def test_a_floor_is_a_measure_and_a_number(text):
    with pytest.raises(ConfigError, match="--floor"):
        floors_of([text])
    assert floors_of(["P(rel=2)@5=.25", "a=1 b=-2"]) == {"P(rel=2)@5": 0.25, "a": 1.0, "b": -2.0}

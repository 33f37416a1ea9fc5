"""The measures against their formulas, and queries without a ranking."""

from __future__ import annotations

import math
import re
import shutil
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.artifacts import Origin, Writer
from realmctl.errors import ConfigError, InputError
from realmctl.extras.ir.ranking import measures as module
from realmctl.extras.ir.ranking.measures import judged_rankings, measure_run, measured, parsed, without_ties

pytest.importorskip("ir_measures")
DOCUMENTS = [f"d{number}" for number in range(8)]
NAMES = "nDCG@3 AP RR@3 R@3 Success@1"


def by_formula(relevance: dict[str, int], ranked: list[str]) -> dict[str, float]:
    """Jarvelin and Kekalainen's nDCG with linear gain, average precision, reciprocal rank and recall."""

    def dcg(gains: list[int]) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:3], 1))

    gains = [relevance.get(name, 0) for name in ranked]
    relevant, ideal = sum(gain > 0 for gain in relevance.values()), dcg(sorted(relevance.values(), reverse=True))
    hits = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
    return {
        "nDCG@3": dcg(gains) / ideal if ideal else 0.0,
        "AP": sum(number / rank for number, rank in enumerate(hits, 1)) / relevant if relevant else 0.0,
        "RR@3": 1 / hits[0] if hits and hits[0] <= 3 else 0.0,
        "R@3": sum(rank <= 3 for rank in hits) / relevant if relevant else 0.0,
        "Success@1": float(hits[:1] == [1]),
    }


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1),
    st.permutations(DOCUMENTS),
    st.integers(0, 8),
)
def test_each_measure_is_its_formula(relevance, order, count):
    ranked = order[:count]
    scores = {name: float(-place) for place, name in enumerate(ranked)}
    [(query, values)] = measured(parsed(NAMES), {"q": relevance}, [("q", scores)])
    assert query == "q" and values == pytest.approx(by_formula(relevance, ranked), abs=1e-6)


@pytest.mark.parametrize("scores", [(1.0, 1.0), (1.00000001, 1.0), (1e39, 1e38 * 9), (3.0, 3.0)])
@pytest.mark.parametrize("relevant", ["a", "b"])
@pytest.mark.parametrize("names", ["ab", "ba"])
def test_every_measure_breaks_ties_as_trec_eval_does(scores, relevant, names):
    """The greater id is first. trec_eval keeps scores in float32, so what is equal there is a tie."""
    judged = {name: int(name == relevant) for name in "ab"}
    run = {name: scores["ab".index(name)] for name in names}
    measures = "RR RR@10 RR@1 RR@2 AP AP@10 nDCG@1 P@1 R@1 Success@1 Rprec Bpref Accuracy Compat(p=0.8)"
    [(_, values)] = measured(parsed(measures), {"q": judged}, [("q", run)])
    [(_, untied)] = measured(parsed(measures), {"q": judged}, [("q", {"b": 2.0, "a": 1.0})])
    assert values == untied
    assert values["RR"] == values["RR@10"] == values["RR@2"] == values["AP"] == (1.0 if relevant == "b" else 0.5)
    assert values["RR@1"] == values["P@1"] == values["nDCG@1"] == values["Accuracy"] == float(relevant == "b")


IDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(IDS, st.sampled_from([0.0, 1.0, 1 + 2**-30, 2.0]), min_size=1))
def test_ties_are_broken_as_by_trec_eval_itself(scores):
    """Each document in turn is the one that is relevant, so trec_eval's reciprocal ranks are the order."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    evaluator = pytrec_eval.RelevanceEvaluator({name: {name: 1} for name in scores}, {"recip_rank"})
    found = evaluator.evaluate(dict.fromkeys(scores, scores))
    order = sorted(scores, key=lambda name: -found[name]["recip_rank"])
    assert order == list(without_ties(scores))


def test_every_judged_query_counts_once(monkeypatch):
    monkeypatch.setattr(module, "QUERIES_AT_ONCE", 2)
    relevance = {f"q{number}": {"d": 1} for number in range(5)} | {"empty": {}}
    rankings = [(f"q{number}", {"d": 1.0}) for number in (3, 0, 1)] + [("unjudged", {"d": 1.0}), ("empty", {"d": 1.0})]
    found = dict(measured(parsed("RR@10, nDCG@10"), relevance, rankings))
    assert {name: values["RR@10"] for name, values in found.items()} == {
        "q0": 1,
        "q1": 1,
        "q2": 0,
        "q3": 1,
        "q4": 0,
        "empty": 0,
    }


def test_other_ids_are_an_error():
    with pytest.raises(InputError):
        list(measured(parsed("AP"), {"a": {"d": 1}}, [("b", {"d": 1.0})]))


@pytest.mark.parametrize(
    "names", ["", " , ", "wrong@3", "nDCG@x", "__import__('os')", "alpha_nDCG@10", "INST", "SDCG@1", "BPM", "AP INST"]
)
def test_measures_that_are_refused(names):
    with pytest.raises(ConfigError, match="--measures"):
        parsed(names)


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ("P@0", "cutoff is 0, and goes from 1 to 1,000,000"),  # at which trec_eval ends the process
        ("AP nDCG@1000001", "cutoff is 1000001"),
        ("Success@9999999999999999999999", "cutoff"),
        ("AP(rel=1001)", "rel is 1001, and goes from 0 to 1,000"),
        ("NumRet(rel=99999999999)", "rel"),
        ("nDCG(gains={1:99999999999})@10", "the gain of 1"),
        ("nDCG(gains={99999999999:1})@10", "rel is 99999999999"),
        ("SetF(beta=1e99)", "beta"),
    ],
)
def test_numbers_in_measures_have_ranges(names, what):
    """Most of these would end the process where they are computed, so that no library sees them."""
    with pytest.raises(ConfigError, match="--measures") as told:
        parsed(names)
    assert what in str(told.value)


def test_numbers_at_the_ends_of_their_ranges_are_computed():
    names = "P@1 P@1000000 nDCG@1000000 AP(rel=1000) RR(rel=1000)@10"
    judged = {"a": 1000, "b": -1000}
    [(_, values)] = measured(parsed(names), {"q": judged}, [("q", {"a": 2.0, "b": 1.0})])
    assert values == pytest.approx(
        {
            "P@1": 1.0,
            "P@1000000": 1e-6,
            "nDCG@1000000": 1.0,
            "AP(rel=1000)": 1.0,
            "RR(rel=1000)@10": 1.0,
        }
    )


@pytest.mark.parametrize("name", ["Judged@10", "Compat", "Accuracy"])
def test_a_measure_that_a_query_leaves_undefined_is_0_there(name):
    """A ranking without documents, and a query without a relevant one."""
    judged = {"q": {"a": 1, "b": 0}, "missing": {"a": 1}, "nothing": {"a": 0}}
    found = dict(measured(parsed(name), judged, [("q", {"a": 2.0, "b": 1.0}), ("nothing", {"c": 1.0})]))
    assert found["q"][name] == 1.0 and found["missing"][name] == found["nothing"][name] == 0.0


def test_a_document_with_the_id_of_its_query_is_left_out_unless_it_is_relevant(tmp_path):
    out = Writer(tmp_path, Origin("scores", "eval-run", 1, {}, {}))
    (tmp_path / "run").write_text("a Q0 a 1 3 x\na Q0 b 2 2 x\nc Q0 c 1 2 x\nc Q0 b 2 1 x\n")
    (tmp_path / "qrels").write_text("a 0 b 1\nc 0 c 1\n")
    measured = [
        measure_run("RR", *judged_rankings(tmp_path / "run", tmp_path / "qrels", each), out)["RR"]
        for each in (False, True)
    ]
    assert measured == [0.75, 1.0]


@pytest.mark.skipif(shutil.which("perl") is None, reason="the script of gdeval is Perl")
def test_measures_of_gdevals_script_take_queries_of_any_name():
    """ERR (Chapelle et al. 2009) with 4 as the highest grade, to the script's five digits: its topics are whole numbers."""
    judged = {"who?": {"a": 3, "b": 0, "c": 1}, "051": {"d": 1}, "nothing found": {"a": 1}}
    run = [("who?", {"b": 3.0, "a": 2.0, "c": 1.0}), ("051", {"d": 1.0})]
    found = {query: values["ERR@10"] for query, values in measured(parsed("ERR@10"), judged, run)}
    stops = {grade: (2**grade - 1) / 16 for grade in (1, 3)}
    expected = stops[3] / 2 + (1 - stops[3]) * stops[1] / 3
    assert found == pytest.approx({"who?": expected, "051": stops[1], "nothing found": 0.0}, abs=1e-5)
    assert parsed("nDCG(dcg='exp-log2')@10 AP")


@pytest.mark.parametrize(
    ("ranked", "judged", "told"),
    [("51", "051", "zeros before"), ("051", "51", "zeros before"), ("q1", "q2", "the run has 'q1'")],
)
def test_queries_of_other_ids_are_blamed_and_not_the_documents(ranked, judged, told):
    with pytest.raises(InputError, match=f"ids of the queries.*{re.escape(ranked)}.*{re.escape(judged)}") as error:
        list(module.require_judged({judged: {"d": 1}}, [(ranked, {"d": 1.0})]))
    assert told in str(error.value)


@pytest.mark.parametrize(
    "name",
    ["nDCG@10", "AP", "P(rel=2)@5", "nDCG(dcg='exp-log2')@20", "IPrec@0.1", "nDCG(gains={1:2})@3"],
)
def test_a_name_is_what_ir_measures_makes_of_it(name):
    """It parses names itself where Python has no `ast.Num`, so up to 3.13."""
    import ir_measures

    [found] = parsed(name)
    assert name.partition("@")[0].partition("(")[0] == found.NAME
    if sys.version_info < (3, 14):
        assert found == ir_measures.parse_measure(name)


@pytest.mark.parametrize("name", ["P(2)@5", "P(**{'rel': 2})@5", "P(rel=open('x'))@5", "P@5@6", "P(rel=1)(rel=2)"])
def test_what_is_no_name_of_a_measure_is_refused(name):
    with pytest.raises(ConfigError, match="--measures"):
        parsed(name)

"""TREC runs and qrels: what is written is read back, and keeps its order in tools that sort by score."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from realmctl.errors import InputError
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.trec import TrecNames, falling, qrels_lines, read_run, run_lines, trec_name, trec_named

FLOATS = st.floats(-100, 100, width=32)


@given(arrays(np.float32, st.integers(0, 30), elements=FLOATS))
@settings(max_examples=50, deadline=None)
def test_scores_fall_strictly_by_the_smallest_steps(scores):
    ordered = -np.sort(-scores)
    made = falling(ordered)
    assert (np.diff(made) < 0).all() and (made <= ordered).all()
    for place in range(1, len(made)):
        assert made[place] in (ordered[place], np.nextafter(made[place - 1], np.float32(-np.inf)))
    if (np.diff(ordered) < 0).all():
        assert made.tolist() == ordered.tolist()


@settings(max_examples=30, deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=8), st.text("a b\t%é", min_size=1, max_size=5))
def test_a_run_is_read_back_in_its_order(tmp_path_factory, scores, query):
    path = tmp_path_factory.mktemp("run") / "run"
    names = [f"d {number}" for number in range(len(scores))]
    ordered = -np.sort(-np.array(scores, np.float32))
    path.write_text("".join(run_lines(query, names, ordered, "tag")), encoding="utf-8")
    [(asked, found)] = read_run(path)
    assert asked == trec_name(query) and sorted(found, key=lambda name: -found[name]) == [*map(trec_name, names)]
    assert np.array([*found.values()], np.float32).tolist() == falling(ordered).tolist()


def test_a_line_of_a_run():
    assert list(run_lines("q 1", ["d", "e"], np.array([1.5, 1.5], np.float32), "t")) == [
        "q%201 Q0 d 1 1.5 t\n",
        "q%201 Q0 e 2 1.49999988 t\n",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1 Q0 d 1 1.5\n", "run:1: "),
        ("1 Q0 d 1 high t\n", "run:1: "),
        ("1 Q0 d 1 nan t\n", "run:1: "),
        ("1 Q0 d 1 2 t\n1 Q0 d 2 1 t\n", "run:2: d "),
        ("1 Q0 d 1 2 t\n2 Q0 d 1 2 t\n1 Q0 e 2 1 t\n", "run:3: .*1"),
    ],
)
def test_runs_that_are_refused(tmp_path, content, says):
    (tmp_path / "run").write_text(content)
    with pytest.raises(InputError, match=says):
        list(read_run(tmp_path / "run"))


def test_qrels_are_written_as_they_are_read(tmp_path):
    judged = {"q 1": {"d1": 2, "d 2": 0}, "q2": {}, "q3": {"d1": 1}}
    (tmp_path / "qrels").write_text("".join(qrels_lines(judged)))
    assert read_qrels(tmp_path / "qrels") == {"q%201": {"d1": 2, "d%202": 0}, "q3": {"d1": 1}}


def test_two_ids_that_would_be_one_are_refused():
    names = TrecNames()
    assert [names(name) for name in ("a b", "c%20d", "a b", "e")] == ["a%20b", "c%20d", "a%20b", "e"]
    with pytest.raises(InputError, match="'a b' and 'a%20b' are one id"):
        names("a%20b")
    with pytest.raises(InputError, match="one id"):
        trec_named({"q": {"a b": 1}, "r": {"a%20b": 0}})


@pytest.mark.parametrize("indent", [None, 2])
def test_a_run_of_beir_or_ranx_is_read(tmp_path, indent):
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps({"q 1": {"a b": 2, "c": 1.5}, "q2": {}, "q3": {"c": -1e-3}}, indent=indent), encoding="utf-8"
    )
    assert dict(read_run(path)) == {"q%201": {"a%20b": 2, "c": 1.5}, "q3": {"c": -1e-3}}


@pytest.mark.parametrize(
    "text",
    [
        '{"q": {"d": 1}, "r": {"d": "x"}}',
        '{"q": {"d": 1}, "r": 1}',
        '{"q": {"d": 1}',
        '{"q": {"d": NaN}}',
        '{"q": {"d": 1}, "r": {"d": [1]}}',
    ],
)
def test_other_json_is_no_run(tmp_path, text):
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"run\.json"):
        dict(read_run(tmp_path / "run.json"))

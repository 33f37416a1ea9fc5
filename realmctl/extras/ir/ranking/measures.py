"""Measures of rankings, computed by the package ir-measures (extra `ir`).

Rankings are measured a few hundred queries at a time, so a long run needs little memory.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError, InputError, as_realmctl_error, require_package
from realmctl.extras.ir.ranking.beir import qrels_file
from realmctl.extras.ir.ranking.qrels import MAX_GRADE, read_qrels
from realmctl.extras.ir.ranking.trec import Relevance, read_run, trec_named
from realmctl.log import warn
from realmctl.questions.per_query import PER_QUERY, PerQuery

QUERIES_AT_ONCE = 512
MEASURE = re.compile(r"(?P<name>\w+)(?:\((?P<parameters>.*)\))?(?:@(?P<cutoff>[-+]?\d{1,99}(?:\.\d{1,20})?))?")
MAX_CUTOFF = 10**6
"""Greatest number behind an @. The programs behind ir-measures end the process at a number that they cannot hold, or at 0."""
GRADES = frozenset({"rel", "min_rel", "max_rel"})
"""Parameters of measures that are judgements; all others but the cut-off are weights and shares."""
MAX_WEIGHT = 1000
UNDEFINED = 0.0
"""The value of a measure of a query for which its formula divides by 0, or which its package leaves out."""
Ranking = tuple[str, Mapping[str, float]]
NOTHING_RELEVANT = {"-": 0}
"""Judgements of a query without any. ir-measures leaves out a query with none."""
QueryMeasures = tuple[str, Mapping[str, float]]


def parsed(names: str) -> list[object]:
    """Return the measures of ir-measures with these names, such as "nDCG@10 AP", separated by spaces or commas.

    Raises:
        ConfigError: a name is unknown, lacks a parameter or cannot be computed here, or there is none.
        ResourceError: ir-measures is not installed.
    """
    require_package("ir_measures", "ir", "eval-run")
    import ir_measures

    words = names.replace(",", " ").split()
    if not words:
        raise ConfigError("--measures names no measure. Use names such as nDCG@10, AP, RR@10 and R@100.")
    try:
        measures = [_measure(word) for word in words]
        for measure in measures:
            _require_ranges(measure.params)
        if unusable := [str(each) for each in measures if not ir_measures.DefaultPipeline.supports(each)]:
            raise ValueError(f"no installed package computes {', '.join(unusable)}")
        for measure in measures:  # some are known and fail, such as INST, which lacks a parameter
            list(_of_batch([measure], {"q": {"a": 1, "b": 0}}, {"q": {"a": 2.0, "b": 1.0}}))
    except Exception as error:  # of ir-measures and of the packages behind it
        if (known := as_realmctl_error(error)) is not None:
            raise known from None
        raise ConfigError(
            f"--measures {names!r}: {str(error).removesuffix('.')}. Use names of ir-measures such as nDCG@10, AP, RR@10, R@100 and Success@5."
        ) from None
    return measures


def _measure(name: str) -> Any:
    """Return the measure of ir-measures that is written `NAME@10` or `NAME(parameter=2)@10`. Its own `parse_measure` fails on Python 3.14.

    Raises ValueError for what is written otherwise, and for an unknown name.
    """
    from ir_measures import measures

    match = MEASURE.fullmatch(name)
    if match is None or match["name"] not in measures.registry:
        raise ValueError(f"measure not found: {name[:80]}")
    kind = measures.registry[match["name"]]
    call = ast.parse(f"f({match['parameters'] or ''})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or not all(each.arg for each in call.keywords):
        raise ValueError(f"{name[:80]}: parameters are written name=value")
    found = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    cutoff = {kind.AT_PARAM: ast.literal_eval(match["cutoff"])} if match["cutoff"] else {}
    return kind(**found, **cutoff)


def _require_ranges(parameters: Mapping[str, object]) -> None:
    """Raise ValueError for a number of a measure that is out of its range."""
    for name, value in parameters.items():
        if isinstance(value, Mapping):  # the gains of grades
            for grade, gain in value.items():
                _require_ranges({"rel": grade, f"the gain of {grade}": gain})
        elif isinstance(value, int | float) and not isinstance(value, bool):
            least, most = (1, MAX_CUTOFF) if name == "cutoff" else (0, MAX_GRADE) if name in GRADES else (0, MAX_WEIGHT)
            if not least <= value <= most:
                raise ValueError(f"{name} is {str(value)[:40]}, and goes from {least} to {most:,.0f}")


def judged_rankings(run: Path, qrels: Path, without_same_id: bool = False) -> tuple[Relevance, Iterable[Ranking]]:
    """Return the judgements of a file, or of a BEIR folder, whose split test is taken, and the rankings of a run.

    without_same_id: leave out a document with the id of its query, unless it is judged relevant, which BEIR leaves out too.
    """
    relevance = trec_named(read_qrels(qrels_file(qrels, "test")))
    rankings = read_run(run)
    if without_same_id:
        rankings = (
            (
                query,
                {
                    name: score
                    for name, score in found.items()
                    if name != query or relevance.get(query, {}).get(name, 0) > 0
                },
            )
            for query, found in rankings
        )
    return relevance, rankings


def measure_run(
    names: str,
    relevance: Relevance,
    rankings: Iterable[Ranking],
    out: Writer,
    texts: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Write the measures of each judged query (per-query.jsonl) and their means (measures.json), and return the means.

    Args:
        names: measures by their names in ir-measures.
        relevance: judgements of the documents of each query.
        rankings: queries with the scores of what was found for them.
        out: the folder to write to.
        texts: texts of queries, as far as they are known.

    Raises:
        ConfigError: a measure is unknown.
        InputError: nothing that was ranked is judged.
    """
    count = 0
    with out.file(PER_QUERY).open("w", encoding="utf-8") as file:
        lines = PerQuery(file)
        for query, values in measured(parsed(names), relevance, require_judged(relevance, rankings)):
            lines.add(query, values, (texts or {}).get(query, ""))
            count += 1
    scores = {**lines.means(), "queries": count}
    out.file("measures.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")
    return scores


def measured(measures: list[object], relevance: Relevance, rankings: Iterable[Ranking]) -> Iterator[QueryMeasures]:
    """Yield the measures of each judged query. A judged query without a ranking has the measures of an empty one.

    Of equal scores, the greater document id is ranked first, for every measure: trec_eval's rule.

    Args:
        measures: from `parsed`.
        relevance: judgements of the documents of each query.
        rankings: queries with the scores of what was found for them; queries that are not judged are left out.

    Raises:
        InputError: no ranked query is judged.
    """
    rest, judged = set(relevance), (ranking for ranking in rankings if ranking[0] in relevance)
    while batch := dict(islice(judged, QUERIES_AT_ONCE)):
        rest -= batch.keys()
        yield from _of_batch(measures, relevance, batch)
    if len(rest) == len(relevance):
        raise _other_queries("", next(iter(relevance)))
    missing = iter(sorted(rest))
    while names := list(islice(missing, QUERIES_AT_ONCE)):
        yield from _of_batch(measures, relevance, {name: {} for name in names})


def require_judged(relevance: Relevance, rankings: Iterable[Ranking]) -> Iterator[Ranking]:
    """Yield the rankings. Raises InputError at their end if nothing that they hold is judged: then ids differ."""
    example, asked, known, judged = "", "", False, False
    for query, found in rankings:
        asked, known = asked or query, known or query in relevance
        example = example or next(iter(found), "")
        judged = judged or not found.keys().isdisjoint(relevance.get(query, ()))
        yield query, found
    if asked and not known and relevance:
        raise _other_queries(asked, next(iter(relevance)))
    theirs = next((name for documents in relevance.values() for name in documents), "")
    if example and not judged:
        raise InputError(
            f"Nothing that was ranked is judged: the run names {example!r}, and the judgements name {theirs!r}. Where judgements "
            "name documents and the ranking names blocks, rank documents: realmctl rank --unit document."
        )


def with_missing_told(relevance: Relevance, rankings: Iterable[Ranking], what: object) -> Iterator[Ranking]:
    """Yield the rankings, and warn at their end where judged queries have none, since these count as 0. what: where the rankings are from."""
    rest = {*relevance}
    for query, found in rankings:
        if found:
            rest.discard(query)
        yield query, found
    if 0 < len(rest) < len(relevance):
        warn(
            f"{what}: {len(rest):,} of {len(relevance):,} judged queries have no hits, such as {min(rest)!r}. They count as 0"
        )


def _other_queries(ranked: str, judged: str) -> InputError:
    """Ids of queries differ: one of the run, which may be unknown, and one of the judgements."""
    ours = f"the run has {ranked!r}, and " if ranked else ""
    zeros = ""
    if ranked != judged and ranked.isdigit() and judged.isdigit() and (ranked[:1] == "0") != (judged[:1] == "0"):
        zeros = " One of the two files writes zeros before its numbers: write them alike."
    return InputError(
        "None of the ranked queries is judged. The ids of the queries in the run and in the judgements differ: "
        f"{ours}the judgements have {judged!r}.{zeros} Name the judgements of these queries."
    )


def without_ties(scores: Mapping[str, float]) -> dict[str, float]:
    """Return scores that fall by 1 from rank to rank, in trec_eval's order: by the score in float32, then by the id, both falling.

    The packages behind ir-measures break ties in different ways: by rising ids (MS MARCO's, which computes RR@10), by falling ids
    (trec_eval's), or by the order of the run. Without ties they agree.
    """
    with np.errstate(over="ignore"):
        score_N = np.array(list(scores.values()), np.float32).tolist()
    ranked = sorted(zip(score_N, scores, strict=True), reverse=True)
    return {name: -float(rank) for rank, (_, name) in enumerate(ranked)}


def _of_batch(
    measures: list[object], relevance: Relevance, batch: Mapping[str, Mapping[str, float]]
) -> Iterator[QueryMeasures]:
    numbers = {name: str(number) for number, name in enumerate(batch, 1)}  # gdeval's script takes whole numbers alone
    judged = {numbers[name]: relevance[name] or NOTHING_RELEVANT for name in batch}
    ranked = {numbers[name]: without_ties(scores) for name, scores in batch.items()}
    found = _values(measures, judged, ranked)
    for name, number in numbers.items():
        yield name, {str(measure): found.get((number, str(measure)), UNDEFINED) for measure in measures}


def _values(
    measures: list[object], judged: Relevance, ranked: Mapping[str, Mapping[str, float]]
) -> dict[tuple[str, str], float]:
    """Return {(query, measure): value}, without those that are undefined, such as the share of judged documents of an empty ranking."""
    import ir_measures

    try:
        return {
            (entry.query_id, str(entry.measure)): float(entry.value)
            for entry in ir_measures.iter_calc(measures, judged, ranked)
        }
    except ZeroDivisionError:
        alone = [([each], [name]) for each in measures for name in ranked]
        if len(alone) == 1:
            return {}
        parts = (
            _values(some, {name: judged[name] for name in names}, {name: ranked[name] for name in names})
            for some, names in alone
        )
        return {key: value for part in parts for key, value in part.items()}

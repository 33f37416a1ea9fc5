"""TREC's text formats: rankings of a system (a run), read and written, and relevance judgements (qrels), written. Runs of BEIR and ranx, which are
JSON objects `{query: {document: score}}`, are read too.

A line of a run is `query Q0 document rank score tag`, a line of qrels `query 0 document relevance`. Fields are separated by white space,
so white space in an id is written as in a URL (`%20`). trec_eval ignores the rank: it sorts by score, and ties by its own rule. So scores are written falling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from realmctl.errors import InputError
from realmctl.inputs.rows import is_number, parse_json
from realmctl.inputs.streams import head, lines, whole_text

Relevance = Mapping[str, Mapping[str, int]]
SPACE = re.compile(r"\s")
OF_OBJECTS = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\{')
"""How JSON of objects by query begins."""
MAX_JSON_BYTES = 2**30


def trec_name(identity: str) -> str:
    """Return an id without white space."""
    return SPACE.sub(lambda space: quote(space[0]), identity)


class TrecNames:
    """Ids of one kind as a TREC run has them."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, identity: str) -> str:
        """Return an id without white space. Raises InputError where another id was written the same."""
        name = trec_name(identity)
        if "%" in name and self._ids.setdefault(name, identity) != identity:
            raise InputError(
                f"{self._ids[name]!r} and {identity!r} are one id in TREC's format, {name}, which has no white space. Rename one of the two."
            )
        return name


def run_lines(query: str, names: Sequence[str], scores: NDArray[np.float32], tag: str) -> Iterator[str]:
    """Yield the lines of one query's ranking, best first.

    names: ids of what was found. scores: float32 [n], not rising. A score that does not fall is lowered by one
    float32 step, so that every tool keeps the order of the ranks.
    """
    for rank, (name, score) in enumerate(zip(names, falling(scores).tolist(), strict=True), start=1):
        yield f"{trec_name(query)} Q0 {trec_name(name)} {rank} {score:.9g} {tag}\n"


def falling(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32 [n] that falls strictly and differs from `scores` by the fewest float32 steps."""
    result, lowest = scores.copy(), np.float32(-np.inf)
    for place in range(1, len(result)):
        if result[place] >= result[place - 1]:
            result[place] = np.nextafter(result[place - 1], lowest)
    return result


def read_run(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each query of a run with the scores of what was found for it. Lines of one query must follow each other.

    Raises:
        InputError: a line is malformed, a document is named twice for a query, or the lines of a query are apart.
    """
    seen: set[str] = set()
    rows = _json_rows(path) if is_object_of_objects(path) else _run_rows(path)
    for query, group in groupby(rows, key=lambda row: row[1]):
        found: dict[str, float] = {}
        for number, _, name, score in group:
            if query in seen or name in found:
                what = (
                    f"the lines of query {query} are apart" if query in seen else f"{name} is named twice for {query}"
                )
                raise InputError(f"{path}:{number}: {what}. Sort the run by query and take out repeated lines.")
            found[name] = score
        seen.add(query)
        yield query, found


def is_object_of_objects(path: Path) -> bool:
    """Whether a file is JSON as BEIR and ranx keep runs and judgements: `{query: {document: number}}`."""
    return OF_OBJECTS.match(head(path).removeprefix(b"\xef\xbb\xbf")) is not None


def objects_by_query(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield (query, document, number) of such a file, all of which is in memory. Raises InputError for other JSON."""
    try:
        found = parse_json(whole_text(path, MAX_JSON_BYTES), pairs=True)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}). Get the file again.") from None
    for query, held in found:
        for each in held if isinstance(held, list) else [held]:
            if not (isinstance(each, tuple) and is_number(each[1])):
                raise InputError(
                    f"{path}: query {query!r} has {str(each)[:60]}, and an object of documents with their numbers is expected. Correct the file."
                )
            yield query, each[0], each[1]


def _json_rows(path: Path) -> Iterator[tuple[int, str, str, float]]:
    queries, documents = TrecNames(), TrecNames()
    return ((1, queries(query), documents(name), score) for query, name, score in objects_by_query(path))


def _run_rows(path: Path) -> Iterator[tuple[int, str, str, float]]:
    for number, line in lines(path):
        if not (fields := line.split()):
            continue
        score = _number(fields[4]) if len(fields) == 6 else None
        if score is None:
            raise InputError(
                f"{path}:{number}: not a line of a TREC run, `query Q0 document rank score tag`. Correct or remove the line."
            )
        yield number, fields[0], fields[2], score


def trec_named(relevance: Relevance) -> dict[str, dict[str, int]]:
    """Return judgements with ids as a TREC run has them, without white space. Raises InputError where two ids become one."""
    queries, documents = TrecNames(), TrecNames()
    return {
        queries(query): {documents(name): value for name, value in judged.items()}
        for query, judged in relevance.items()
    }


def qrels_lines(relevance: Relevance) -> Iterator[str]:
    """Yield the lines of TREC's qrels. A query without judgements has no line."""
    for query, judged in relevance.items():
        for name, value in judged.items():
            yield f"{trec_name(query)} 0 {trec_name(name)} {value}\n"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None

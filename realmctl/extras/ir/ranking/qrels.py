"""Read relevance judgements (qrels).

TREC's have four columns and no header, `query 0 document relevance`. All others name their columns: tables as BEIR, ir_datasets and pandas
write them, and JSON lines, Parquet and Arrow as the hub has them. BEIR and ranx keep one JSON object, `{query: {document: relevance}}`. Three columns without a header are query, document and relevance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from realmctl.errors import InputError, listed
from realmctl.extras.ir.ranking.trec import is_object_of_objects, objects_by_query
from realmctl.inputs.rows import (
    Row,
    columnar,
    delimiter_of,
    header,
    is_columnar,
    json_lines,
    table,
    text_rows,
    unquoted,
)
from realmctl.inputs.streams import head
from realmctl.log import say


def _spelled(*names: str) -> tuple[str, ...]:
    return tuple(name.replace("-", mark) for name in names for mark in ("-", "_", ""))


QUERY_IDS = _spelled("query-id", "q-id", "topic-id", "query", "topic")
DOCUMENT_IDS = _spelled("corpus-id", "doc-id", "document-id", "passage-id", "p-id", "docno", "doc", "document")
RELEVANCES = ("score", "relevance", "rel", "label", "judgement", "judgment", "grade")
"""Names of columns, in any case, the surest first."""
BEIR, TREC = ("query-id", "corpus-id", "score"), ("query-id", "iteration", "corpus-id", "score")
"""The columns of a file without a header that has three of them, or four."""
ITERATIONS = ("0", "q0")
"""What TREC's second column holds. Three columns that have it lack the document or the relevance."""

MAX_GRADE = 1000
"""Greatest judgement, above and below 0. pytrec_eval takes memory for each grade up to the greatest of a query."""


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return {query: {document: relevance}} of a file of judgements. All of them are kept in memory.

    Raises:
        InputError: a line is malformed, a pair has two different judgements, or there are no judgements.
    """
    judged: dict[str, dict[str, int]] = {}
    for where, query, name, value in judgements(path):
        if judged.setdefault(query, {}).setdefault(name, value) != value:
            raise InputError(f"{where}: another line judges {name} differently for query {query}. Correct one of them.")
    if not judged:
        raise InputError(f"{path} holds no relevance judgement. Is this the right file?")
    return judged


def judgements(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Yield (file and place, query, document, relevance) of each judgement in a file. Raises InputError for a malformed one."""
    return map(_judgement, _rows(path))


def begins_qrels(first: str) -> bool:
    """Return whether the first line of a file is one of judgements: a header of theirs, or TREC's columns."""
    cells = _by_white_space(first, 4)
    is_trec = len(cells) == 4 and cells[1].lower() in ITERATIONS and relevance_of(cells[3]) is not None
    return is_trec or _names_judgements(header(first))


def _names_judgements(names: Collection[str]) -> bool:
    """Return whether these names of columns, in lower case, are those of judgements."""
    return not {*names}.isdisjoint(QUERY_IDS) and not {*names}.isdisjoint(DOCUMENT_IDS)


def _judgement(row: Row) -> tuple[str, str, str, int]:
    fields = {name.lower(): value for name, value in row.fields.items()}
    query, document, relevance = (
        next((name for name in names if fields.get(name) is not None), None)
        for names in (QUERY_IDS, DOCUMENT_IDS, RELEVANCES)
    )
    if query is None or document is None or (relevance is None and len(fields) > 2):
        raise InputError(
            f"{row.where}: not a judgement, which needs a query ({QUERY_IDS[0]}), a document ({DOCUMENT_IDS[0]}) and its relevance "
            f"({RELEVANCES[0]}); it has {listed(fields)}. Rename the columns."
        )
    given = "1" if relevance is None else str(fields[relevance])  # NanoBEIR names what is relevant, and no more
    if (value := relevance_of(given)) is None:
        raise InputError(
            f"{row.where}: not a judgement: its {relevance} is {given[:40]!r}, and a whole number from {-MAX_GRADE} to {MAX_GRADE} is expected. Correct or remove the line."
        )
    return row.where, str(fields[query]).strip(), str(fields[document]).strip(), value


def _rows(path: Path) -> Iterator[Row]:
    if is_columnar(start := head(path)):
        return columnar(path, (*QUERY_IDS, *DOCUMENT_IDS, *RELEVANCES), needed=DOCUMENT_IDS)
    first = start.decode("utf-8-sig", errors="replace").lstrip().partition("\n")[0].strip()
    if is_object_of_objects(path):
        return (Row(str(path), 0, dict(zip(BEIR, found, strict=True))) for found in objects_by_query(path))
    if first.startswith("{"):
        return json_lines(path)
    if (mark := delimiter_of(first)) != "\t" and _names_judgements(header(first, mark)):
        return table(path, mark)[1]
    for cut in (_by_tabs, str.split):
        if _names_judgements(names := cut(first.lower())):
            return _lines(path, names, cut, skip=1)
    return _unnamed(path, first) if first else iter(())


def _unnamed(path: Path, first: str) -> Iterator[Row]:
    """Yield the rows of a file whose first line is no header. Raises InputError if its columns could be others."""
    if len(_by_white_space(first, 4)) == 4:
        return _lines(path, TREC, lambda line: _by_white_space(line, 4))
    cells = _by_white_space(first, 3)
    if len(cells) == 3 and cells[1].lower() not in ITERATIONS and relevance_of(cells[2]) is not None:
        say(f"{path}: its three columns have no header, and are read as query, document and relevance")
        return _lines(path, BEIR, lambda line: _by_white_space(line, 3))
    raise InputError(
        f"{path}:1: {first[:60]!r} does not say what is the query, the document and its relevance. Judgements have four columns, `query 0 "
        "document relevance`, or a first line that names their columns, `query-id corpus-id score`. Write that line."
    )


def _lines(path: Path, names: Sequence[str], cut: Callable[[str], list[str]], skip: int = 0) -> Iterator[Row]:
    for where, line in islice(text_rows(path), skip, None):
        if len(cells := cut(line)) != len(names):
            raise InputError(
                f"{where}: not a line of qrels, `{' '.join(names)}`: it has {len(cells)} columns. Correct or remove the line."
            )
        yield Row(where, 0, dict(zip(names, cells, strict=True)))


def _by_tabs(line: str) -> list[str]:
    return [unquoted(cell.strip()) for cell in line.split("\t")]


def _by_white_space(line: str, count: int) -> list[str]:
    """Return the cells of a line, whose ids may have blanks if tabs make `count` cells."""
    cells = _by_tabs(line)
    return cells if len(cells) == count else line.split()


def relevance_of(text: str) -> int | None:
    """Return a judgement, such as 1 or 1.0; None for what is no whole number, or is beyond MAX_GRADE."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if abs(value) <= MAX_GRADE and value == int(value) else None

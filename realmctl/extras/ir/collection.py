"""Test collections of other projects, written as BEIR folders: documents, queries and judgements.

`ir:NAME` is a dataset of ir_datasets (ir-datasets.com; extra `ir`), such as `ir:beir/scifact/test`. `hf:OWNER/NAME` is a dataset of the
hub in the layout of NanoBEIR, of MTEB's retrieval tasks or of BEIR: files whose path begins with corpus, queries, and qrels or default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from realmctl.artifacts import Writer
from realmctl.artifacts.hashing import files_below
from realmctl.errors import ConfigError, InputError, listed, one_line
from realmctl.extras.ir.ranking.qrels import judgements
from realmctl.inputs.rows import Row, columnar, first_of, is_columnar, json_lines, table
from realmctl.inputs.streams import head
from realmctl.log import progress, say

PREFIXES = ("ir:", "hf:")
NANO_BEIR = tuple(
    f"hf:zeta-alpha-ai/Nano{name}"
    for name in (
        *(
            "ClimateFEVER",
            "DBPedia",
            "FEVER",
            "FiQA2018",
            "HotpotQA",
            "MSMARCO",
            "NFCorpus",
            "NQ",
            "QuoraRetrieval",
            "SCIDOCS",
        ),
        *("ArguAna", "SciFact", "Touche2020"),
    )
)
"""NanoBEIR: thirteen sets of fifty queries and a few thousand documents each."""
ROLE = re.compile(r"(corpus|queries|qrels|default)(?=[./-])")
"""How the path of a file on the hub begins. MTEB calls the judgements default."""
SPLIT = re.compile(r"[A-Za-z]+")
IDS = ("_id", "id")
QUERY_TEXTS = ("text", "query")
COLUMNS = (*IDS, *QUERY_TEXTS, "title")


@dataclass(frozen=True)
class Collection:
    """What a collection holds. documents: (id, title, text). queries: (id, text). judgements: (query, document, relevance)."""

    documents: Iterable[tuple[str, str, str]]
    queries: Iterable[tuple[str, str]]
    judgements: Iterable[tuple[str, str, int]]


def write_collection(dataset: str, split: str, out: Writer) -> dict[str, int]:
    """Write corpus.jsonl, queries.jsonl with the judged queries alone, and qrels/test.tsv. Return their numbers of records.

    Args:
        dataset: `ir:NAME` or `hf:OWNER/NAME`, which may end in `@REVISION`.
        split: split of a dataset of the hub, unless it has one alone. A name of ir_datasets says its own.
        out: the artifact to write to.

    Raises:
        ConfigError: ir_datasets knows no dataset of this name.
        InputError: the dataset cannot be fetched, is malformed, or lacks documents, queries or judgements.
    """
    found = (
        _of_ir_datasets(dataset.removeprefix("ir:"))
        if dataset.startswith("ir:")
        else _of_hub(dataset.removeprefix("hf:"), split)
    )
    judged, judgements = set[str](), 0
    try:
        with out.file("qrels/test.tsv").open("w", encoding="utf-8") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            for query, document, relevance in found.judgements:
                file.write(f"{query}\t{document}\t{relevance}\n")
                judged.add(query)
                judgements += 1
        queries = ({"_id": name, "text": text} for name, text in found.queries if name in judged)
        documents = ({"_id": name, "title": title, "text": text} for name, title, text in found.documents)
        counts = {
            "documents": _write(out.file("corpus.jsonl"), documents, "documents"),
            "queries": _write(out.file("queries.jsonl"), queries, "queries"),
            "judgements": judgements,
        }
    except (InputError, ConfigError):
        raise
    except Exception as error:  # ir_datasets fetches files while it reads, and raises what it likes
        raise _not_fetched(dataset, error) from None
    if missing := [name for name, count in counts.items() if not count]:
        raise InputError(
            f"{dataset} has no {' and no '.join(missing)}, and cannot measure a search. Name a dataset with judgements."
        )
    return counts


def _write(file: Path, records: Iterable[Mapping[str, str]], unit: str) -> int:
    written = 0
    with file.open("w", encoding="utf-8") as lines, progress(None, "reading the collection", unit) as bar:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
            written += 1
            bar.advance(1)
    return written


def _not_fetched(dataset: str, error: Exception) -> InputError:
    return InputError(f"{dataset} cannot be read ({one_line(error)}). Check its name and the network.")


def _of_ir_datasets(name: str) -> Collection:
    import ir_datasets

    try:
        dataset = ir_datasets.load(name)
    except KeyError:
        raise ConfigError(f"ir_datasets has no dataset {name!r}. Its names are listed on ir-datasets.com.") from None
    if missing := [what for what in ("docs", "queries", "qrels") if not getattr(dataset, f"has_{what}")()]:
        raise ConfigError(
            f"ir:{name} has no {' and no '.join(missing)}. Name a part of it that has them, such as ir:{name}/test."
        )

    def documents() -> Iterator[tuple[str, str, str]]:
        for document in dataset.docs_iter():
            text = getattr(document, "text", "")
            yield document.doc_id, getattr(document, "title", "") if text else "", text or document.default_text()

    return Collection(
        documents(),
        ((query.query_id, query.default_text()) for query in dataset.queries_iter()),
        ((judged.query_id, judged.doc_id, int(judged.relevance)) for judged in dataset.qrels_iter()),
    )


def _of_hub(name: str, split: str) -> Collection:
    repository, _, revision = name.partition("@")
    files: dict[str, list[Path]] = {"corpus": [], "queries": [], "qrels": []}
    folder = _snapshot(repository, revision, ["corpus*", "queries*", "qrels*", "default*"])
    for path in files_below(folder):
        if role := ROLE.match(path.relative_to(folder).as_posix()):
            files["qrels" if role[1] == "default" else role[1]].append(path)
    if files["corpus"] and not files["qrels"]:  # BEIR's own: the judgements are a dataset beside
        files["qrels"] = [*files_below(_snapshot(f"{repository}-qrels", "", ["*.tsv*"]))]
    if missing := [role for role, found in files.items() if not found]:
        raise InputError(
            f"hf:{repository} has no files of its {' and '.join(missing)}. Name a dataset in the layout of BEIR, MTEB or NanoBEIR."
        )
    return Collection(
        (
            (_value(row, IDS), str(row.fields.get("title") or ""), str(row.fields.get("text") or ""))
            for row in _rows(files["corpus"], ("text",))
        ),
        ((_value(row, IDS), _value(row, QUERY_TEXTS)) for row in _rows(files["queries"], QUERY_TEXTS)),
        (
            (query, document, relevance)
            for path in _of_split(repository, files["qrels"], split)
            for _, query, document, relevance in judgements(path)
        ),
    )


def _snapshot(repository: str, revision: str, patterns: list[str]) -> Path:
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(repository, repo_type="dataset", revision=revision or None, allow_patterns=patterns)
    except Exception as error:  # the network, a proxy or the hub may raise anything
        raise _not_fetched(f"hf:{repository}", error) from None
    say(f"hf:{repository}: using {folder}")
    return Path(folder)


def _of_split(repository: str, files: Sequence[Path], split: str) -> list[Path]:
    names = {path: found[0] for path in files if (found := SPLIT.match(path.name))}
    chosen = [path for path in files if names.get(path) == split]
    if not chosen and len({*names.values()}) != 1:
        raise InputError(
            f"hf:{repository} has judgements of {', '.join(sorted({*names.values()}))}, and not of {split}. Name one of them with --split."
        )
    return chosen or [*files]


def _rows(paths: Iterable[Path], needed: tuple[str, ...]) -> Iterator[Row]:
    for path in paths:
        start = head(path, 16)
        if is_columnar(start):
            yield from columnar(path, COLUMNS, needed=needed)
        else:
            yield from json_lines(path) if start.lstrip().startswith(b"{") else table(path)[1]


def _value(row: Row, names: tuple[str, ...]) -> str:
    if (value := first_of(row.fields, names)) is None:
        raise InputError(f"{row.where}: no {' or '.join(names)}; it has {listed(row.fields)}.")
    return str(value)

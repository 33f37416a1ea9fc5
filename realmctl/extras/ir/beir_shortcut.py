"""Test collections through the whole chain: each is cut into blocks, embedded, indexed, searched and measured; then one table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.artifacts.series import series_folder
from realmctl.errors import ConfigError, InputError
from realmctl.extras.ir.collect import Collect
from realmctl.extras.ir.collection import NANO_BEIR, PREFIXES
from realmctl.extras.ir.ranking.beir import corpus_file, is_beir, qrels_file, queries_file
from realmctl.log import say
from realmctl.pipeline import pipeline_file
from realmctl.pipeline.discovery import own_stages
from realmctl.pipeline.making import make_version, write_version
from realmctl.questions.per_query import PER_QUERY

NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
KIND, TABLE = "collection-scores", "table.csv"


@dataclass(frozen=True, kw_only=True)
class MeasuredCollection:
    """A collection with the numbers of its documents and queries, its measures by name, and their artifact."""

    name: str
    documents: int
    queries: int
    measures: Mapping[str, float]
    scores: Artifact


def named_collections(given: Sequence[str]) -> dict[str, str]:
    """Return {name: folder, `ir:NAME` or `hf:OWNER/NAME`} of what a user names: these, `nanobeir`, or a folder of BEIR folders.

    Raises:
        ConfigError: two collections have one name.
        InputError: a folder is no BEIR folder and holds none.
    """
    found: dict[str, str] = {}
    for one in (each for text in given for each in _expanded(text)):
        path = Path(one.partition("@")[0])
        named = path.resolve() if path.name in ("", "..") else path
        name = one.removeprefix("ir:") if one.startswith("ir:") else named.name
        name = NOT_IN_NAMES.sub("-", name).strip("-.")
        if found.setdefault(name, one) != one:
            raise ConfigError(f"{found[name]} and {one} would both be named {name}. Measure them in two workspaces.")
    return found


def _expanded(text: str) -> Iterator[str]:
    if text == "nanobeir" and not Path(text).exists():
        yield from NANO_BEIR
    elif text.startswith(PREFIXES) or is_beir(Path(text)):
        yield text
    else:
        folder = Path(text)
        inner = sorted(path for path in folder.iterdir() if is_beir(path)) if folder.is_dir() else []
        if not inner:
            raise InputError(
                f"{text} is no BEIR folder, which holds corpus.jsonl, queries.jsonl and qrels, and holds none. Name one, a folder of "
                "them, ir:NAME, hf:OWNER/NAME or nanobeir."
            )
        yield from map(str, inner)


def measure(
    name: str, collection: str, retriever: Artifact, workspace: Path, split: str, variables: Mapping[str, str]
) -> MeasuredCollection:
    """Measure a retriever on one collection. What exists in `workspace`/beir/`name` is not made again.

    Args:
        name: name of the collection, for its folder and the table.
        collection: a BEIR folder, `ir:NAME` or `hf:OWNER/NAME`.
        retriever: embeds; BM25 takes its tokenizer.
        workspace: folder of the artifacts.
        split: the judgements to take, unless there are only those of one split.
        variables: further variables of eval-beir.yaml.
    """
    say(f"--- {name}")
    own = workspace / "beir" / name
    folder = Path(collection)
    if collection.startswith(PREFIXES):
        folder = Collect(dataset=collection, split=split).make(own / "collection").path
    files = {
        "documents": str(corpus_file(folder)),
        "queries": str(queries_file(folder)),
        "qrels": str(qrels_file(folder, split)),
        "retriever": str(retriever.path),
    }
    plan = pipeline_file.read(Path(__file__).with_name("eval-beir.yaml"), own_stages(), {**files, **variables}, own)
    made = plan.make(plan.until("scores"))
    scores = made["scores"]
    measures = {key: value for key, value in scores.metrics.items() if isinstance(value, float)}
    return MeasuredCollection(
        name=name,
        documents=int(made["blocks"].metrics["documents"]),
        queries=int(scores.metrics["queries"]),
        measures=measures,
        scores=scores,
    )


def table(measured: Sequence[MeasuredCollection]) -> list[list[str]]:
    """Return a heading and a line for each collection; of several, a last one with their mean."""
    names = [*measured[0].measures]
    lines = [["collection", "documents", "queries", *names]]
    for one in measured:
        lines.append([one.name, str(one.documents), str(one.queries), *(f"{one.measures[name]:.4f}" for name in names)])
    if len(measured) > 1:
        means = (fmean(one.measures[name] for one in measured) for name in names)
        lines.append([f"mean of {len(measured)}", "", "", *(f"{mean:.4f}" for mean in means)])
    return lines


def table_csv(lines: Sequence[Sequence[str]]) -> str:
    """Format the table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def make_table(measured: Sequence[MeasuredCollection], retriever: Artifact, workspace: Path) -> Artifact:
    """Return the artifact of the table of these scores: table.csv, and the mean of each measure as its metrics."""

    def write(out: Writer) -> dict[str, object]:
        out.file(TABLE).write_text(table_csv(table(measured)), encoding="utf-8")
        with out.file(PER_QUERY).open("w", encoding="utf-8") as file:
            for one in measured:
                with one.scores.file(PER_QUERY).open(encoding="utf-8") as lines:
                    for line in map(json.loads, lines):
                        file.write(json.dumps({"collection": one.name, **line}, ensure_ascii=False) + "\n")
        means = {name: round(fmean(one.measures[name] for one in measured), 6) for name in measured[0].measures}
        return {**means, "collections": len(measured)}

    inputs = {one.name: one.scores.content for one in measured}
    judgements = {one.name: one.scores.manifest.inputs.get("qrels") for one in measured}
    origin = Origin(KIND, "eval-beir", 2, {"qrels": judgements}, inputs, {"retriever": retriever.content})
    series = series_folder(workspace / KIND, KIND)
    scores = [one.scores for one in measured]
    return make_version(series, origin, lambda writer: write_version(writer, write, scores))

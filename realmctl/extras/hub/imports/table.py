"""A table of texts with vectors, as `export --form parquet` writes it, as blocks and embeddings.

Another process reads the file (`realmctl.inputs.rows`), once for the texts and once for the vectors. Texts stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from realmctl.artifacts import Artifact, Writer, tokenizer_folder
from realmctl.artifacts.arrays import ArrayAppender
from realmctl.artifacts.records import RecordWriter
from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.corpus.blocks_file import BlocksWriter
from realmctl.corpus.chunking import size_metrics
from realmctl.corpus.fields import kept
from realmctl.corpus.reading import UniqueIds
from realmctl.corpus.sentences import split
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.imports.imported import make_imported
from realmctl.inputs import streams
from realmctl.inputs.rows import Row, columnar, is_columnar
from realmctl.log import progress, warn
from realmctl.models.retriever_settings import read_settings
from realmctl.pipeline import resolve
from realmctl.retrieval.loaded_retriever import LoadedRetriever
from realmctl.tokens.tokenizer import Tokenizer

NEEDED = ("id", "text", "vector")
BESIDE = ("document", "title", "section", "page", "fields")
COMPARED, LEAST_COSINE = 8, 0.95
"""So many rows are embedded, and their vectors compared with those of the table; below this mean cosine a warning is given."""


def is_table(path: Path) -> bool:
    """Whether a file is a Parquet or an Arrow file."""
    return path.is_file() and is_columnar(streams.head(path, 8))


def import_table(path: Path, retriever: Path | None, workspace: Path) -> dict[str, Artifact]:
    """Import a table as `blocks` and `embeddings` of a workspace. Return both.

    Args:
        path: a Parquet or Arrow file with the columns id, text and vector, and perhaps document, title, section, page and fields.
        retriever: the retriever that made the vectors. Its tokenizer becomes that of the blocks.

    Raises:
        ConfigError: no retriever is named.
        InputError: a column is missing, or a row has no text, an id that came before, or a vector that is none.
        MismatchError: the vectors have another width than the retriever's.
    """
    if retriever is None:
        raise ConfigError(
            f"{path} is a table of texts and vectors. Name the retriever that made the vectors: --retriever."
        )
    made_by = resolve(retriever, ("retriever",), "--retriever")
    words, width = Tokenizer.load(tokenizer_folder(made_by)), read_settings(made_by.path).projection
    _first(path)  # a column that is missing is told before any work
    count = 0

    def write_blocks(out: Writer) -> Mapping[str, Any]:
        words.save(out.path / "tokenizer")
        documents = set[str]()
        with (
            BlocksWriter(out.file, words.dtype) as blocks,
            RecordWriter(out.file("quarantine.jsonl.zst")),
            progress(None, "importing", "blocks") as bar,
        ):
            for row in _checked(path):
                block = _block(row, words)
                documents.add(block.document)
                blocks.write(block)
                bar.advance(1)
        return {
            "documents": len(documents),
            "dropped": {},
            "quarantined": 0,
            "language": "en",
            **size_metrics(out.path),
        }

    def write_vectors(out: Writer) -> Mapping[str, Any]:
        nonlocal count
        vectors, first = ArrayAppender(out.file("embeddings.npy"), np.float32, width), list[Row]()
        with progress(None, "importing", "vectors") as bar:
            for row in columnar(path, [*NEEDED, "title"], NEEDED):
                vectors.append([_vector(row, width)])
                if count < COMPARED:
                    first.append(row)
                count += 1
                bar.advance(1)
        vectors.close()
        _compare(path, made_by, first)
        return {"rows": count, "dimension": width}

    blocks = make_imported(
        workspace / "blocks", "blocks", write_blocks, sources={"table": path}, inputs={"tokenizer": made_by}
    )
    embeddings = make_imported(
        workspace / "embeddings",
        "embeddings",
        write_vectors,
        sources={"table": path},
        inputs={"blocks": blocks, "retriever": made_by},
    )
    return {"blocks": blocks, "embeddings": embeddings}


def _first(path: Path) -> None:
    for row in columnar(path, [*NEEDED, *BESIDE], NEEDED):
        if missing := [name for name in NEEDED if name not in row.fields]:
            raise InputError(
                f"{path} has no column {' and no column '.join(missing)}. A table of texts and vectors has the columns {', '.join(NEEDED)}. Texts alone are "
                "read by `realmctl chunk`."
            )
        return
    raise InputError(f"{path} has no row.")


def _checked(path: Path) -> Iterator[Row]:
    """Yield the rows, whose ids are new and whose documents stand together."""
    ids, documents, current = UniqueIds(), UniqueIds(), ""
    for row in columnar(path, ["id", "text", *BESIDE], ["id"]):
        identity = _text(row, "id")
        ids.add(identity, row.where)
        document = _text(row, "document", identity)
        if document != current:
            documents.add(document, row.where)
            current = document
        yield row
    ids.settle()
    documents.settle()


def _text(row: Row, name: str, default: str | None = None) -> str:
    value = row.fields.get(name)
    value = str(value) if name in ("id", "document") and type(value) is int else value
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or (not value.strip() and default is None):
        raise InputError(f"{row.where}: its {name} is {str(value)[:60]!r}, and a text is needed. Correct or remove it.")
    return value


def _vector(row: Row, width: int) -> list[float]:
    vector = row.fields.get("vector")
    if not isinstance(vector, list) or not vector:
        raise InputError(f"{row.where}: it has no vector. Embed its text, or remove it.")
    if len(vector) != width:
        raise MismatchError(
            f"{row.where}: its vector has {len(vector)} numbers, and those of the retriever have {width}. Name the retriever that made the table."
        )
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in vector):
        raise InputError(
            f"{row.where}: its vector holds NaN, infinite values or what is no number. Embed its text again."
        )
    return vector


def _block(row: Row, words: Tokenizer) -> Block:
    text, title, size, page = _text(row, "text"), _text(row, "title", ""), words.itemsize, row.fields.get("page")
    fields = row.fields.get("fields")
    found = [(span, words.packed(text[span[0] : span[1]])) for span in split(text)]
    sentences = [(span, packed) for span, packed in found if packed] or [((0, len(text)), words.packed(text))]
    return Block(
        id=_text(row, "id"),
        document=_text(row, "document", _text(row, "id")),
        title=title,
        text=text,
        sentences=tuple(span for span, _ in sentences),
        anchors=(),
        wordpieces=PackedWordpieces(
            title=words.packed(title),
            body=b"".join(packed for _, packed in sentences),
            sentence_starts=[0, *accumulate(len(packed) // size for _, packed in sentences[:-1])],
        ),
        section=_text(row, "section", ""),
        page=page if isinstance(page, int) and page > 0 else 0,
        fields=kept({name: _whole(value) for name, value in fields.items()}) if isinstance(fields, Mapping) else {},
    )


def _whole(value: object) -> object:
    """A number of a column of floats as the integer that it was."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _compare(path: Path, retriever: Artifact, rows: list[Row]) -> None:
    """Warn where the retriever gives the first rows other vectors than the table."""
    titles, texts = ([_text(row, name, "") for row in rows] for name in ("title", "text"))
    own = LoadedRetriever.open(retriever, precision="fp32").encode_blocks(titles, texts).astype(np.float64)
    theirs = np.array([row.fields["vector"] for row in rows])
    lengths = np.linalg.norm(own, axis=1) * np.linalg.norm(theirs, axis=1)
    if (mean := float(((own * theirs).sum(1) / np.maximum(lengths, 1e-12)).mean())) < LEAST_COSINE:
        warn(
            f"{path}: {retriever.path} gives its first texts other vectors, of a mean cosine of {mean:.2f} with those of the table. A search will find "
            "little if another retriever made them."
        )

"""Blocks with their fields and their vectors as one Parquet file, for vector databases and data frames (extra `parquet`).

Columns: id, document, title, section, page, text, `fields` (a struct; absent where documents have none) and vector (float32, of fixed width). Rows are
written a few thousand at a time, so memory does not grow with their number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError, require_package
from realmctl.index.vectors import open_vectors
from realmctl.log import progress
from realmctl.version import __version__

COLUMNS = ("id", "document", "title", "section", "page", "text")
VECTOR, FIELDS = "vector", "fields"
ROWS_AT_ONCE = 2_048
CARD = """# Vectors of {rows:,} blocks

Each row is a passage of a document (`id`, `document`, `title`, `text`) with its vector of {width} numbers, made by realmctl {version}.

- Search by inner product. Vectors of queries come from the same retriever: `realmctl serve` gives them at `/v1/embeddings`, as `retriever-query`.
- retriever: {retriever}
- blocks: {blocks}
- embeddings: {embeddings}
"""


def write_table(embeddings: Artifact, blocks: Artifact | None, path: Path) -> dict[str, int]:
    """Write the table. Its metadata has a card for people (`README.md`) and the hashes of what it was made of (`realmctl`, JSON)."""
    require_package("pyarrow", "parquet", "export --form parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    assert blocks is not None
    corpus, place = Corpus(blocks), embeddings.file("embeddings.npy")
    count, width = open_vectors(place).shape
    if len(corpus) != count:
        raise MismatchError(
            f"{blocks} has {len(corpus)} blocks, and there are {count} vectors. Embed the blocks again."
        )
    kinds = {"text": pa.string(), "date": pa.string(), "number": pa.float64(), "list": pa.list_(pa.string())}
    columns = [(name, pa.int32() if name == "page" else pa.string()) for name in COLUMNS]
    types = corpus.fields.types
    if types:
        columns.append((FIELDS, pa.struct([(name, kinds[kind]) for name, kind in types.items()])))
    made_of = {
        "realmctl": __version__,
        "embeddings": embeddings.content,
        "blocks": blocks.content,
        "retriever": embeddings.lineage.get("retriever", "unknown"),
        "similarity": "inner product",
        "fields": types,
    }
    card = CARD.format(
        rows=count,
        width=width,
        version=__version__,
        **{name: made_of[name] for name in ("retriever", "blocks", "embeddings")},
    )
    schema = pa.schema(
        [*columns, (VECTOR, pa.list_(pa.float32(), width))], {"README.md": card, "realmctl": json.dumps(made_of)}
    )
    rows, start = _rows(corpus, [*types]), 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer, progress(count, "exporting", "blocks") as bar:
        while part := list(islice(rows, ROWS_AT_ONCE)):
            own = (
                open_vectors(place)[start : start + len(part)].astype("float32").reshape(-1)
            )  # a new map: one that was read through fills memory
            held = [pa.array([row[name] for row in part], kind) for name, kind in columns]
            held.append(pa.FixedSizeListArray.from_arrays(pa.array(own), width))
            writer.write_batch(pa.record_batch(held, schema=schema))
            start += len(part)
            bar.advance(len(part))
    return {"rows": count, "width": width}


def _rows(corpus: Corpus, fields: list[str]) -> Iterator[dict[str, Any]]:
    for block in corpus:
        values = (block.id, block.document, block.title, block.section or None, block.page or None, block.text)
        yield dict(zip(COLUMNS, values, strict=True)) | {FIELDS: {name: block.fields.get(name) for name in fields}}

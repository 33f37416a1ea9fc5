#!/usr/bin/env bash
# polars 2.1.0.
# Expected: reading JSON lines keeps every key, or says that it cannot. A number of another type that comes late is an error.
# Seen: read_ndjson and scan_ndjson take the columns from the first 100 lines. A key that comes first in a later line ("title", where most
# documents have none) is dropped without an error or a warning. infer_schema_length=None keeps it. DuckDB 2.0.1 raises an error that names
# the key, and pyarrow 26.0.1 keeps it.
# This fails when polars keeps the key, or raises.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import json
import warnings

import duckdb
import polars
import pyarrow.json

warnings.simplefilter("error")


def write(lines, last):
    with open("documents.jsonl", "w") as file:
        for number in range(lines):
            file.write(json.dumps({"_id": str(number), "text": "of", "words": 1}) + "\n")
        file.write(json.dumps({"_id": "last", "text": "of"} | last) + "\n")


write(150, {"words": 1.5})
try:
    polars.read_ndjson("documents.jsonl")
except polars.exceptions.ComputeError as raised:
    print("another type:", raised)
else:
    raise SystemExit("a late number of another type is read")
write(150, {"words": 1, "title": "Late"})
for read in (polars.read_ndjson, lambda file: polars.scan_ndjson(file).collect()):
    table = read("documents.jsonl")
    print("another key:", table.columns, table.height)
    assert table.columns == ["_id", "text", "words"] and table.height == 151
assert polars.read_ndjson("documents.jsonl", infer_schema_length=None)["title"][-1] == "Late"
write(30000, {"words": 1, "title": "Late"})
assert "title" in pyarrow.json.read_json("documents.jsonl").column_names
try:
    duckdb.sql("SELECT * FROM read_json('documents.jsonl')").fetchall()
except duckdb.InvalidInputException as raised:
    print("DuckDB:", str(raised).splitlines()[0])
    assert "title" in str(raised)
else:
    raise SystemExit("DuckDB does not raise")
PYTHON
echo "as seen"

#!/usr/bin/env bash
# pyarrow 26.0.1, datasets 5.2.0 and duckdb 2.0.1.
# Expected: what stands in quotation marks in JSON is a text. Answers to "when?" are such texts.
# Seen: pyarrow.json makes a column of timestamps of it when all of its texts look like dates, and so does load_dataset("json"), also inside
# lists of answers; str(answer) is then "1898-12-03 00:00:00". DuckDB's read_json makes DATE of it. With one other answer among them
# ("in May") all are texts again, so the type of a field depends on its values. polars and the module json keep texts.
# This fails when one of the three returns a text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pyarrow==26.0.1 datasets==5.2.0 duckdb==2.0.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import datetime
import json

import datasets
import duckdb
import pyarrow.json

with open("a.jsonl", "w") as out:
    for day in ("1898-12-03", "1899-01-01"):
        print(json.dumps({"question": "When?", "answer": day, "answers": [day]}), file=out)
table = pyarrow.json.read_json("a.jsonl")
datasets.disable_progress_bars()
rows = datasets.load_dataset("json", data_files="a.jsonl", split="train", cache_dir="cache")
found = duckdb.sql("select answer from read_json('a.jsonl')").fetchall()[0][0]
print(table.schema, rows.features, rows[0], repr(found))
assert table.column("answer")[0].as_py() == datetime.datetime(1898, 12, 3)
assert str(rows[0]["answer"]) == "1898-12-03 00:00:00" and rows[0]["answers"] == [datetime.datetime(1898, 12, 3)]
assert found == datetime.date(1898, 12, 3)
PYTHON
echo "as seen"

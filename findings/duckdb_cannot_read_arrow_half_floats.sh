#!/usr/bin/env bash
# duckdb 2.0.1 and pyarrow 26.0.1.
# Expected: DuckDB reads a column of float16 vectors from an Arrow table, as it reads the same column from a Parquet file.
# Seen: it reads it from the Parquet file, and raises "Unsupported Internal Arrow Type" for the table in memory.
# This fails when it reads the table, or cannot read the file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install duckdb==2.0.1 pyarrow==26.0.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

vectors = np.arange(8, dtype="float16")
table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4)})
pyarrow.parquet.write_table(table, "a.parquet")
read = duckdb.sql("select vector from 'a.parquet'").fetchall()
print(read)
assert [list(row[0]) for row in read] == vectors.reshape(2, 4).tolist()
try:
    duckdb.from_arrow(table).fetchall()
except duckdb.Error as error:
    print(type(error).__name__, error)
    assert "Unsupported Internal Arrow Type" in str(error)
else:
    raise AssertionError("the table was read")
PYTHON
echo "as seen"

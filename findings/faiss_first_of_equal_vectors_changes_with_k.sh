#!/usr/bin/env bash
# faiss-cpu 1.15.1.
# Expected: the first hit is the same whether one, two or three are asked for.
# Seen: by inner product, of three equal vectors (rows 0, 4 and 8) row 0 is first for k = 1, row 4 for k = 2 and row 8 for k = 3: the first k
# are kept, and listed in falling order. By L2 row 0 is first each time. The flat index and HNSW do the same. Copies of a passage are such vectors.
# This fails when the first hit by inner product does not change with k.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install faiss-cpu==1.15.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import faiss
import numpy as np

vectors = np.tile(np.eye(4, dtype="float32"), (3, 1))
query = np.eye(4, dtype="float32")[:1]
for metric, seen in (
    (faiss.METRIC_INNER_PRODUCT, [[0], [4, 0], [8, 4, 0]]),
    (faiss.METRIC_L2, [[0], [0, 4], [0, 4, 8]]),
):
    for index in (faiss.IndexFlat(4, metric), faiss.IndexHNSWFlat(4, 8, metric)):
        index.add(vectors)
        found = [index.search(query, k)[1][0].tolist() for k in (1, 2, 3)]
        print(type(index).__name__, metric, found)
        assert found == seen
PYTHON
echo "as seen"

#!/usr/bin/env bash
# faiss-cpu 1.15.1.
# Expected: a search of IndexHNSWFlat with a selector that lets ten vectors pass returns these ten for k = 10, or raises.
# Seen: it returns fewer of them for every one of 20 queries and pads with -1, at efSearch 64 over 2,000 vectors. The graph is walked as
# without a selector, and what is met and does not pass is left out. A flat index with the same selector returns ten.
# This fails when each query finds ten.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install faiss-cpu==1.15.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import faiss
import numpy as np

faiss.omp_set_num_threads(1)
draw = np.random.default_rng(0)
vectors, queries = (draw.standard_normal((n, 32)).astype("float32") for n in (2000, 20))
passing = faiss.IDSelectorBatch(np.arange(0, 2000, 200))
flat, graph = faiss.IndexFlatIP(32), faiss.IndexHNSWFlat(32, 16, faiss.METRIC_INNER_PRODUCT)
flat.add(vectors), graph.add(vectors)
exact = flat.search(queries, 10, params=faiss.SearchParameters(sel=passing))[1]
found = graph.search(queries, 10, params=faiss.SearchParametersHNSW(sel=passing, efSearch=64))[1]
print("found of ten:", (found >= 0).sum(1))
assert ((exact >= 0).sum(1) == 10).all()
assert ((found >= 0).sum(1) < 10).all()
PYTHON
echo "as seen"

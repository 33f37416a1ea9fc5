#!/usr/bin/env bash
# usearch 2.26.6.
# Expected: after load() an index names the metric by which it searches.
# Seen: Index(metric="l2sq").load() of a file of inner products searches by inner product (the distance to itself is 0 = 1 - 1, to a longer
# vector -8), and metric_kind says L2sq. The data type is taken from the file. Who turns distances to scores by metric_kind is wrong.
# This fails when metric_kind is that of the search, or loading raises.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install usearch==2.26.6 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import numpy as np
from usearch.index import Index, MetricKind

vectors = np.zeros((2, 32), dtype="float32")
vectors[0, 0] = 1
vectors[1, :2] = 9  # its inner product with the first is 9, and its distance to it large
made = Index(ndim=32, metric="ip", dtype="f32")
made.add(np.arange(2), vectors)
made.save("index")
loaded = Index(ndim=32, metric="l2sq", dtype="f16")
loaded.load("index")
found = loaded.search(vectors[0], 2)
print(loaded.metric_kind, loaded.dtype, found.keys, found.distances)
assert loaded.metric_kind == MetricKind.L2sq
assert found.keys.tolist() == [1, 0] and found.distances.tolist() == [-8, 0]
PYTHON
echo "as seen"

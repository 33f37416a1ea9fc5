#!/usr/bin/env bash
# ranx 0.3.21.
# Expected: fuse(norm="min-max", method="sum") puts a document that both runs found before one that a single run found at the same place.
# Seen: the last of each run gets 0, as if it had not been found, and a run whose scores are all equal gives 0 to all of its documents. So
# "both", which is found by both runs, ends below "one", which is found by one; with norm="zmuv" it gets -1 and an unfound one 0.
# This fails when "both" is not the last.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install ranx==0.3.21
cd "$folder"
venv/bin/python - <<'PYTHON'
from ranx import Run, fuse

first = Run({"q": {"both": 1.0, "other": 1.0}}, name="first")
second = Run({"q": {"one": 3.0, "both": 2.0}}, name="second")
for norm, expected in (("min-max", 0.0), ("zmuv", -1.0)):
    fused = dict(fuse([first, second], norm=norm, method="sum").run["q"])
    print(norm, fused)
    assert fused["both"] == expected < fused["one"] and fused["both"] <= fused["other"]
PYTHON
echo "as seen"

#!/usr/bin/env bash
# ir-measures 0.4.3.
# Expected: RR is never below RR@10 of the same run, and one call breaks ties by one rule.
# Seen: of three documents with one score, RR@10 finds the relevant one first (1.0) and RR last (0.333). RR is trec_eval's, which orders
# equal scores by falling document id; RR@10 comes from another provider, which orders them by rising id. Renamed documents change both.
# This fails when both agree.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install ir-measures==0.4.3 pytrec-eval-terrier==0.5.11
cd "$folder"
venv/bin/python - <<'PYTHON'
import ir_measures
from ir_measures import RR

for relevant, whole, first_ten in (("a", 1 / 3, 1.0), ("c", 1.0, 1 / 3)):
    run = {"q": {name: 1.0 for name in "bca"}}
    found = ir_measures.calc_aggregate([RR, RR @ 10], {"q": {relevant: 1}}, run)
    print(relevant, found)
    assert abs(found[RR] - whole) < 1e-6 and abs(found[RR @ 10] - first_ten) < 1e-6
PYTHON
echo "as seen"

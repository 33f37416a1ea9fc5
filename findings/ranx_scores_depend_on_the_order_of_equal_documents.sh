#!/usr/bin/env bash
# ranx 0.3.21 and pytrec-eval-terrier 0.5.11.
# Expected: a run has one score. Its documents are keys of a dictionary, whose order says nothing.
# Seen: among equal scores ranx keeps the order of the dictionary: MRR is 1, 1/2 or 1/3 for one run that is written in three orders.
# trec_eval orders equal scores by document id and gives 1/3 for each.
# This fails when ranx gives one score to the three.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install ranx==0.3.21 pytrec-eval-terrier==0.5.11
cd "$folder"
venv/bin/python - <<'PYTHON'
import pytrec_eval
from ranx import Qrels, Run, evaluate

judged, seen, official = {"q": {"a": 1}}, [], []
for order in ("abc", "bac", "bca"):
    run = {"q": {name: 1.0 for name in order}}
    seen.append(float(evaluate(Qrels(judged), Run(run), "mrr")))
    official.append(pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(run)["q"]["recip_rank"])
print(seen, official)
assert seen == [1, 1 / 2, 1 / 3] and [round(each, 6) for each in official] == [0.333333] * 3
PYTHON
echo "as seen"

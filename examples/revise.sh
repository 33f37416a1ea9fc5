#!/usr/bin/env bash
# What a changed corpus does to a trained model, on generated worlds: `make revise`, or  examples/revise.sh [FOLDER].
# Trains the demo's chain for SEEDS seeds, changes 1, 5 and 20 % of the facts in the corpus alone, and writes PAGE.
# A second run finds everything that is made. A seed whose RESULTS/seed-N.json exists is not run again, so these small files
# are all that must be kept to continue on another machine. Hardware: two CPU cores and about 15 minutes for each seed.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-revise}
SEEDS=${SEEDS:-3}
JOBS=${JOBS:-2} # stages at a time
PAGE=${PAGE:-$FOLDER/report.md}
RESULTS=${RESULTS:-$FOLDER/results} # one JSON file for each seed, from which the page is written
SIZE=${SIZE:-demo}
SHARES=${SHARES:-0.01 0.05 0.2} # of the facts that change
STEPS=${STEPS:-300}             # of training the closed-book models
PIPELINE=${PIPELINE:-$HERE/revise.yaml}
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # models this small gain nothing from a second thread

for ((seed = 0; seed < SEEDS; seed++)); do
  if [ -e "$RESULTS/seed-$seed.json" ]; then continue; fi
  OWN=$FOLDER/seed-$seed
  if [ ! -e "$OWN/world/world.json" ]; then
    "$PYTHON" "$HERE/world/make_world.py" --out "$OWN/world" --seed "$seed" --size "$SIZE" >&2
  fi
  realmctl run "$PIPELINE" --jobs "$JOBS" --workspace "$OWN/artifacts" --var "world=$OWN/world" --var "seed=$seed" >&2
  for share in $SHARES; do
    "$PYTHON" "$HERE/world/change_facts.py" "$OWN/world" --share "$share" --out "$OWN/change-$share" >&2
  done
  "$PYTHON" "$HERE/revise/experiment.py" "$OWN" --seed "$seed" --steps "$STEPS" --shares $SHARES --results "$RESULTS/seed-$seed.json" >&2
done
"$PYTHON" "$HERE/revise/make_page.py" "$RESULTS" --seeds "$SEEDS" --page "$PAGE"

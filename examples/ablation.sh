#!/usr/bin/env bash
# REALM's ablations on generated worlds: `make ablation`, or  examples/ablation.sh [FOLDER].
# Tunes every arm on the dev seeds of ablation/grid.yaml, then runs each arm with its best rate on the test seeds.
# Every run adds a line to RESULTS. A run that is there with the same settings is skipped, so after an interruption, or on another
# machine, run the same command again. Prints the tables, and writes PAGE and its plots from RESULTS alone.
# JOBS seeds run side by side. ablation/make_page.py shows what is finished so far.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-ablation}                          # worlds and artifacts; it may be deleted at any time
JOBS=${JOBS:-2}
GRID=${GRID:-$HERE/ablation/grid.yaml}
RESULTS=${RESULTS:-$FOLDER/ablation/runs.jsonl}
PAGE=${PAGE:-$FOLDER/ablation/report.md}
ARMS=${ARMS:-}                                 # only these arms, by their names in ablation/arms.py
VARS=${VARS:-}                                 # more variables of the pipelines: VARS="steps=20 qa_steps=5"
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}   # JOBS seeds share the cores; other threads would round otherwise

more=(--results "$RESULTS" --grid "$GRID" --jobs "$JOBS" --arms $ARMS) # $ARMS is words, so without quotes
for pair in $VARS; do more+=(--var "$pair"); done

"$PYTHON" "$HERE/ablation/run.py" "$FOLDER" --split dev "${more[@]}"
"$PYTHON" "$HERE/ablation/run.py" "$FOLDER" --split test "${more[@]}"
"$PYTHON" "$HERE/ablation/make_page.py" "$RESULTS" --grid "$GRID" --page "$PAGE"

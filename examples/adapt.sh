#!/usr/bin/env bash
# Which training without labels adapts a retriever to a domain, and what it brings: `make adapt`, or
#   examples/adapt.sh FOLDER ENCODER DOMAIN ...
# FOLDER: where artifacts go. ENCODER: folder of a sentence encoder. DOMAIN: NAME=FOLDER[,SPLIT][,pages] of a BEIR folder, or NAME=FILE.json.
# Each measurement is appended to RESULTS as soon as it is made, and is not made again. PAGE is written from RESULTS alone. Hardware: one
# CPU core; whole seeds come first.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || { echo "usage: examples/adapt.sh FOLDER ENCODER NAME=FOLDER[,SPLIT][,pages] ..." >&2; exit 2; }
FOLDER=$1 ENCODER=$2
shift 2
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-0}
ARMS=${ARMS:-} # arms, separated by commas; all of them where it is empty
SEARCHES=${SEARCHES:-} # dense, hybrid (by ranks), scores, chosen (by scores, BM25's weight by cloze recall)
READER_LM=${READER_LM:-} # causal language model of the arms `causal` and `generated`: a folder or a hub id
RESULTS=${RESULTS:-$HERE/../docs/results/adapt/runs.jsonl}
PAGE=${PAGE:-$HERE/../docs/results/adapt.md}
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

domains=()
for each in "$@"; do domains+=(--domain "$each"); done
"$PYTHON" "$HERE/adapt/measure_ways.py" --encoder "$ENCODER" --workspace "$FOLDER" --results "$RESULTS" --seeds "$SEEDS" --first-seed "$FIRST_SEED" ${ARMS:+--arms "$ARMS"} ${SEARCHES:+--searches "$SEARCHES"} ${READER_LM:+--reader-lm "$READER_LM"} "${domains[@]}"
"$PYTHON" "$HERE/adapt/gains_page.py" "$RESULTS" --page "$PAGE"

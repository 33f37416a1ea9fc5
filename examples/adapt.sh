#!/usr/bin/env bash
# Which training without labels adapts a retriever to a domain, and what it brings: `make adapt`, or
#   examples/adapt.sh FOLDER ENCODER DOMAIN ...
# FOLDER: where artifacts go. ENCODER: folder of a sentence encoder. DOMAIN: NAME=FOLDER[,SPLIT][,pages] of a BEIR folder, or NAME=FILE.json.
# Each measurement is appended to RESULTS as soon as it is made, and is not made again. PAGE is written from RESULTS alone. Whole seeds come
# first. JOBS=4: that many sets at once, as a GPU has room for. Hardware: one CPU core, or a GPU.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 3 ] || { echo "usage: examples/adapt.sh FOLDER ENCODER NAME=FOLDER[,SPLIT][,pages] ..." >&2; exit 2; }
FOLDER=$1 ENCODER=$2
shift 2
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-0}
ARMS=${ARMS:-} # arms, separated by commas; all of them where it is empty
SEARCHES=${SEARCHES:-} # dense, hybrid (by ranks), profile (as a search fuses without an option), cloze
LM=${LM:-} ENDPOINT=${ENDPOINT:-} # language model that writes and judges questions (SEARCHES=generated,judged), and the address of its server
READER_LM=${READER_LM:-} # causal language model of the arms `causal` and `generated`: a folder or a hub id
RESULTS=${RESULTS:-$HERE/../docs/results/adapt/runs.jsonl}
PAGE=${PAGE:-$HERE/../docs/results/adapt/report.md}
JOBS=${JOBS:-1}
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

measure() { # SEED DOMAIN
  "$PYTHON" "$HERE/adapt/measure_ways.py" --encoder "$ENCODER" --workspace "$FOLDER" --results "$RESULTS" --seeds 1 --first-seed "$1" ${ARMS:+--arms "$ARMS"} ${SEARCHES:+--searches "$SEARCHES"} ${READER_LM:+--reader-lm "$READER_LM"} ${LM:+--lm "$LM"} ${ENDPOINT:+--endpoint "$ENDPOINT"} --domain "$2"
}
measuring=() failed=0
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  for domain in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
    measure "$seed" "$domain" &
    measuring+=($!)
  done
done
for each in "${measuring[@]}"; do wait "$each" || failed=$?; done
"$PYTHON" "$HERE/adapt/gains_page.py" "$RESULTS" --page "$PAGE"
exit "$failed"

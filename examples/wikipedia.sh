#!/usr/bin/env bash
# The paper's table 2 on real articles:  examples/wikipedia.sh FOLDER CORPUS NAME=FILE ...
# CORPUS: articles in any format that `realmctl chunk` reads. NAME=FILE: question files; the names are nq, webq, trec and selqa. Questions whose
# answer the corpus does not hold are left out. ENCODER: a sentence encoder that was not trained on questions.
# Each measurement is appended to RESULTS as soon as it is made, and is not made again; every stage resumes. PAGE is written from RESULTS alone.
# ARMS="start ict realm orqa" measures some arms. VARS="realm=100 further=80" replaces variables of wikipedia.yaml. JOBS=6: that many at once,
# as a GPU has room for; a step that two of them need is made by one. Hardware: one CPU core, or a GPU.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: examples/wikipedia.sh FOLDER CORPUS NAME=FILE ..." >&2; exit 2; }
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$1 CORPUS=$2
shift 2
SEEDS=${SEEDS:-1}
FIRST_SEED=${FIRST_SEED:-0}
ARMS=${ARMS:-bm25 start ict orqa realm random random-span stale}
VARS=${VARS:-}
JOBS=${JOBS:-1}
WORDPIECES=${WORDPIECES:-96} # of a block
RESULTS=${RESULTS:-$FOLDER/runs.jsonl}
PAGE=${PAGE:-$FOLDER/report.md}
NOTES=${NOTES:-} # a Markdown file that ends the page
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
: "${ENCODER:?ENCODER must name the folder of a sentence encoder}"

more=(--var "max_wordpieces=$WORDPIECES")
for pair in $VARS; do more+=(--var "$pair"); done
mkdir -p "$FOLDER/world/corpus"
[ -e "$FOLDER/world/corpus/$(basename "$CORPUS")" ] || cp -r "$CORPUS" "$FOLDER/world/corpus/"
realmctl chunk "$FOLDER/world/corpus" --tokenizer "$ENCODER" --max-wordpieces "$WORDPIECES" --out "$FOLDER/artifacts/blocks" >&2
"$PYTHON" "$HERE/recorded/held_questions.py" "$FOLDER/artifacts/blocks" "$FOLDER/world" "$@" >&2
measure() { # SEED ARM
  "$PYTHON" "$HERE/recorded/record.py" "$HERE/wikipedia.yaml" --world "$FOLDER/world" --practice "$ENCODER" --seed "$1" \
    --workspace "$FOLDER/artifacts" --results "$RESULTS" --outputs "$2.*" "${more[@]}"
}
measuring=() failed=0
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  for arm in $ARMS; do
    while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
    measure "$seed" "$arm" &
    measuring+=($!)
  done
done
for each in "${measuring[@]}"; do wait "$each" || failed=$?; done
if [ -e "$RESULTS" ]; then
  "$PYTHON" "$HERE/recorded/wikipedia_page.py" "$RESULTS" --page "$PAGE" ${NOTES:+--notes "$NOTES"} >&2
fi
exit "$failed"

#!/usr/bin/env bash
# The paper's table 2 on real articles:  examples/wikipedia.sh FOLDER CORPUS NAME=FILE ...
# CORPUS: articles in any format that `realmctl chunk` reads. NAME=FILE: question files; the names are nq, webq, trec and selqa. Questions whose
# answer the corpus does not hold are left out. ENCODER: a sentence encoder that was not trained on questions.
# Each measurement is appended to RESULTS as soon as it is made, and is not made again; every stage resumes. PAGE is written from RESULTS alone.
# ARMS="start ict realm orqa" measures some arms, all seeds of the first before the second. VARS="realm=100 further=80" replaces variables of
# wikipedia.yaml. JOBS=6: that many at once, as a GPU has room for; a step that two of them need is made by one. SCALE=gpu: the steps and batches
# of the page, six at once. MINUTES=15: after that many minutes running steps stop at a checkpoint, and the page has what was measured; the same
# command goes on. PLAN=1 says first what the run takes on this machine. Hardware: one CPU core, or a GPU.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: examples/wikipedia.sh FOLDER CORPUS NAME=FILE ..." >&2; exit 2; }
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$1 CORPUS=$2
shift 2
SEEDS=${SEEDS:-1}
FIRST_SEED=${FIRST_SEED:-0}
ARMS=${ARMS:-orqa realm ict bm25 start random random-span stale}
SCALE=${SCALE:-laptop}
case $SCALE in
laptop) sized="" ;;
gpu)
  sized="batch=64 candidates=8 checkpoint_every=100 further=1810 further_batch=512 ict=200 ict_micro=0 micro=32 practice_batch=64 practice_steps=2400
    precision=bf16 realm=800 refresh=inline refresh_every=200 retriever_lr=2e-5"
  ;;
*)
  echo "wikipedia.sh: SCALE is laptop or gpu, not $SCALE." >&2
  exit 2
  ;;
esac
VARS="$sized ${VARS:-}" # of two values of one variable the last counts
JOBS=${JOBS:-$([ "$SCALE" = gpu ] && echo 6 || echo 1)}
MINUTES=${MINUTES:-}
PLAN=${PLAN:-}
WORDPIECES=${WORDPIECES:-96} # of a block
RESULTS=${RESULTS:-$FOLDER/runs.jsonl}
PAGE=${PAGE:-$FOLDER/report.md}
NOTES=${NOTES:-} # a Markdown file that ends the page
READER_LM=${READER_LM:-} # folder of a causal language model, for the arms weak-causal, weak-replug and weak-revela
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
: "${ENCODER:?ENCODER must name the folder of a sentence encoder}"

more=(--var "max_wordpieces=$WORDPIECES")
for pair in $VARS; do more+=(--var "$pair"); done
mkdir -p "$FOLDER/world/corpus"
[ -e "$FOLDER/world/corpus/$(basename "$CORPUS")" ] || cp -r "$CORPUS" "$FOLDER/world/corpus/"
realmctl chunk "$FOLDER/world/corpus" --tokenizer "$ENCODER" --max-wordpieces "$WORDPIECES" --out "$FOLDER/artifacts/blocks" >&2
"$PYTHON" "$HERE/recorded/held_questions.py" "$FOLDER/artifacts/blocks" "$FOLDER/world" "$@" >&2
if [ -n "$PLAN" ]; then
  planned=()
  for arm in $ARMS; do
    for name in nq webq trec selqa; do planned+=(--until "$arm.$name"); done
  done
  realmctl plan "$HERE/wikipedia.yaml" "${planned[@]}" ${READER_LM:+--var "lm=$READER_LM"} --var "world=$FOLDER/world" --var "practice=$ENCODER" "${more[@]}"
fi
left() { echo $((MINUTES * 60 - SECONDS)); } # seconds
is_over() { [ -n "$MINUTES" ] && [ "$(left)" -le 0 ]; }
measure() { # SEED ARM
  local limited=()
  if is_over; then return 0; fi
  if [ -n "$MINUTES" ]; then limited=(timeout --signal=INT --kill-after=120 "$(left)"); fi
  "${limited[@]}" "$PYTHON" "$HERE/recorded/record.py" "$HERE/wikipedia.yaml" --world "$FOLDER/world" --practice "$ENCODER" --seed "$1" \
    --workspace "$FOLDER/artifacts" --results "$RESULTS" --outputs "$2.*" ${READER_LM:+--lm "$READER_LM"} "${more[@]}"
}
measuring=() failed=0
for arm in $ARMS; do
  for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
    while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do wait -n || true; done
    measure "$seed" "$arm" &
    measuring+=($!)
  done
done
for each in "${measuring[@]}"; do wait "$each" || failed=$?; done
if is_over; then
  echo "wikipedia.sh: the $MINUTES minutes are over. The same command goes on where it stopped." >&2
  [ "$failed" != 124 ] || failed=0 # timeout's own
fi
if [ -e "$RESULTS" ]; then
  "$PYTHON" "$HERE/recorded/wikipedia_page.py" "$RESULTS" --page "$PAGE" ${NOTES:+--notes "$NOTES"} >&2
fi
exit "$failed"

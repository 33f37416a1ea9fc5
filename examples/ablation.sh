#!/usr/bin/env bash
# REALM's ablations on generated worlds: `make ablation`, or  examples/ablation.sh [FOLDER].
# Runs ablation.yaml for SEEDS seeds from FIRST_SEED on, each with a world of its own (and that world with half of its sentences on strangers); prints the table and writes PAGE and its plots.
# JOBS stages run at a time: one each of so many seeds; of seeds that are left over, such as a lone one, several each.
# A run that was broken off goes on with the same command; ablation/make_page.py shows what there is so far.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-ablation}
SEEDS=${SEEDS:-5}
FIRST_SEED=${FIRST_SEED:-0}                    # others than those that a recipe was chosen on
JOBS=${JOBS:-2}                               # stages at a time
SPLIT=${SPLIT:-test}                          # questions to score on: test, or dev while choosing settings
SIZE=${SIZE:-demo}                            # of the worlds
VARS=${VARS:-}                                # more variables of the pipeline: VARS="steps=20 qa-steps=5"
PIPELINE=${PIPELINE:-$HERE/ablation.yaml}
PAGE=${PAGE:-$FOLDER/ablation.md}
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # models this small gain nothing from a second thread

more=()
for pair in $VARS; do more+=(--var "$pair"); done

make_world() { # FOLDER OFF_CORPUS_SHARE: unless it is there
  if [ ! -e "$1/world.json" ]; then
    "$PYTHON" "$HERE/world/make_world.py" --out "$1" --seed "$seed" --size "$SIZE" --off-corpus-share "$2" >&2
  fi
}

run_seed() { # SEED
  local seed=$1 run=$FOLDER/seed-$1
  make_world "$run/world" 0
  make_world "$run/mixed" 0.5
  realmctl run "$PIPELINE" --workspace "$run/artifacts" --jobs "$JOBS" --var "world=$run/world" --var "mixed=$run/mixed" --var "seed=$seed" --var "split=$SPLIT" "${more[@]}" >&2
  "$PYTHON" "$HERE/world/tagger_recall.py" "$run/world" "$run/artifacts/spans"
}

if [ -n "${ONLY_SEED:-}" ]; then # one of several at a time, as started below
  run_seed "$ONLY_SEED"
  exit
fi
for ((done = 0; done < SEEDS; done += JOBS)); do # JOBS seeds side by side; fewer that are left over share the jobs
  together=$((SEEDS - done < JOBS ? SEEDS - done : JOBS))
  seq $((FIRST_SEED + done)) $((FIRST_SEED + done + together - 1)) |
    xargs -P "$together" -I{} env ONLY_SEED={} JOBS=$((JOBS / together)) bash "${BASH_SOURCE[0]}" "$FOLDER"
done

command="make ablation FIRST_SEED=$FIRST_SEED SEEDS=$SEEDS JOBS=$JOBS SPLIT=$SPLIT SIZE=$SIZE${VARS:+ VARS=\"$VARS\"}"
"$PYTHON" "$HERE/ablation/make_page.py" "$FOLDER" --first-seed "$FIRST_SEED" --seeds "$SEEDS" --page "$PAGE" --command "$command"

#!/usr/bin/env bash
# REALM's ablations on generated worlds: `make ablation`, or  examples/ablation.sh [FOLDER].
# Runs ablation.yaml for SEEDS seeds, beginning with FIRST_SEED. Each seed has its own world, and that world with half of its sentences on strangers.
# Prints the table, and writes PAGE and its plots.
# JOBS stages run at a time: JOBS seeds side by side with one stage each. The seeds of the last round, if fewer, divide the jobs.
# Hardware: two CPU cores; the page of five seeds took 97 minutes on them. After an interruption, run the same command again.
# ablation/make_page.py shows what is finished so far.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${1:-ablation}
SEEDS=${SEEDS:-5}
FIRST_SEED=${FIRST_SEED:-0}                    # for a published page, a seed on which the recipe was not chosen
JOBS=${JOBS:-2}                               # stages at a time
SPLIT=${SPLIT:-test}                          # questions to score: test, or dev while choosing settings
SIZE=${SIZE:-demo}                            # of the worlds
VARS=${VARS:-}                                # more variables of the pipeline: VARS="steps=20 qa-steps=5"
PIPELINE=${PIPELINE:-$HERE/ablation.yaml}
PAGE=${PAGE:-$FOLDER/ablation.md}
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # models this small gain nothing from a second thread

more=()
for pair in $VARS; do more+=(--var "$pair"); done

make_world() { # FOLDER OFF_CORPUS_SHARE: generate a world unless it exists
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

if [ -n "${ONLY_SEED:-}" ]; then # this process was started below, for one seed
  run_seed "$ONLY_SEED"
  exit
fi
for ((done = 0; done < SEEDS; done += JOBS)); do # JOBS seeds side by side; fewer seeds divide the jobs
  together=$((SEEDS - done < JOBS ? SEEDS - done : JOBS))
  seq $((FIRST_SEED + done)) $((FIRST_SEED + done + together - 1)) |
    xargs -P "$together" -I{} env ONLY_SEED={} JOBS=$((JOBS / together)) bash "${BASH_SOURCE[0]}" "$FOLDER"
done

command="make ablation FIRST_SEED=$FIRST_SEED SEEDS=$SEEDS JOBS=$JOBS SPLIT=$SPLIT SIZE=$SIZE${VARS:+ VARS=\"$VARS\"}"
"$PYTHON" "$HERE/ablation/make_page.py" "$FOLDER" --first-seed "$FIRST_SEED" --seeds "$SEEDS" --page "$PAGE" --command "$command"

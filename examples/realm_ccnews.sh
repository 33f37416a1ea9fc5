#!/usr/bin/env bash
# REALM as in the paper's best row (arXiv 2002.08909, table 1): X = CC-News, Z = Wikipedia.
# CCNEWS is a file or folder of JSON lines {"title", "text"}. Defaults are the paper's settings; override any of them.
set -euo pipefail
if [ $# -ne 3 ]; then
  echo "usage: realm_ccnews.sh DUMP CCNEWS WORKSPACE    (TRAIN and DEV name the question files)" >&2
  exit 2
fi
DUMP=$1 CCNEWS=$2
export REALMCTL_WORKSPACE=$3 # every stage reads its inputs from here and writes its output here
NEWS=$REALMCTL_WORKSPACE/news

BERT=${BERT:-google-bert/bert-base-uncased}  # where retriever and reader start
TOKENIZER=${TOKENIZER:-$BERT}
TAGGER=${TAGGER:-hf:dslim/bert-base-NER}     # names by a CoNLL-2003 tagger, dates by rule
MAX_WORDPIECES=${MAX_WORDPIECES:-288}
ICT_STEPS=${ICT_STEPS:-100000} ICT_BATCH=${ICT_BATCH:-4096} ICT_LR=${ICT_LR:-1e-4}
INDEX=${INDEX:-hnsw}
STEPS=${STEPS:-200000} BATCH=${BATCH:-512} LR=${LR:-3e-5} CANDIDATES=${CANDIDATES:-8}
REFRESH=${REFRESH:-background} REFRESH_EVERY=${REFRESH_EVERY:-500} MAX_INDEX_AGE=${MAX_INDEX_AGE:-2000}
EPOCHS=${EPOCHS:-2} QA_BATCH=${QA_BATCH:-1} QA_LR=${QA_LR:-1e-5}
RETRIEVER_BEAM=${RETRIEVER_BEAM:-5000} READER_BEAM=${READER_BEAM:-5}
TRAIN=${TRAIN:-NQ-open.train.jsonl} DEV=${DEV:-NQ-open.dev.jsonl}

blocks=$(realmctl chunk "$DUMP" --tokenizer "$TOKENIZER" --max-wordpieces "$MAX_WORDPIECES")
realmctl chunk "$CCNEWS" --tokenizer "$blocks/tokenizer" --max-wordpieces "$MAX_WORDPIECES" --out "$NEWS"
realmctl tag --blocks "$NEWS" --tagger "$TAGGER"
realmctl ict-init --bert "$BERT" --steps "$ICT_STEPS" --batch-size "$ICT_BATCH" --lr "$ICT_LR" --mask-rate 0.9
realmctl embed
realmctl build-index --type "$INDEX"
realmctl pretrain --bert "$BERT" --candidates "$CANDIDATES" --marginal token --steps "$STEPS" --batch-size "$BATCH" --lr "$LR" --refresh "$REFRESH" --refresh-every "$REFRESH_EVERY" --max-index-age "$MAX_INDEX_AGE"
realmctl finetune --questions "$TRAIN" --epochs "$EPOCHS" --batch-size "$QA_BATCH" --lr "$QA_LR" --retriever-beam "$RETRIEVER_BEAM" --reader-beam "$READER_BEAM"
realmctl eval-em --questions "$DEV" --scorer orqa

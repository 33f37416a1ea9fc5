#!/usr/bin/env bash
# REALM with X = CC-News and Z = Wikipedia: the paper's best row (arXiv 2002.08909, table 1).
# CCNEWS is a file or folder of JSON lines {"title", "text"}.
#
# Settings, hardware, flags on one GPU and variables: as in realm_wiki.sh, whose header says them. Only the sentences differ.
# Nobody has run this script at the paper's size; it is tested at toy scale on a CPU.
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
TAGGER=${TAGGER:-hf:dslim/bert-base-NER}     # finds names; dates are found by rule
TRAIN=${TRAIN:-NQ-open.train.jsonl} DEV=${DEV:-NQ-open.dev.jsonl}
# Set in the environment to override a preset: MAX_WORDPIECES, ICT_STEPS, ICT_BATCH, ICT_MICRO_BATCH, ICT_LR, INDEX, STEPS, BATCH, LR, CANDIDATES,
# REFRESH, REFRESH_EVERY, REFRESH_DEVICE, MAX_INDEX_AGE, QA_STEPS, QA_BATCH, QA_LR, RETRIEVER_BEAM, READER_BEAM, MICRO_BATCH.

blocks=$(realmctl chunk "$DUMP" --preset realm --tokenizer "$TOKENIZER" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"})
realmctl chunk "$CCNEWS" --preset realm --tokenizer "$blocks/tokenizer" --out "$NEWS" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"}
realmctl tag --preset realm --blocks "$NEWS" --tagger "$TAGGER"
realmctl ict-init --preset ict --bert "$BERT" ${ICT_STEPS:+--steps "$ICT_STEPS"} ${ICT_BATCH:+--batch-size "$ICT_BATCH"} ${ICT_LR:+--lr "$ICT_LR"} ${ICT_MICRO_BATCH:+--micro-batch "$ICT_MICRO_BATCH"}
realmctl embed --preset realm
realmctl build-index --preset realm ${INDEX:+--type "$INDEX"}
realmctl pretrain --preset realm --bert "$BERT" \
  ${STEPS:+--steps "$STEPS"} ${BATCH:+--batch-size "$BATCH"} ${LR:+--lr "$LR"} ${CANDIDATES:+--candidates "$CANDIDATES"} ${MICRO_BATCH:+--micro-batch "$MICRO_BATCH"} \
  ${REFRESH:+--refresh "$REFRESH"} ${REFRESH_EVERY:+--refresh-every "$REFRESH_EVERY"} ${REFRESH_DEVICE:+--refresh-device "$REFRESH_DEVICE"} ${MAX_INDEX_AGE:+--max-index-age "$MAX_INDEX_AGE"}
realmctl finetune --preset orqa-nq --questions "$TRAIN" \
  ${QA_STEPS:+--steps "$QA_STEPS"} ${QA_BATCH:+--batch-size "$QA_BATCH"} ${QA_LR:+--lr "$QA_LR"} ${RETRIEVER_BEAM:+--retriever-beam "$RETRIEVER_BEAM"} ${READER_BEAM:+--reader-beam "$READER_BEAM"}
realmctl eval-em --preset orqa-nq --questions "$DEV"

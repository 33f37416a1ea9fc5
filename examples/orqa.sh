#!/usr/bin/env bash
# ORQA (arXiv 1906.00300), REALM's baseline: the inverse cloze task warms the retriever up, and fine-tuning follows at once.
#
# Settings: those of the paper and its official code, from the presets ict and orqa-nq.
# Hardware, flags on one GPU: as in realm_wiki.sh, whose header says them. Nobody has run this script at the paper's size (ICT of
#   100,000 steps with batches of 4,096); it is tested at toy scale on a CPU.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: orqa.sh DUMP WORKSPACE    (TRAIN and DEV name the question files)" >&2
  exit 2
fi
DUMP=$1
export REALMCTL_WORKSPACE=$2 # every stage reads its inputs from here and writes its output here

BERT=${BERT:-google-bert/bert-base-uncased}  # where retriever and reader start
TOKENIZER=${TOKENIZER:-$BERT}
TRAIN=${TRAIN:-NQ-open.train.jsonl} DEV=${DEV:-NQ-open.dev.jsonl}
# Set in the environment to override a preset: MAX_WORDPIECES, ICT_STEPS, ICT_BATCH, ICT_MICRO_BATCH, ICT_LR, INDEX, QA_STEPS, QA_BATCH, QA_LR,
# RETRIEVER_BEAM, READER_BEAM.

realmctl chunk "$DUMP" --preset ict --tokenizer "$TOKENIZER" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"}
realmctl ict-init --preset ict --bert "$BERT" ${ICT_STEPS:+--steps "$ICT_STEPS"} ${ICT_BATCH:+--batch-size "$ICT_BATCH"} ${ICT_LR:+--lr "$ICT_LR"} ${ICT_MICRO_BATCH:+--micro-batch "$ICT_MICRO_BATCH"}
realmctl embed
realmctl build-index --preset orqa-nq ${INDEX:+--type "$INDEX"}
realmctl finetune --preset orqa-nq --retriever "$REALMCTL_WORKSPACE/retriever" --index "$REALMCTL_WORKSPACE/index" --bert "$BERT" --questions "$TRAIN" \
  ${QA_STEPS:+--steps "$QA_STEPS"} ${QA_BATCH:+--batch-size "$QA_BATCH"} ${QA_LR:+--lr "$QA_LR"} ${RETRIEVER_BEAM:+--retriever-beam "$RETRIEVER_BEAM"} ${READER_BEAM:+--reader-beam "$READER_BEAM"}
realmctl eval-em --preset orqa-nq --questions "$DEV"

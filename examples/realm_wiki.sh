#!/usr/bin/env bash
# REALM with X = Z = Wikipedia (arXiv 2002.08909, section 4 and table 1).
#
# Settings: those of the papers and their official code, from the presets ict, realm and orqa-nq;
#   `realmctl pretrain --preset realm --dry-run` prints them. The paper's tagger was never published. The default tagger here is a
#   public one, trained on the same data (CoNLL-2003).
# Hardware: the paper used 80 TPUs. Nobody has run this script at that size: no GPU was at hand. What is tested is this script at
#   toy scale on a CPU. Expect BERT-base, 13 million blocks, 7 GB of embeddings, and 200,000 steps of 512 sentences with 8 candidates.
# One GPU: compute large batches in parts, and shrink what cannot be computed in parts. A starting point, not measured:
#     MICRO_BATCH=8 ICT_MICRO_BATCH=64 BATCH=64 STEPS=20000 REFRESH_EVERY=500 examples/realm_wiki.sh DUMP WORKSPACE
#   ICT's negatives are the blocks of the whole batch, whatever the micro-batch. With several GPUs, run
#   `torchrun --nproc-per-node N -m realmctl ict-init ...` in the same workspace first; this script then finds the retriever.
#   REFRESH_DEVICE=cuda:1 gives the index refresh a GPU of its own. INDEX=hnsw searches approximately.
# A CPU: toy sizes only, such as ICT_STEPS=20 ICT_BATCH=8 STEPS=20 BATCH=4 QA_STEPS=20 and a small BERT.
set -euo pipefail
if [ $# -ne 2 ]; then
  echo "usage: realm_wiki.sh DUMP WORKSPACE    (TRAIN and DEV name the question files)" >&2
  exit 2
fi
DUMP=$1
export REALMCTL_WORKSPACE=$2 # every stage reads its inputs from here and writes its output here

BERT=${BERT:-google-bert/bert-base-uncased}  # where retriever and reader start
TOKENIZER=${TOKENIZER:-$BERT}
TAGGER=${TAGGER:-hf:dslim/bert-base-NER}     # finds names; dates are found by rule
TRAIN=${TRAIN:-NQ-open.train.jsonl} DEV=${DEV:-NQ-open.dev.jsonl}
# Set in the environment to override a preset: MAX_WORDPIECES, ICT_STEPS, ICT_BATCH, ICT_MICRO_BATCH, ICT_LR, INDEX, STEPS, BATCH, LR, CANDIDATES,
# REFRESH, REFRESH_EVERY, REFRESH_DEVICE, MAX_INDEX_AGE, QA_STEPS, QA_BATCH, QA_LR, RETRIEVER_BEAM, READER_BEAM, MICRO_BATCH.

realmctl chunk "$DUMP" --preset realm --tokenizer "$TOKENIZER" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"}
realmctl tag --preset realm --tagger "$TAGGER"
realmctl ict-init --preset ict --bert "$BERT" ${ICT_STEPS:+--steps "$ICT_STEPS"} ${ICT_BATCH:+--batch-size "$ICT_BATCH"} ${ICT_LR:+--lr "$ICT_LR"} ${ICT_MICRO_BATCH:+--micro-batch "$ICT_MICRO_BATCH"}
realmctl embed --preset realm
realmctl build-index --preset realm ${INDEX:+--type "$INDEX"}
realmctl pretrain --preset realm --bert "$BERT" \
  ${STEPS:+--steps "$STEPS"} ${BATCH:+--batch-size "$BATCH"} ${LR:+--lr "$LR"} ${CANDIDATES:+--candidates "$CANDIDATES"} ${MICRO_BATCH:+--micro-batch "$MICRO_BATCH"} \
  ${REFRESH:+--refresh "$REFRESH"} ${REFRESH_EVERY:+--refresh-every "$REFRESH_EVERY"} ${REFRESH_DEVICE:+--refresh-device "$REFRESH_DEVICE"} ${MAX_INDEX_AGE:+--max-index-age "$MAX_INDEX_AGE"}
realmctl finetune --preset orqa-nq --questions "$TRAIN" \
  ${QA_STEPS:+--steps "$QA_STEPS"} ${QA_BATCH:+--batch-size "$QA_BATCH"} ${QA_LR:+--lr "$QA_LR"} ${RETRIEVER_BEAM:+--retriever-beam "$RETRIEVER_BEAM"} ${READER_BEAM:+--reader-beam "$READER_BEAM"}
realmctl eval-em --preset orqa-nq --questions "$DEV"

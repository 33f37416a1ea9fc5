#!/usr/bin/env bash
# REALM across languages: sentences X in one language, knowledge Z in another, with a multilingual encoder. The discussion of the paper
# (arXiv 2002.08909, section 6) names this setting as the next step. A retriever that was trained on X alone finds blocks of Z for questions in
# the language of X.
#
# SENTENCES and KNOWLEDGE are corpora in any format that chunk reads; the languages are codes such as ko and en. The names of the sentences come
# from links (a dump) or titles; TAGGER=hf:MODEL finds them in other text. RETRIEVER is an encoder that was trained to retrieve in both
# languages; RETRIEVER=ict makes one from BERT by the inverse cloze task. Both have the same tokenizer, that of BERT.
# Nobody has run this script at full size; it is tested at toy scale on a CPU.
set -euo pipefail
if [ $# -ne 5 ]; then
  echo "usage: crosslingual.sh SENTENCES LANGUAGE KNOWLEDGE LANGUAGE WORKSPACE    (TRAIN and DEV name question files, if there are any)" >&2
  exit 2
fi
SENTENCES=$1 X=$2 KNOWLEDGE=$3 Z=$4
export REALMCTL_WORKSPACE=$5 # every stage reads its inputs from here and writes its output here
ASKING=$REALMCTL_WORKSPACE/sentences

BERT=${BERT:-FacebookAI/xlm-roberta-base}               # where the reader starts: it needs a masked-language-model head
RETRIEVER=${RETRIEVER:-intfloat/multilingual-e5-small}  # same tokenizer
TOKENIZER=${TOKENIZER:-$BERT}
TAGGER=${TAGGER:-auto}
# Set in the environment to override a default: MAX_WORDPIECES, ICT_STEPS, ICT_BATCH, INDEX, STEPS, BATCH, CANDIDATES, REFRESH, REFRESH_EVERY,
# MAX_INDEX_AGE, QA_STEPS, QA_BATCH, RETRIEVER_BEAM, READER_BEAM.

blocks=$(realmctl chunk "$KNOWLEDGE" --language "$Z" --tokenizer "$TOKENIZER" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"})
realmctl chunk "$SENTENCES" --language "$X" --tokenizer "$blocks/tokenizer" --out "$ASKING" ${MAX_WORDPIECES:+--max-wordpieces "$MAX_WORDPIECES"}
realmctl tag --blocks "$ASKING" --tagger "$TAGGER"
if [ "$RETRIEVER" = ict ]; then
  realmctl ict-init --bert "$BERT" ${ICT_STEPS:+--steps "$ICT_STEPS"} ${ICT_BATCH:+--batch-size "$ICT_BATCH"}
else
  realmctl import "$RETRIEVER" --scale 20
fi
realmctl embed
realmctl build-index ${INDEX:+--type "$INDEX"}
realmctl pretrain --bert "$BERT" ${STEPS:+--steps "$STEPS"} ${BATCH:+--batch-size "$BATCH"} ${CANDIDATES:+--candidates "$CANDIDATES"} \
  ${REFRESH:+--refresh "$REFRESH"} ${REFRESH_EVERY:+--refresh-every "$REFRESH_EVERY"} ${MAX_INDEX_AGE:+--max-index-age "$MAX_INDEX_AGE"}
if [ -n "${TRAIN:-}" ]; then
  realmctl finetune --questions "$TRAIN" ${QA_STEPS:+--steps "$QA_STEPS"} ${QA_BATCH:+--batch-size "$QA_BATCH"} \
    ${RETRIEVER_BEAM:+--retriever-beam "$RETRIEVER_BEAM"} ${READER_BEAM:+--reader-beam "$READER_BEAM"}
  realmctl eval-em --questions "${DEV:-$TRAIN}"
fi

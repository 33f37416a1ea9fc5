#!/usr/bin/env bash
# transformers 5.24.0 and tokenizers 0.23.3.
# Expected: AutoTokenizer splits text as the folder's tokenizer.json says, as tokenizers itself does with that file.
# Seen: where tokenizer_config.json names BertTokenizer (or BertTokenizerFast, DistilBertTokenizer), the vocabulary alone is taken from the
# file. Its normalizer, pre-tokenizer and post-processor are replaced by BERT's: accents go, words are split at hyphens, [CLS] and [SEP]
# are added. With PreTrainedTokenizerFast the file is obeyed. So an encoder with a tokenizer of its own gets other tokens, in silence.
# This fails when both agree.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install transformers==5.24.0 tokenizers==0.23.3
cd "$folder"
venv/bin/python - <<'PYTHON'
import json
import os

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "café", "a", "-", "b", "a-b"]
own = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
own.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
os.mkdir("bert")
own.save("bert/tokenizer.json")
with open("bert/config.json", "w") as out:
    json.dump({"model_type": "bert"}, out)
found = {}
for kind in ("BertTokenizer", "DistilBertTokenizer", "PreTrainedTokenizerFast"):
    with open("bert/tokenizer_config.json", "w") as out:
        json.dump({"tokenizer_class": kind}, out)
    loaded = AutoTokenizer.from_pretrained("bert")
    found[kind] = loaded.convert_ids_to_tokens(loaded("Café a-b")["input_ids"])
    print(kind, found[kind])
assert own.encode("Café a-b").tokens == found["PreTrainedTokenizerFast"] == ["café", "a-b"]
assert found["BertTokenizer"] == found["DistilBertTokenizer"] == ["[CLS]", "cafe", "a", "-", "b", "[SEP]"]
PYTHON
echo "as seen"

#!/usr/bin/env bash
# transformers 5.24.0, tokenizers 0.23.3 and sentencepiece 0.2.1.
# Expected: of a folder that model.save_pretrained wrote, config.json and weights, AutoTokenizer makes no tokenizer and raises, as it does for Llama's kind.
# Seen: it makes one of the special tokens alone, without a warning, and is_fast is True. For BERT, DistilBERT, ELECTRA, XLM-RoBERTa and ALBERT each word becomes
# the unknown token. For RoBERTa, GPT-2 and Qwen2 words vanish: a text has no tokens but those around it. A model then reads all texts of as
# many words as equal, so a folder whose tokenizer was forgotten gives scores and vectors that say nothing.
# This fails when one of them raises, or finds a word.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install transformers==5.24.0 tokenizers==0.23.3 sentencepiece==0.2.1
cd "$folder"
venv/bin/python - <<'PYTHON'
import json
import os

from transformers import AutoTokenizer

found = {}
for kind in ("bert", "distilbert", "electra", "xlm-roberta", "albert", "roberta", "gpt2", "qwen2", "llama"):
    os.mkdir(kind)
    with open(f"{kind}/config.json", "w") as out:
        json.dump({"model_type": kind}, out)
    try:
        loaded = AutoTokenizer.from_pretrained(kind)
    except ValueError:
        found[kind] = "raised"
    else:
        assert loaded.is_fast
        ids = loaded("the cold river", add_special_tokens=False)["input_ids"]
        found[kind] = "unknown" if ids == [loaded.unk_token_id] * 3 else "gone" if not ids else "other"
    print(kind, found[kind])
unknown, gone = ("bert", "distilbert", "electra", "xlm-roberta", "albert"), ("roberta", "gpt2", "qwen2")
assert found == {**dict.fromkeys(unknown, "unknown"), **dict.fromkeys(gone, "gone"), "llama": "raised"}
PYTHON
echo "as seen"

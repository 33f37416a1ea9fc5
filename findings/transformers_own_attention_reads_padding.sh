#!/usr/bin/env bash
# transformers 5.23.0.
# Expected: a model whose attention is an interface of one's own that calls transformers' own sdpa_attention_forward computes what it computed before.
# Seen: without a registered mask of the same name no mask is made at all, and nothing warns. Rows of a padded batch read the padding: logits of
# a Llama and states of a BERT change by .01 and more, so the vector of a text depends on what it is batched with. Rows without padding stay
# as they were, since a Llama's own order is kept. With AttentionMaskInterface.register(NAME, sdpa_mask) all is as before.
# This fails when padding is masked without that.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install torch==2.13.0 transformers==5.23.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import torch
from transformers import AttentionInterface, AttentionMaskInterface, BertConfig, BertModel, LlamaConfig, LlamaModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

AttentionInterface.register("own", sdpa_attention_forward)
sizes = dict(vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4)
ids = torch.randint(1, 50, (2, 6), generator=torch.Generator().manual_seed(0))
mask = torch.ones_like(ids)
padded = {"Llama": slice(0, 3), "BERT": slice(3, 6)}


def states(net, mask):
    with torch.no_grad():
        return net(input_ids=ids, attention_mask=mask).last_hidden_state


torch.manual_seed(0)
models = {"Llama": LlamaModel(LlamaConfig(**sizes)).eval(), "BERT": BertModel(BertConfig(**sizes)).eval()}
for name, net in models.items():
    own = mask.clone()
    own[1, padded[name]] = 0
    real = own[1].bool()
    net.set_attn_implementation("sdpa")
    before = states(net, own)
    net.set_attn_implementation("own")
    change = (states(net, own) - before).abs().amax(-1)
    print(name, "whole row", change[0].max().item(), "padded row", change[1, real].min().item())
    assert change[0].max() < 1e-5 and change[1, real].min() > 1e-3
AttentionMaskInterface.register("own", sdpa_mask)
for name, net in models.items():
    own = mask.clone()
    own[1, padded[name]] = 0
    net.set_attn_implementation("sdpa")
    before = states(net, own)
    net.set_attn_implementation("own")
    assert torch.allclose(states(net, own)[1, own[1].bool()], before[1, own[1].bool()], atol=1e-5)
PYTHON
echo "as seen"

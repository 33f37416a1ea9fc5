#!/usr/bin/env bash
# sentence-transformers 6.2.0, with a byte-level BPE as GPT-2, RoBERTa and Qwen have.
# Expected: with Pooling(include_prompt=False) the vector is the mean over the tokens of the text, without those of the prompt "query: ".
# Seen: the first word of the text is left out too. The prompt's tokens are counted alone, where its blank is a token; before a text the blank
# belongs to the first word. With the prompt "query:" and a blank before the text, all words count. WordPiece has no such token.
# This fails when the first word counts.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install torch==2.13.0 transformers==5.23.0 sentence-transformers==6.2.0 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PYTHON'
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast


def folder(name, split):
    own = Tokenizer(models.BPE())
    own.pre_tokenizer = split
    own.train_from_iterator(
        ["query: the ships of the town", "the harbour of the town holds ships"] * 20,
        trainers.BpeTrainer(vocab_size=400, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
    )
    own.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    PreTrainedTokenizerFast(tokenizer_object=own, pad_token="<pad>", cls_token="<s>", sep_token="</s>").save_pretrained(name)
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64)
    BertModel(BertConfig(vocab_size=own.get_vocab_size(), **sizes)).save_pretrained(name)
    return name


from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

modules = [Transformer(folder("bpe", pre_tokenizers.ByteLevel(add_prefix_space=False))), Pooling(32, pooling_mode="mean", include_prompt=False)]
model = SentenceTransformer(modules=modules, device="cpu")
tokens = model.tokenizer("query: ships of the town", return_tensors="pt")
names = model.tokenizer.convert_ids_to_tokens(tokens["input_ids"][0])
states = model[0].auto_model(**tokens).last_hidden_state[0].detach().numpy()
found = model.encode("ships of the town", prompt="query: ")
print(names, model.tokenizer.tokenize("query: "))
assert names[3] == "Ġships"
assert not np.allclose(found, states[3:].mean(0), atol=1e-3)  # the text's tokens, as expected
assert np.allclose(found, states[4:].mean(0), atol=1e-5)  # without "ships"
assert np.allclose(model.encode(" ships of the town", prompt="query:"), states[3:].mean(0), atol=1e-5)
PYTHON
echo "as seen"

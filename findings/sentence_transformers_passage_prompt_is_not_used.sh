#!/usr/bin/env bash
# sentence-transformers 6.2.0.
# Expected: encode_document() puts the prompt named "passage" (or "corpus") before a text, as its documentation says, where a model has such a
# prompt and none named "document".
# Seen: it puts nothing. SentenceTransformer(prompts=...) adds an empty prompt "document", which is found first, and a saved folder has it too.
# Prompts that are set afterwards (model.prompts = ...) are used. Vectors of passages are then those without the prompt they were trained with.
# This fails when the prompt is used.
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

modules = [Transformer(folder("bpe", pre_tokenizers.ByteLevel())), Pooling(32, pooling_mode="mean")]
made = SentenceTransformer(modules=modules, prompts={"query": "query: ", "passage": "passage: "}, device="cpu")
made.save("saved")
for model in (made, SentenceTransformer("saved", device="cpu")):
    told, plain, prompted = model.encode_document("ships"), model.encode("ships"), model.encode("ships", prompt="passage: ")
    print(model.prompts, np.abs(told - plain).max(), np.abs(told - prompted).max())
    assert np.array_equal(told, plain) and not np.allclose(told, prompted, atol=1e-2)
made.prompts = {"passage": "passage: "}
assert np.allclose(made.encode_document("ships"), made.encode("ships", prompt="passage: "), atol=1e-6)
PYTHON
echo "as seen"

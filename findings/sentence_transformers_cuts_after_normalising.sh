#!/usr/bin/env bash
# sentence-transformers 6.2.0.
# Expected: a model that ends in Normalize gives vectors of length 1, whatever truncate_dim is, so that inner products are cosines.
# Seen: the vectors are cut after they were normalised: lengths of .3 to .7 at 8 of 32 numbers. A search by inner product then favours texts
# by how much of them stands in the first numbers. encode(normalize_embeddings=True) gives length 1.
# This fails when the lengths are 1.
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
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

modules = [Transformer(folder("bpe", pre_tokenizers.ByteLevel())), Pooling(32, pooling_mode="mean"), Normalize()]
model = SentenceTransformer(modules=modules, device="cpu", truncate_dim=8)
texts = ["ships", "the town", "harbour of the town"]
lengths = np.linalg.norm(model.encode(texts), axis=1)
print(lengths)
assert (lengths < 0.8).all()
assert np.allclose(np.linalg.norm(model.encode(texts, normalize_embeddings=True), axis=1), 1)
assert np.allclose(np.linalg.norm(model.encode(texts, truncate_dim=32), axis=1), 1)
PYTHON
echo "as seen"

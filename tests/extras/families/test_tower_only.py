"""Encoders that serve as a tower alone: vectors and gradients are those of sentence-transformers, and a head is refused by name."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModel, BertTokenizer

from realmctl.errors import ConfigError, InputError
from realmctl.extras.families import OFFERS
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.models.bert.files import load_masked_lm, read_config
from realmctl.models.families.known import family
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from stages.embed import Embed
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
FIELDS: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "albert": {**SMALL, "embedding_size": 8},
    "ernie": SMALL,
    "nomic_bert": SMALL,
    "gte": SMALL,
    "eurobert": {**SMALL, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
}
LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS), "."]
TEXTS = [
    "ada wrote notes on the engine.",
    "a",
    "the engine was never built in their time and nobody knew why it was so.",
]
every = pytest.mark.parametrize("model_type", FIELDS)


def saved(model_type: str, folder: Path, pooling: str = "mean") -> Path:
    """A small random encoder with its tokenizer, saved by sentence-transformers."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    modules = importlib.import_module("sentence_transformers.models")
    torch.manual_seed(3)
    config = AutoConfig.for_model(
        model_type, **FIELDS[model_type], vocab_size=len(VOCABULARY), max_position_embeddings=128
    )
    model = AutoModel.from_config(config)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder / "plain")
    BertTokenizer(vocab={word: number for number, word in enumerate(VOCABULARY)}).save_pretrained(folder / "plain")
    words = modules.Transformer(str(folder / "plain"), max_seq_length=64)
    pooled = modules.Pooling(words.get_embedding_dimension(), pooling_mode=pooling)
    sentence_transformers.SentenceTransformer(modules=[words, pooled], device="cpu").save(str(folder / "saved"))
    return folder / "saved"


def vectors(retriever: Retriever, words: Tokenizer, texts: list[str]) -> torch.Tensor:
    packed = retriever.pack_queries(Collator.of(words), words.tokens(texts), retriever.query_length)
    return retriever.embed_queries(packed)


def test_every_family_is_tried_here():
    offered = {name for name, where in OFFERS["realmctl.families"].items() if ".tower_only:" in where}
    assert offered == set(FIELDS)


@every
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_sentence_transformers(model_type, pooling, tmp_path):
    """Alone and in a batch with padding, in float32; and again after the artifact is read."""
    import sentence_transformers

    folder = saved(model_type, tmp_path, pooling)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    expected = theirs.encode(TEXTS, normalize_embeddings=True)
    made = import_encoder(folder, None, None, EncoderSettings(), tmp_path / "retriever")
    retriever, words = Retriever.load(made.path), Tokenizer.load(made.path / "tokenizer")
    with torch.no_grad():
        together = vectors(retriever, words, TEXTS).numpy()
        alone = np.concatenate([vectors(retriever, words, [text]).numpy() for text in TEXTS])
    np.testing.assert_allclose(together, expected, atol=1e-5)
    np.testing.assert_allclose(alone, expected, atol=1e-5)


@every
def test_gradients_are_those_of_transformers(model_type, tmp_path):
    made = import_encoder(saved(model_type, tmp_path), None, None, EncoderSettings(), tmp_path / "retriever")
    retriever, words = Retriever.load(made.path), Tokenizer.load(made.path / "tokenizer")
    plain = AutoModel.from_pretrained(made.path / "block").eval()  # what is saved is a folder of transformers
    (vectors(retriever, words, TEXTS)[:, 0].sum()).backward()
    batch = BertTokenizer.from_pretrained(tmp_path / "plain")(TEXTS, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    state, mask = plain(**batch).last_hidden_state, batch["attention_mask"][..., None]
    pooled = (state * mask).sum(1) / mask.sum(1)
    torch.nn.functional.normalize(pooled, dim=-1)[:, 0].sum().backward()
    ours = dict(retriever.query_tower.bert.named_parameters())
    compared = 0
    for name, weight in plain.named_parameters():
        if weight.grad is not None and name in ours:
            torch.testing.assert_close(ours[name].grad, weight.grad, atol=1e-5, rtol=1e-4)
            compared += 1
    assert compared > 4


def test_a_retriever_of_such_an_encoder_trains_and_embeds(chain: Chain, tmp_path):
    folder = saved("distilbert", tmp_path)
    Tokenizer.load(chain.blocks.path).save(folder)
    (folder / "tokenizer.json").unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    from transformers import DistilBertConfig, DistilBertModel

    rows = Tokenizer.load(chain.blocks.path).rows
    DistilBertModel(DistilBertConfig.from_dict({**config, "vocab_size": rows})).save_pretrained(folder)
    words = tmp_path / "words"
    words.mkdir()
    Tokenizer.load(chain.blocks.path).save(words)
    made = import_encoder(folder, None, words, EncoderSettings(scale=20.0), tmp_path / "retriever")
    trained = IctInit(blocks=chain.blocks, retriever=made, steps=2, batch_size=4, lr=1e-3).make(tmp_path / "trained")
    embedded = Embed(blocks=chain.blocks, retriever=trained).make(tmp_path / "embeddings")
    assert embedded.metrics["rows"] == 40 and trained.content != made.content


@every
def test_what_needs_a_head_is_refused_by_name(model_type, tmp_path):
    folder = saved(model_type, tmp_path)
    assert family(model_type).positions(read_config(folder)) == 128
    with pytest.raises(ConfigError, match=f"{model_type} encoder is a tower"):
        load_masked_lm(folder)


def test_weights_that_are_missing_or_unknown_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = saved("nomic_bert", tmp_path)
    path = next(folder.rglob("model.safetensors"))
    tensors = load_file(path)
    name = next(iter(tensors))
    save_file({key: value for key, value in tensors.items() if key != name}, path)
    with pytest.raises(InputError, match=r"lack the tensor 'embeddings.LayerNorm"):
        import_encoder(folder, None, None, EncoderSettings(), tmp_path / "retriever")
    save_file({**tensors, "extra.weight": torch.zeros(2)}, path)
    with pytest.raises(InputError, match=r"extra.weight"):
        import_encoder(folder, None, None, EncoderSettings(), tmp_path / "retriever")
    save_file({**tensors, name: torch.zeros(3)}, path)
    with pytest.raises(InputError, match=r"embeddings\.LayerNorm"):
        import_encoder(folder, None, None, EncoderSettings(), tmp_path / "retriever")

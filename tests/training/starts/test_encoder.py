"""Where a model starts: an encoder artifact, a BERT folder, or fresh weights, and never with another vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.starts.encoder import starting_bert
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain


def words_of(chain: Chain) -> int:
    return len(Tokenizer.load(chain.blocks.path))


def bert_folder(folder: Path, words: int) -> Path:
    config = BertConfig(
        vocab_size=words, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder)
    return folder


def test_fresh_weights_follow_the_seed_and_spread_wider_when_narrow(chain: Chain) -> None:
    one, same, other = (starting_bert(None, "scratch:L1-H48-A2", chain.blocks, seed) for seed in (1, 1, 2))
    table = [model.bert.embeddings.word_embeddings.weight for model in (one, same, other)]
    assert torch.equal(table[0], table[1]) and not torch.equal(table[0], table[2])
    assert float(table[0][5:].detach().std()) == pytest.approx(0.02 * (768 / 48) ** 0.5, rel=0.05)
    assert one.config.vocab_size == words_of(chain)


def test_dropout_of_fresh_weights_is_the_one_asked_for(chain: Chain) -> None:
    assert starting_bert(None, "scratch:tiny", chain.blocks, 0, dropout=0.0).config.hidden_dropout_prob == 0.0


def test_a_folder_without_a_head_gets_one(chain: Chain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = bert_folder(tmp_path / "bert", words_of(chain))
    starting_bert(None, str(folder), chain.blocks, 0)
    assert "fresh one" not in capsys.readouterr().err  # a retriever does not use it
    model = starting_bert(None, str(folder), chain.blocks, 0, head="trained")
    assert torch.equal(
        model.bert.embeddings.word_embeddings.weight,
        BertModel.from_pretrained(folder).embeddings.word_embeddings.weight,
    )
    assert "fresh one" in capsys.readouterr().err


def test_an_encoder_artifact_is_taken_as_it_is(chain: Chain) -> None:
    model = starting_bert(chain.encoder, None, chain.blocks, 0)
    assert model.config.vocab_size == words_of(chain)


def test_two_starts_are_refused(chain: Chain) -> None:
    with pytest.raises(ConfigError, match="two starts"):
        starting_bert(chain.encoder, "scratch:tiny", chain.blocks, 0)
    with pytest.raises(ConfigError, match="--bert says nothing beside --encoder"):
        IctInit(blocks=chain.blocks, encoder=chain.encoder, bert="scratch:tiny")


def test_random_weights_are_taken_only_where_they_are_named(chain: Chain, tmp_path: Path) -> None:
    assert starting_bert(None, "scratch:tiny", chain.blocks, 0).config.hidden_size == 128
    with pytest.raises(InputError, match=r"mlm-init.*--bert scratch:SIZE"):
        starting_bert(None, None, chain.blocks, 0)
    with pytest.raises(InputError, match="no encoder is named"):
        IctInit(blocks=chain.blocks, steps=1).make(tmp_path / "retriever")
    assert not list((tmp_path / "retriever").glob("v*"))


def test_another_vocabulary_is_refused(chain: Chain, tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "bert", words_of(chain) + 1)
    with pytest.raises(MismatchError, match="--tokenizer"):
        starting_bert(None, str(folder), chain.blocks, 0)
    same_size = bert_folder(tmp_path / "other", words_of(chain))
    words = chain.blocks.file("tokenizer/vocab.txt").read_text(encoding="utf-8").split("\n")
    (same_size / "vocab.txt").write_text("\n".join([*words[:6], "anotherword", *words[7:]]), encoding="utf-8")
    with pytest.raises(MismatchError, match="vocabulary"):
        starting_bert(None, str(same_size), chain.blocks, 0)


def test_no_such_size_and_no_bert_folder(chain: Chain, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"scratch|size"):
        starting_bert(None, "scratch:enormous", chain.blocks, 0)
    with pytest.raises(InputError, match=r"config\.json"):
        starting_bert(None, str(tmp_path), chain.blocks, 0)

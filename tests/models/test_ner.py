"""The token-classification finder on a tiny model whose labels are set by hand."""

import json
import shutil

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from realmctl.errors import InputError, ResourceError
from realmctl.models.bert import limits
from realmctl.models.ner import EntityRecognizer, join_tags
from tests.fixtures.blocks import save_tokenizer, word_tokenizer

TEXTS = ["ada lovelace met babbage .", "", "no one .", "babbage ada babbage lovelaces"]
LABELS = ["O", "B-PER", "I-PER", "B-ORG"]
OF_WORD = {"ada": "B-PER", "lovelace": "I-PER", "babbage": "B-ORG"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """One attention-free layer: the classifier reads the label straight from a word's embedding."""
    folder = tmp_path_factory.mktemp("ner")
    tokenizer = word_tokenizer(TEXTS[:3])
    save_tokenizer(tokenizer, folder)
    size = tokenizer.get_vocab_size()
    config = BertConfig(
        vocab_size=size,
        hidden_size=len(LABELS) * 2,
        num_hidden_layers=0,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label=dict(enumerate(LABELS)),
        label2id={label: i for i, label in enumerate(LABELS)},
    )
    bert = BertForTokenClassification(config)
    with torch.no_grad():
        embeddings = bert.bert.embeddings
        for table in (
            embeddings.word_embeddings,
            embeddings.position_embeddings,
            embeddings.token_type_embeddings,
        ):
            table.weight.zero_()
        for piece, i in tokenizer.get_vocab().items():
            embeddings.word_embeddings.weight[i, LABELS.index(OF_WORD.get(piece, "O"))] = 1
        bert.classifier.weight.copy_(torch.eye(len(LABELS), config.hidden_size))
        bert.classifier.bias.zero_()
    bert.save_pretrained(folder)
    return folder


def test_entities_of_sentences_in_their_order(model):
    last = [(0, 7, "ORG"), (8, 11, "PER"), (12, 19, "ORG"), (20, 29, "PER")]
    expected = [[(0, 12, "PER"), (17, 24, "ORG")], [], [], last]
    assert EntityRecognizer(model, device="cpu")(TEXTS) == expected
    assert EntityRecognizer(model, device="cpu", batch_size=1)(TEXTS) == expected


def test_a_word_takes_the_label_of_its_first_piece_and_all_its_characters(model):
    finder = EntityRecognizer(model, device="cpu")
    assert finder._tokenizer.tokenize("lovelaces zada")[:3] == ["lovelace", "##s", "z"]
    assert finder(["ada lovelaces", "zada ada"]) == [[(0, 13, "PER")], [(5, 8, "PER")]]


def test_what_is_past_the_models_length_has_no_entities(model):
    assert EntityRecognizer(model, device="cpu")(["no " * 20 + "ada"]) == [[]]


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError):
        EntityRecognizer(tmp_path)


def changed(model, folder, **fields):
    """A copy of the model with other fields in its config.json."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))
    return folder


def test_code_from_the_folder_is_neither_run_nor_offered(model, tmp_path, monkeypatch):
    """transformers would ask on the terminal whether to run it, and wait for an answer."""
    own = {"AutoConfig": "own.C", "AutoModelForTokenClassification": "own.M", "AutoTokenizer": ["own.T", "own.T"]}
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked"))
    whole = changed(model, tmp_path / "whole", auto_map=own)
    tokenizer_alone = changed(model, tmp_path / "tokenizer")
    for folder in (whole, tokenizer_alone):
        (folder / "own.py").write_text("raise SystemExit('it ran')")
    own_class = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.T", "own.T"]}, "pad_token": "[PAD]"}
    (tokenizer_alone / "tokenizer_config.json").write_text(json.dumps(own_class))
    with pytest.raises(InputError):
        EntityRecognizer(whole, device="cpu")
    assert EntityRecognizer(tokenizer_alone, device="cpu")(["ada"]) == [[(0, 3, "PER")]]  # by its tokenizer.json
    (tokenizer_alone / "tokenizer_config.json").write_text(json.dumps({**own_class, "pad_token": None}))
    with pytest.raises(InputError, match="padding"):
        EntityRecognizer(tokenizer_alone, device="cpu")


def test_a_size_beyond_the_limits_is_refused_before_the_weights(model, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"num_hidden_layers.*9999"):
        EntityRecognizer(changed(model, tmp_path / "deep", num_hidden_layers=9999), device="cpu")
    monkeypatch.setattr(limits, "free_memory", lambda: 1000)
    with pytest.raises(ResourceError, match="are free"):
        EntityRecognizer(model, device="cpu")


@pytest.mark.parametrize(
    ("tags", "entities"),
    [
        ("O O O", []),
        ("B-X I-X O", [(0, 2, "X")]),
        ("B-X B-X O", [(0, 1, "X"), (1, 2, "X")]),
        ("I-X I-X I-Y", [(0, 2, "X"), (2, 3, "Y")]),
        ("B-X O I-X", [(0, 1, "X"), (2, 3, "X")]),
        ("B-X I-X L-X", [(0, 3, "X")]),
        ("B-X L-X I-X", [(0, 2, "X"), (2, 3, "X")]),
        ("U-X U-X S-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("X X Y", [(0, 2, "X"), (2, 3, "Y")]),
    ],
)
def test_tags_join_as_conlleval_reads_them(tags, entities):
    assert join_tags([(i, i + 1, tag) for i, tag in enumerate(tags.split())]) == entities

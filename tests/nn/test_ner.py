"""The token-classification finder on a tiny model whose labels are set by hand."""

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from realmctl.errors import InputError
from realmctl.nn.ner import EntityRecognizer, join_tags
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
    with pytest.raises(InputError, match="no token-classification model"):
        EntityRecognizer(tmp_path)


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

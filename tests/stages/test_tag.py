"""`tag` on hand-written blocks: what it writes, what it refuses, and that workers change nothing."""

import json

import numpy as np
import pytest
import spacy
import torch
from transformers import AutoTokenizer, BertConfig, BertForTokenClassification

from realmctl.artifacts.records import Records
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.spans import tagging
from realmctl.tokens.tokenizer import Tokenizer
from stages.tag import Tag
from tests.fixtures.blocks import make_blocks

WORLD = {
    "Ada Lovelace": [
        ["Ada Lovelace met [[Charles Babbage]] in June 1833.", "They wrote.", "It was long ago."],
        ["In 1843 Babbage thanked [[Luigi Menabrea|Menabrea]].", "Charles Babbage was glad."],
    ],
    "Nothing": [["There is nothing here."]],
    "Paris": [["[[Paris]] is the capital of [[France]].", "We like Paris."]],
}
FIRST_SENTENCE = "Ada Lovelace met Charles Babbage in June 1833."


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return make_blocks(tmp_path_factory.mktemp("world") / "blocks", WORLD)


def found(spans):
    return [
        (record["id"], record["sentence"], [record["text"][start:end] for start, end, _ in record["spans"]])
        for record in Records(spans.file("sentences.jsonl.zst"))
    ]


def test_spans_of_a_small_world(blocks, tmp_path):
    spans = Tag(blocks=blocks, workers=1).make(tmp_path / "spans")
    assert found(spans) == [
        ("0-0", 0, ["Ada Lovelace", "Charles Babbage", "June 1833"]),
        ("0-1", 0, ["1843", "Menabrea"]),
        ("0-1", 1, ["Charles Babbage"]),
        ("2-0", 0, ["Paris", "France"]),
        ("2-0", 1, ["Paris"]),
    ]
    expected = {
        "blocks": 4,
        "sentences": 8,
        "sentences_with_spans": 5,
        "spans": 9,
        "spans_DATE": 2,
        "spans_ENTITY": 7,
    }
    assert expected.items() <= spans.metrics.items()
    assert spans.metrics["tagger"] == "anchors and rules"  # the page "Nothing" has no link
    assert spans.metrics["spans_per_block"] == pytest.approx(9 / 4)
    assert spans.metrics["blocks_without_spans"] == 1


def test_arrays_agree_with_the_records_and_with_the_blocks(blocks, tmp_path):
    spans, corpus = Tag(blocks=blocks, workers=1).make(tmp_path / "spans"), Corpus(blocks)
    arrays = {name: np.load(spans.file(f"{name}.npy")) for name in ("tokens", "offsets", "uids", "spans")}
    labels = json.loads(spans.file("labels.json").read_text())
    rows = iter(arrays["spans"].tolist())
    for i, record in enumerate(Records(spans.file("sentences.jsonl.zst"))):
        tokens = arrays["tokens"][arrays["offsets"][i] : arrays["offsets"][i + 1]]
        starts = [*corpus.sentences(record["block"]), len(corpus.tokens(record["block"]))]
        in_block = corpus.tokens(record["block"])[starts[record["sentence"]] : starts[record["sentence"] + 1]]
        assert tokens.tolist() == in_block.tolist()
        assert arrays["uids"][i] == corpus.uid[record["block"]]
        assert record["title"] == corpus.block(record["block"]).title
        for start, end, label in record["spans"]:
            sentence, first, stop, label_id = next(rows)
            masked = tokens[first:stop].tolist()
            assert (sentence, labels[label_id]) == (i, label)
            assert masked == Tokenizer.load(blocks.path).ids(record["text"][start:end]).tolist()
    assert next(rows, None) is None
    assert spans.file("tokenizer/vocab.txt").read_bytes() == blocks.file("tokenizer/vocab.txt").read_bytes()


def test_a_literal_special_token_in_text_stays_text(tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {"A": [["It [SEP] was in 1905."]]})
    tokens = np.load(Tag(blocks=blocks, workers=1).make(tmp_path / "spans").file("tokens.npy"))
    assert Tokenizer.load(blocks.path).sep not in tokens


@pytest.mark.usefixtures("workers_at_once")
def test_workers_and_units_change_nothing(tmp_path, monkeypatch):
    """Documents longer than a unit, units that begin inside a document, one process and two."""
    long = {f"Page {n}": [["We saw [[Rome]]."], *[["Then Rome."]] * (5 * n)] for n in range(4)}
    blocks = make_blocks(tmp_path / "blocks", long)
    monkeypatch.setattr(tagging, "BLOCKS_PER_UNIT", 3)
    contents = {Tag(blocks=blocks, workers=workers).make(tmp_path / f"spans{workers}").content for workers in (1, 2)}
    monkeypatch.setattr(tagging, "BLOCKS_PER_UNIT", 1000)
    whole = Tag(blocks=blocks, workers=1).make(tmp_path / "whole")
    assert contents == {whole.content}
    assert whole.metrics["spans"] == len(Corpus(blocks)) == 34


def test_auto_is_rules_where_no_block_has_anchors(tmp_path, capsys):
    blocks = make_blocks(tmp_path / "blocks", {"A": [["We saw Rome in 1905."]]})
    spans = Tag(blocks=blocks, workers=1).make(tmp_path / "spans")
    assert found(spans) == [("0-0", 0, ["Rome", "1905"])]
    assert spans.metrics["tagger"] == "rules"
    assert "tagged 0 documents by their link anchors, and 1 without any by rules" in capsys.readouterr().err


def test_auto_decides_by_document(tmp_path):
    """The oracle: each half of the corpus alone, tagged by the tagger that suits it."""
    linked = {f"Page {n}": [["We saw [[Rome]] and Oslo.", "Rome is old."], ["Then Rome."]] for n in range(3)}
    plain = {f"Note {n}": [["We saw Rome in 1905.", "He met Ada Lorn."]] for n in range(3)}
    halves = []
    for name, tagger, half in (("linked", "anchors", linked), ("plain", "rules", plain)):
        blocks = make_blocks(tmp_path / name, half)
        spans = Tag(blocks=blocks, tagger=tagger, workers=1).make(tmp_path / f"{name}-spans")
        halves += [texts for _, _, texts in found(spans)]
    both = make_blocks(tmp_path / "both", linked | plain)
    spans = Tag(blocks=both, workers=1).make(tmp_path / "both-spans")
    assert [texts for _, _, texts in found(spans)] == halves
    counts = (spans.metrics["documents_with_anchors"], spans.metrics["documents_without_anchors"])
    assert counts == (3, 3) and spans.metrics["tagger"] == "anchors and rules"


def test_dates_and_labels_are_settings(blocks, tmp_path):
    assert "spans_DATE" not in Tag(blocks=blocks, dates=False, workers=1).make(tmp_path / "a").metrics
    assert "spans_ENTITY" not in Tag(blocks=blocks, labels=("DATE",), workers=1).make(tmp_path / "b").metrics


def test_no_span_at_all_is_an_error_that_says_what_was_dropped(blocks, tmp_path):
    with pytest.raises(InputError, match="4 blocks"):
        Tag(blocks=blocks, labels=("NO_SUCH",), workers=1).make(tmp_path / "spans")
    with pytest.raises(InputError, match="dropped_past_query"):
        Tag(blocks=blocks, query_length=3, max_masks=1, labels=("DATE",), workers=1).make(tmp_path / "spans")


@pytest.mark.parametrize("tagger", ["", "anchor", "spacy", "spacy:", "hf", "rules:x", "ANCHORS"])
def test_a_misspelt_tagger_is_refused(blocks, tagger):
    with pytest.raises(ConfigError, match="auto, anchors, rules, spacy"):
        Tag(blocks=blocks, tagger=tagger).check()


@pytest.mark.parametrize("limits", [{"max_masks": 0}, {"query_length": 2}])
def test_limits_without_room_are_refused(blocks, limits):
    ((name, value),) = limits.items()
    with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} {value}"):
        Tag(blocks=blocks, **limits).check()


def test_a_spacy_model_is_known_by_its_content(blocks, tmp_path):
    def save(pattern: str) -> None:
        pipeline = spacy.blank("en")
        pipeline.add_pipe("entity_ruler").add_patterns([{"label": "GPE", "pattern": pattern}])
        pipeline.to_disk(tmp_path / "model")

    stage = Tag(blocks=blocks, tagger=f"spacy:{tmp_path / 'model'}", dates=False, workers=1)
    save("Paris")
    first = stage.make(tmp_path / "spans")
    assert found(first) == [("2-0", 0, ["Paris"]), ("2-0", 1, ["Paris"])]
    assert stage.make(tmp_path / "spans").path == first.path
    save("France")
    assert found(stage.make(tmp_path / "spans")) == [("2-0", 0, ["France"])]


def test_a_token_classification_model_tags(blocks, tmp_path):
    """Random weights, and one label that always wins."""
    tokenizer = AutoTokenizer.from_pretrained(str(blocks.path / "tokenizer"))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = BertConfig(
        vocab_size=len(tokenizer), id2label={0: "O", 1: "I-ALL"}, label2id={"O": 0, "I-ALL": 1}, **sizes
    )
    model = BertForTokenClassification(config)
    torch.nn.init.constant_(model.classifier.bias, 0)
    model.classifier.bias.data[1] = 100
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    stage = Tag(blocks=blocks, tagger=f"hf:{tmp_path / 'model'}", device="cpu", workers=2)
    spans = stage.make(tmp_path / "spans")
    assert found(spans)[:2] == [("0-0", 0, [FIRST_SENTENCE]), ("0-0", 1, ["They wrote."])]
    assert spans.metrics["spans_ALL"] == spans.metrics["spans"] == 8


def test_a_missing_model_is_refused_before_any_work(blocks, tmp_path):
    with pytest.raises(InputError, match="Install it"):
        Tag(blocks=blocks, tagger="spacy:en_core_web_none").make(tmp_path / "spans")
    with pytest.raises(InputError, match="--tagger hf"):
        Tag(blocks=blocks, tagger=f"hf:{tmp_path / 'none'}").make(tmp_path / "spans")

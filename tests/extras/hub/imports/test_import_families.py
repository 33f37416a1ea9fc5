"""Imported encoders of every family against sentence-transformers, which writes the folders and computes the vectors here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import realmctl
from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, InputError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures import families

sentence_transformers = pytest.importorskip("sentence_transformers")
modules = pytest.importorskip("sentence_transformers.models")

every = pytest.mark.parametrize(
    "model_type",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("camembert", "xlm-roberta") else ())  # as roberta
        for name in families.TYPES
    ],
)
TEXTS = ["Ada Lovelace wrote notes", "the engine, 1843", "Köln am Rhein " * 12, "東京は日本の首都です", "x"]
TEXTS += ["    the engine", "\n\n  notes"]
TITLES = ["Ada", "The engine", "", "東京", "letter x", "", "Notes"]


def sentence_folder(model_type: str, folder: Path, *, length: int = families.LENGTH, **stated: Any) -> Any:
    """Write a folder by sentence-transformers: mean pooling, a dense layer. Return its model."""
    families.write(model_type, folder / "plain", masked_lm=False)
    body = modules.Transformer(str(folder / "plain"), max_seq_length=length)
    torch.manual_seed(1)
    dense = modules.Dense(16, 8, activation_function=torch.nn.Tanh())
    model = sentence_transformers.SentenceTransformer(
        modules=[body, modules.Pooling(16, "mean"), dense], device="cpu", prompts=stated.pop("prompts", None)
    )
    model.save(str(folder / "sentence"))
    path = folder / "sentence" / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "similarity_fn_name": "dot", **stated}))
    return model


def imported(folder: Path, **settings: Any) -> Artifact:
    extras = ImportExtras(encoder=EncoderSettings(**settings))
    return import_checkpoint(str(folder / "sentence"), folder / "out", extras)["retriever"]


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)


@every
def test_vectors_are_those_of_sentence_transformers(model_type: str, tmp_path: Path) -> None:
    model = sentence_folder(model_type, tmp_path, prompts={"query": "query: ", "document": "passage: "})
    loaded = realmctl.load(imported(tmp_path), precision="fp32")
    close(loaded.encode_queries(TEXTS), model.encode_query(TEXTS))
    joined = [f"{title} {text}" if title else text for title, text in zip(TITLES, TEXTS, strict=True)]
    close(loaded.encode_blocks(TITLES, TEXTS), model.encode_document(joined))


@every
@pytest.mark.parametrize(("query", "document"), [("query:", "passage\n"), ("(it had: ", ";"), ("notes:\n", "")])
def test_prompts_stand_before_texts_as_they_are_written(
    model_type: str, query: str, document: str, tmp_path: Path
) -> None:
    """Also those that no blank ends: sentence-transformers gives the tokenizer prompt and text as one text.

    Under a tokenizer that counts no blanks the wordpieces of a text do not say that it begins with some.
    """
    texts = TEXTS[:5] if model_type in ("xlm-roberta", "camembert") else TEXTS
    model = sentence_folder(model_type, tmp_path, prompts={"query": query, "document": document})
    loaded = realmctl.load(imported(tmp_path), precision="fp32")
    close(loaded.encode_queries(texts), model.encode_query(texts))
    close(loaded.encode_blocks([""] * len(texts), texts), model.encode_document(texts))


@every
def test_an_export_gives_the_same_vectors_and_can_be_imported_again(model_type: str, tmp_path: Path) -> None:
    sentence_folder(model_type, tmp_path, prompts={"query": "query: "})
    artifact = imported(tmp_path)
    export(artifact.path, tmp_path / "export")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "export"), device="cpu")
    loaded = realmctl.load(artifact, precision="fp32")
    close(theirs.encode_query(TEXTS), loaded.encode_queries(TEXTS))
    close(theirs.encode_document(TEXTS), loaded.encode_blocks([""] * len(TEXTS), TEXTS))
    again = import_checkpoint(str(tmp_path / "export"), tmp_path / "again", ImportExtras())["retriever"]
    close(realmctl.load(again, precision="fp32").encode_queries(TEXTS), loaded.encode_queries(TEXTS))
    assert Tokenizer.load(again.path).identity == Tokenizer.load(artifact.path).identity


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta", "modernbert"])
def test_the_length_that_a_folder_states_holds_for_the_prefix_too(model_type: str, tmp_path: Path) -> None:
    """sentence-transformers 6.2 writes it to tokenizer_config.json alone."""
    model = sentence_folder(model_type, tmp_path, length=14, prompts={"query": "query: ", "document": "passage: "})
    stated = json.loads((tmp_path / "sentence" / "tokenizer_config.json").read_text())["model_max_length"]
    artifact = imported(tmp_path)
    loaded = realmctl.load(artifact, precision="fp32")
    assert stated == 14 == Retriever.load(artifact.path).query_length == Retriever.load(artifact.path).block_length
    close(loaded.encode_queries(TEXTS), model.encode_query(TEXTS))
    close(loaded.encode_blocks([""] * len(TEXTS), TEXTS), model.encode_document(TEXTS))


@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json"])
def test_a_tokenizer_that_cuts_the_beginning_is_told(tmp_path: Path, file: str, capsys: Any) -> None:
    sentence_folder("roberta", tmp_path)
    imported(tmp_path)
    assert "truncation_side" not in capsys.readouterr().err
    path = tmp_path / "sentence" / file
    content = json.loads(path.read_text())
    truncation = {"direction": "Left", "max_length": 40, "strategy": "LongestFirst", "stride": 0}
    path.write_text(
        json.dumps(content | {"truncation_side": "left"} if "config" in file else content | {"truncation": truncation})
    )
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "sentence"), device="cpu")
    assert model.tokenizer.truncation_side == "left"
    imported(tmp_path, normalize=False)
    assert "truncation_side" in capsys.readouterr().err


@pytest.mark.parametrize("stated", ["cosine", None])
def test_similarity_by_cosine_gives_vectors_of_length_one(tmp_path: Path, stated: str | None) -> None:
    """A folder that states no similarity is compared by cosine too, as sentence-transformers does."""
    model = sentence_folder("roberta", tmp_path, similarity_fn_name=stated)
    unit = realmctl.load(imported(tmp_path), precision="fp32").encode_queries(TEXTS)
    plain = realmctl.load(imported(tmp_path, normalize=False), precision="fp32").encode_queries(TEXTS)
    close(np.linalg.norm(unit, axis=1), np.ones(len(TEXTS)))
    close(plain, model.encode_query(TEXTS))
    close(unit @ unit.T, model.similarity(model.encode(TEXTS), model.encode(TEXTS)).numpy())


def test_similarity_by_dot_leaves_vectors_as_they_are_and_another_is_refused(tmp_path: Path) -> None:
    model = sentence_folder("roberta", tmp_path / "dot", similarity_fn_name="dot")
    close(realmctl.load(imported(tmp_path / "dot"), precision="fp32").encode_queries(TEXTS), model.encode_query(TEXTS))
    sentence_folder("roberta", tmp_path / "other", similarity_fn_name="euclidean")
    with pytest.raises(InputError, match="euclidean"):
        imported(tmp_path / "other")


@pytest.mark.parametrize("where", ["folder", "option"])
def test_the_first_numbers_of_a_vector(tmp_path: Path, where: str) -> None:
    model = sentence_folder("xlm-roberta", tmp_path, **({"truncate_dim": 3} if where == "folder" else {}))
    artifact = imported(tmp_path, **({} if where == "folder" else {"truncate_dim": 3}))
    found = realmctl.load(artifact, precision="fp32").encode_queries(TEXTS)
    close(found, model.encode_query(TEXTS, truncate_dim=3))
    export(artifact.path, tmp_path / "export")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "export"), device="cpu")
    close(theirs.encode_query(TEXTS), found)


def test_more_numbers_than_a_vector_has_are_refused(tmp_path: Path) -> None:
    sentence_folder("xlm-roberta", tmp_path)
    with pytest.raises(InputError, match="9 numbers"):
        imported(tmp_path, truncate_dim=9)


@every
@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_a_plain_encoder_pools_as_asked(model_type: str, pooling: Any, tmp_path: Path) -> None:
    families.write(model_type, tmp_path / "sentence", masked_lm=False)
    if model_type == "modernbert" and pooling == "pooler":
        with pytest.raises(ConfigError, match="no pooler"):
            imported(tmp_path, pooling=pooling)
        return
    found = realmctl.load(imported(tmp_path, pooling=pooling), precision="fp32").encode_queries(TEXTS)
    words, model = families.tokenizer(model_type), families.model(model_type, masked_lm=False)
    given = words(TEXTS, padding=True, truncation=True, max_length=families.LENGTH, return_tensors="pt")
    with torch.no_grad():
        outputs = model(**given)
    mask = given["attention_mask"][..., None].bool()
    state_BLH = torch.where(mask, outputs.last_hidden_state, 0.0)
    expected = {"cls": state_BLH[:, 0], "mean": state_BLH.sum(1) / mask.sum(1)}
    close(found, (outputs.pooler_output if pooling == "pooler" else expected[pooling]).numpy())


@pytest.mark.parametrize(("model_type", "pooling"), [("roberta", "mean")])
def test_a_vocabulary_larger_than_the_encoder_is_refused(model_type: str, pooling: Any, tmp_path: Path) -> None:
    families.write(model_type, tmp_path / "sentence", masked_lm=False)
    words = families.tokenizer(model_type)
    words.add_tokens(["<one-more>"])
    words.save_pretrained(tmp_path / "sentence")
    with pytest.raises(realmctl.RealmctlError, match="wordpieces"):
        imported(tmp_path, pooling=pooling)


@pytest.mark.parametrize(
    ("model_type", "kind", "around_two"),
    [("bert", "xlm-roberta", 4), ("modernbert", "gemma", 3), ("modernbert", "llama", 4)],
)
def test_a_tokenizer_of_another_family(tmp_path: Path, model_type: str, kind: str, around_two: int) -> None:
    """As paraphrase-multilingual-MiniLM, BERT's positions and segments with Unigram's frame; as mmBERT; as Japanese ModernBERTs."""
    words = families.tokenizer(kind)
    rows = {"vocab_size": len(words), "pad_token_id": words.pad_token_id}
    families.write(model_type, tmp_path / "plain", masked_lm=False, **rows)
    for other in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (tmp_path / "plain" / other).unlink(missing_ok=True)
    words.save_pretrained(tmp_path / "plain")
    body = modules.Transformer(str(tmp_path / "plain"), max_seq_length=families.LENGTH)
    prompts = {"query": "query: ", "document": "passage: "}
    model = sentence_transformers.SentenceTransformer(
        modules=[body, modules.Pooling(16, "mean")], device="cpu", prompts=prompts
    )
    model.save(str(tmp_path / "sentence"))
    artifact = imported(tmp_path, normalize=False)  # the folder states cosine
    loaded = realmctl.load(artifact, precision="fp32")
    close(loaded.encode_queries(TEXTS), model.encode_query(TEXTS))
    close(loaded.encode_blocks([""] * len(TEXTS), TEXTS), model.encode_document(TEXTS))
    plain = realmctl.load(imported(tmp_path, normalize=False, query_prefix=""), precision="fp32")
    close(plain.encode_queries(TEXTS), model.encode(TEXTS, prompt=""))
    export(artifact.path, tmp_path / "export")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "export"), device="cpu")
    close(theirs.encode_query(TEXTS), loaded.encode_queries(TEXTS))
    assert Tokenizer.load(artifact.path).frame.around_two == around_two


def test_a_tokenizer_that_puts_no_special_tokens_gets_none(tmp_path: Path) -> None:
    """tokenizer.json has no post-processor, and its class adds none."""
    sentence_folder("bert", tmp_path)
    folder = tmp_path / "sentence"
    for name, change in (
        ("tokenizer.json", {"post_processor": None}),
        ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(content | change))
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    assert "[CLS]" not in model.tokenizer.convert_ids_to_tokens(model.tokenizer(TEXTS[0])["input_ids"])
    close(realmctl.load(imported(tmp_path), precision="fp32").encode_queries(TEXTS), model.encode_query(TEXTS))


def test_a_tokenizer_that_transformers_rebuilds_is_obeyed_and_told(tmp_path: Path, capsys: Any) -> None:
    sentence_folder("bert", tmp_path)
    imported(tmp_path)
    assert "replaces them" not in capsys.readouterr().err
    folder = tmp_path / "sentence"
    content = json.loads((folder / "tokenizer.json").read_text())
    content["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"tokenizer_class": "BertTokenizer"}))
    artifact = imported(tmp_path, normalize=False)
    told = capsys.readouterr().err
    assert "pre_tokenizer of its own" in told and "transformers 5 replaces them" in told
    assert Tokenizer.load(artifact.path).ids("a-b").tolist() == [Tokenizer.load(artifact.path).unk], (
        "one word, as the file says"
    )

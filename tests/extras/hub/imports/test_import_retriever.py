"""Imported encoders against the vectors of sentence-transformers and transformers, and what imports refuse."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import realmctl
from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, InputError, MismatchError, RealmctlError
from realmctl.extras.hub.exports.hub_export import export
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.imports.encoder_retriever import EncoderSettings
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures import encoder_folders as folders
from tests.fixtures.encoder_folders import TEXTS, TITLES
from tests.fixtures.transformers_bert import as_transformers
from tests.parity.sentence_vectors import MINILM_TEXTS, by_sentence_transformers, golden, minilm_folder

GOLDEN = json.loads((Path(__file__).parents[3] / "parity" / "sentence_vectors.json").read_text())


def imported(folder: Path, out: Path, **settings: Any) -> Artifact:
    parts = {name: settings.pop(name) for name in ("block_encoder", "tokenizer", "titles") if name in settings}
    parts = {name: str(value) for name, value in parts.items()}
    return import_checkpoint(str(folder), out, ImportExtras(**parts, encoder=EncoderSettings(**settings)))["retriever"]


@torch.inference_mode()
def vectors(artifact: Artifact, texts: list[str], titles: list[str] | None = None) -> np.ndarray:
    """Embeddings in float32: of queries, or of blocks if there are titles."""
    retriever, words, collator = (
        Retriever.load(artifact.path),
        Tokenizer.load(artifact.path),
        Collator.of(Tokenizer.load(artifact.path)),
    )
    tokens = [words.ids(text).astype(np.int64) for text in texts]
    if titles is None:
        length = retriever.query_length - len(retriever.layout.query_prefix.ids)
        return retriever.embed_queries(retriever.pack_queries(collator, tokens, length)).numpy()
    headed = [words.ids(title).astype(np.int64) for title in titles]
    return retriever.embed_blocks(retriever.pack_blocks(collator, headed, tokens)).numpy()


def close(found: np.ndarray, expected: Any) -> None:
    np.testing.assert_allclose(found, np.array(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", folders.SENTENCE_FOLDERS)
def test_sentence_transformers_folders(tmp_path, kind: str):
    artifact = imported(folders.SENTENCE_FOLDERS[kind](tmp_path / "f"), tmp_path)
    close(vectors(artifact, TEXTS), GOLDEN[kind]["queries"])
    close(vectors(artifact, TEXTS, [""] * len(TEXTS)), GOLDEN[kind]["blocks"])


@pytest.mark.parametrize(
    ("kind", "architecture", "settings"),
    [
        ("contriever", "Contriever", {}),
        ("pooler", "BertModel", {"pooling": "pooler"}),
        ("cls", "X", {"pooling": "cls"}),
    ],
)
def test_plain_folders(tmp_path, kind: str, architecture: str, settings: dict[str, Any]):
    artifact = imported(folders.plain(tmp_path / "f", architecture), tmp_path, **settings)
    close(vectors(artifact, TEXTS), GOLDEN[kind]["queries"])
    assert Retriever.load(artifact.path).towers == "shared"


@pytest.mark.parametrize("width", [0, 16])
def test_the_two_encoders_of_dpr(tmp_path, width: int):
    asked, told = (folders.dpr(tmp_path / side, side, width) for side in folders.DPR_CLASSES)
    artifact = imported(asked, tmp_path, block_encoder=told)
    close(vectors(artifact, TEXTS), GOLDEN[f"dpr-{width}"]["queries"])
    close(vectors(artifact, TEXTS, TITLES), GOLDEN[f"dpr-{width}"]["blocks"])
    assert Retriever.load(artifact.path).towers == "separate"


@pytest.mark.slow
@pytest.mark.skipif(minilm_folder() is None, reason="needs the extra `encoder`")
def test_minilm(tmp_path):
    artifact = imported(minilm_folder(), tmp_path)
    loaded = realmctl.load(artifact, precision="fp32")
    close(vectors(artifact, MINILM_TEXTS)[:, :16], GOLDEN["minilm"]["queries"])
    close(loaded.encode_blocks([""] * 4, MINILM_TEXTS)[:, :16], GOLDEN["minilm"]["blocks"])
    np.testing.assert_allclose(np.linalg.norm(loaded.encode_queries(MINILM_TEXTS), axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_the_golden_vectors_are_what_the_libraries_compute():
    pytest.importorskip("sentence_transformers")
    for kind, sides in golden().items():
        for side, rows in sides.items():
            close(np.array(rows), GOLDEN[kind][side])


def test_an_old_folder_with_the_bert_below(tmp_path):
    """sentence-transformers 0 and 1 wrote BERT and tokenizer to 0_Transformer or 0_BERT."""
    folder = folders.SENTENCE_FOLDERS["mean-normalize"](tmp_path / "f")
    for name in ("config.json", "model.safetensors", "vocab.txt", "sentence_bert_config.json"):
        (folder / "0_BERT").mkdir(exist_ok=True)
        (folder / name).rename(folder / "0_BERT" / name)
    listed = json.loads((folder / "modules.json").read_text())
    listed[0] |= {"path": "0_BERT", "type": "sentence_transformers.models.BERT"}
    folders.write_json(folder / "modules.json", listed)
    close(vectors(imported(folder, tmp_path), TEXTS), GOLDEN["mean-normalize"]["queries"])


def test_a_title_stands_before_the_text(tmp_path):
    artifact = imported(folders.SENTENCE_FOLDERS["mean-normalize"](tmp_path / "f"), tmp_path)
    joined = [f"{title} {text}" for title, text in zip(TITLES, TEXTS, strict=True)]
    close(vectors(artifact, TEXTS, TITLES), vectors(artifact, joined))


def test_the_scale_multiplies_inner_products_and_is_in_the_recipe(tmp_path):
    folder = folders.SENTENCE_FOLDERS["mean-normalize"](tmp_path / "f")
    plain, scaled = imported(folder, tmp_path / "1"), imported(folder, tmp_path / "20", scale=20.0)
    cosines = vectors(plain, TEXTS) @ vectors(plain, TEXTS, TITLES).T
    np.testing.assert_allclose(vectors(scaled, TEXTS) @ vectors(scaled, TEXTS, TITLES).T, 20 * cosines, rtol=1e-5)
    assert scaled.settings["scale"] == 20 and scaled.recipe != plain.recipe
    assert imported(folder, tmp_path / "20", scale=20).recipe == scaled.recipe
    hashes = {Retriever.load(artifact.path).block_encoder_hash() for artifact in (plain, scaled)}
    assert len(hashes) == 2


@pytest.mark.parametrize("kind", ["mean-normalize", "mean-layer-norm"])
def test_normalisation_can_be_asked_for_and_left_out(tmp_path, kind: str):
    folder = folders.SENTENCE_FOLDERS[kind](tmp_path / "f")
    long, unit = (vectors(imported(folder, tmp_path, normalize=value), TEXTS) for value in (False, True))
    lengths = np.linalg.norm(long, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 0.01
    close(long / lengths, unit)


def test_prefixes_replace_the_prompts_of_the_folder(tmp_path):
    folder = folders.SENTENCE_FOLDERS["cls-dense"](tmp_path / "f")
    bare = imported(folder, tmp_path, query_prefix="", block_prefix="")
    own = imported(folder, tmp_path, query_prefix="the cat: ", block_prefix="")
    close(vectors(own, TEXTS[:3]), vectors(bare, [f"the cat: {text}" for text in TEXTS[:3]]))
    assert own.settings["query_prefix"] == "the cat: "


@pytest.mark.parametrize(
    ("prompts", "settings", "told"),
    [
        ({"search_query": "ask: ", "query": ""}, {}, True),
        ({"search_query": "ask: "}, {"query_prefix": "ask: "}, False),
        ({"search_query": "ask: ", "query": "cat: "}, {}, True),
        ({"search_query": ""}, {}, False),
    ],
)
def test_prompts_of_other_names_are_told(tmp_path, capsys, prompts, settings, told):
    stated = {"embedding_dimension": 32, "pooling_mode": "mean"}
    imported(folders.sentence_folder(tmp_path / "f", stated, prompts=prompts), tmp_path, **settings)
    assert ("search_query" in capsys.readouterr().err) == told


def test_a_form_of_blocks_can_be_chosen(tmp_path):
    folder = folders.plain(tmp_path / "f")
    found = {
        form: vectors(imported(folder, tmp_path, pooling="mean", block_form=form), TEXTS, TITLES)
        for form in ("pair", "separated", "joined")
    }
    model, words = as_transformers(folders.bert()), Tokenizer.load(folder)
    title, text = (words.ids(part).tolist() for part in (TITLES[0], TEXTS[0]))
    for form, ids, segments in (
        ("pair", [1, *title, 2, *text, 2], [0] * (len(title) + 2) + [1] * (len(text) + 1)),
        ("separated", [1, *title, 2, *text, 2], [0] * (len(title) + len(text) + 3)),
        ("joined", [1, *title, *text, 2], [0] * (len(title) + len(text) + 2)),
    ):
        states = model(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).last_hidden_state
        close(found[form][0], states[0].mean(0).detach().numpy())


def test_pickled_weights_and_old_names_are_read(tmp_path):
    folder = folders.plain(tmp_path / "f")
    expected = vectors(imported(folder, tmp_path / "1", pooling="mean"), TEXTS)
    tensors = load_file(folder / "model.safetensors")
    old = {f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma"): value for name, value in tensors.items()}
    (folder / "model.safetensors").unlink()
    torch.save({**old, "cls.predictions.bias": torch.zeros(60)}, folder / "pytorch_model.bin")
    close(vectors(imported(folder, tmp_path / "2", pooling="mean"), TEXTS), expected)


@pytest.mark.parametrize("kind", folders.SENTENCE_FOLDERS)
def test_export_and_import_again_keep_the_vectors(tmp_path, kind: str):
    first = imported(folders.SENTENCE_FOLDERS[kind](tmp_path / "f"), tmp_path / "1", scale=4.0)
    export(first.path, tmp_path / "exported")
    again = imported(tmp_path / "exported", tmp_path / "2")
    close(vectors(again, TEXTS), vectors(first, TEXTS))
    close(vectors(again, TEXTS, TITLES), vectors(first, TEXTS, TITLES))


@pytest.mark.slow
@pytest.mark.parametrize("kind", folders.SENTENCE_FOLDERS)
def test_sentence_transformers_loads_what_was_exported(tmp_path, kind: str):
    pytest.importorskip("sentence_transformers")
    first = imported(folders.SENTENCE_FOLDERS[kind](tmp_path / "f"), tmp_path / "1", scale=4.0)
    export(first.path, tmp_path / "exported")
    close(np.array(by_sentence_transformers(tmp_path / "exported", TEXTS)["queries"]), vectors(first, TEXTS))


def changed(path: str, **values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / path).write_text(json.dumps({**json.loads((folder / path).read_text()), **values}))

    return change


def modules(*entries: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        known = json.loads((folder / "modules.json").read_text())
        folders.write_json(folder / "modules.json", [*known[:2], *entries])

    return change


def spoiled(folder: Path) -> None:
    path = folder / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(16, 31), "linear.bias": torch.zeros(16)}, path)


def not_finite(folder: Path) -> None:
    path = folder / "2_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(16, 32), "linear.bias": torch.full((16,), torch.inf)}, path)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "another architecture": (changed("config.json", model_type="deberta-v2"), "type 'deberta-v2'"),
    "relative positions": (changed("config.json", position_embedding_type="relative_key"), "position|embeddings"),
    "weights that are not finite": (not_finite, "0.0.bias.*not finite"),
    "too large": (changed("config.json", hidden_size=10**9), "hidden_size"),
    "another pooling": (
        changed("1_Pooling/config.json", pooling_mode_cls_token=False, pooling_mode_attention=True),
        "pooling_mode_attention",
    ),
    "a residual": (changed("2_Dense/config.json", use_residual=True), "residual"),
    "another activation": (changed("2_Dense/config.json", activation_function="torch.nn.Softmax"), "Softmax"),
    "code": (changed("2_Dense/config.json", activation_function="os.system"), "os.system"),
    "token vectors": (changed("2_Dense/config.json", module_input_name="token_embeddings"), "token_embeddings"),
    "a huge layer": (changed("2_Dense/config.json", out_features=10**9), "1000000000"),
    "weights of another shape": (spoiled, "0.0.weight"),
    "an unknown module": (modules({"type": "x.Router", "path": "2_Dense"}), "Router"),
    "a path outside": (modules({"type": "x.Dense", "path": "../x"}), r"\.\./x"),
    "no path": (modules({"type": "x.Dense"}), "malformed"),
    "too many modules": (modules(*[{"type": "x.Normalize", "path": ""}] * 20), "16"),
    "lower case": (changed("sentence_bert_config.json", do_lower_case=True), "lower case"),
    "no list": (lambda folder: (folder / "modules.json").write_text("{}") and None, "JSON list"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
    "no vocabulary": (lambda folder: (folder / "vocab.txt").unlink(), "no tokenizer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_refused_and_leaves_nothing(tmp_path, case: str):
    change, says = REFUSED[case]
    folder = folders.SENTENCE_FOLDERS["cls-dense"](tmp_path / "f")
    if case == "lower case":
        folders.write_json(folder / "tokenizer_config.json", {"do_lower_case": False})
    change(folder)
    with pytest.raises(InputError, match=says) as caught:
        imported(folder, tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


def test_nothing_in_a_pickle_is_executed(tmp_path):
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "executed"),)

    for kind, place in (("mean-normalize", "."), ("cls-dense", "2_Dense")):
        folder = folders.SENTENCE_FOLDERS[kind](tmp_path / kind)
        (folder / place / "model.safetensors").unlink()
        torch.save({"linear.weight": Evil()}, folder / place / "pytorch_model.bin")
        with pytest.raises(InputError):
            imported(folder, tmp_path / "out")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({}, ConfigError, "--pooling"),
        ({"pooling": "mean", "scale": 0.0}, ConfigError, "--scale 0"),
        ({"pooling": "mean", "query_prefix": "query"}, ConfigError, "query"),
        ({"pooling": "mean", "query_prefix": "a " * 200}, ConfigError, "200"),
        ({"pooling": "mean", "block_length": 41}, ConfigError, "40"),
        ({"pooling": "mean", "block_length": 2}, ConfigError, "2"),
        ({"pooling": "mean", "titles": "t"}, ConfigError, "--titles"),
    ],
)
def test_settings_that_are_refused(tmp_path, settings: dict[str, Any], error: type[RealmctlError], says: str):
    with pytest.raises(error, match=says):
        imported(folders.plain(tmp_path / "f"), tmp_path / "out", **settings)


def test_two_encoders_that_do_not_belong_together(tmp_path):
    asked, told = (folders.dpr(tmp_path / side, side) for side in folders.DPR_CLASSES)
    narrow, plain = folders.dpr(tmp_path / "narrow", "ctx_encoder", 8), folders.plain(tmp_path / "plain")
    foreign = folders.plain(tmp_path / "foreign")
    (foreign / "vocab.txt").write_text((foreign / "vocab.txt").read_text().replace("the", "das"))
    for query, settings, error, says in (
        (asked, {}, ConfigError, "DPR"),
        (told, {"block_encoder": asked}, ConfigError, "ctx_encoder.*question_encoder"),
        (asked, {"block_encoder": narrow}, ConfigError, "block encoder of 8"),
        (asked, {"block_encoder": told, "pooling": "mean"}, ConfigError, "cls"),
        (plain, {"block_encoder": foreign, "pooling": "mean"}, MismatchError, "foreign"),
    ):
        with pytest.raises(error, match=says):
            imported(query, tmp_path / "out", **settings)
    reader = folders.write_bert(tmp_path / "reader", {"span_predictor.x": torch.zeros(1)}, model_type="dpr")
    with pytest.raises(InputError, match="DPR"):
        imported(reader, tmp_path / "out", block_encoder=told)


def test_options_of_encoders_are_refused_for_a_realm_checkpoint(realmctl, tmp_path):
    from tests.fixtures import realm_checkpoints as published

    folder = published.write(tmp_path / "c", published.embedder())
    code, _, err = realmctl("import", folder, "--pooling", "mean", "--block-encoder", folder)
    assert code == 2 and "import-realm" in err
    folder = folders.plain(tmp_path / "f", "Contriever")
    code, out, err = realmctl("import", folder, "--normalize", "--scale", 20)
    assert code == 0 and out.strip() == "artifacts/retriever/v1" and "import: width 32" in err, err

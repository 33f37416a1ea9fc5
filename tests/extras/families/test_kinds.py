"""Every kind of folder that people start from: vectors, hits, round trips and gradients are those of sentence-transformers and transformers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.extras.families import OFFERS
from realmctl.extras.hub.exports.hub_export import export
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.models.bert.files import load_masked_lm, read_config
from realmctl.models.families.known import family
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures import kinds

pytest.importorskip("sentence_transformers")
BEGINS = ("    ", "  ", " ", "\n\n", "\t", "\r\n", "\u3000", "\xa0")
"""Blanks that a text begins with. Some tokenizers count them, and the one between title and text."""
DOCUMENTS, QUERIES = kinds.texts(200), kinds.texts(12, seed=1)
DOCUMENTS[:8] = [begin + text for begin, text in zip(BEGINS, DOCUMENTS, strict=False)]
QUERIES[:8] = [begin + text for begin, text in zip(BEGINS, QUERIES, strict=False)]
TITLES = [text.split()[0] if number % 5 else "" for number, text in enumerate(DOCUMENTS)]
Folder = Callable[[str], Path]
QUICK = {
    *("bert", "distilbert", "nomic_bert", "eurobert", "qwen3", "gemma3_text", "t5"),
    *("cls+mean", "lasttoken", "include_prompt=False", "router", "static", "bfloat16"),
}
"""One of each way to compute a vector. `make test-slow` tries every kind."""
every = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in QUICK else pytest.mark.slow) for kind in kinds.KINDS]
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The folder of a kind, made once."""
    return cache(lambda kind: kinds.KINDS[kind](tmp_path_factory.mktemp("kind")))


@pytest.fixture(scope="session")
def retriever(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Artifact]:
    """The retriever of a kind, imported once."""
    out = tmp_path_factory.mktemp("retrievers")
    return cache(lambda kind: import_encoder(folder(kind), None, None, EncoderSettings(), out / kind.replace("=", "-")))


def theirs(folder: Path) -> Any:
    """sentence-transformers' model in float32."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})


def ours(made: Artifact) -> tuple[Retriever, Tokenizer, Collator]:
    words = Tokenizer.load(made.path / "tokenizer")
    return Retriever.load(made.path), words, Collator.of(words)


@torch.no_grad()
def blocks(made: Artifact, bodies: list[str], titles: list[str], batch: int) -> NDArray[np.float32]:
    loaded, words, collator = ours(made)
    first, second = words.tokens(titles), words.tokens(bodies)
    parts = [
        loaded.embed_blocks(loaded.pack_blocks(collator, first[at : at + batch], second[at : at + batch]))
        for at in range(0, len(bodies), batch)
    ]
    return torch.cat(parts).numpy()


@torch.no_grad()
def queries(made: Artifact, texts: list[str]) -> NDArray[np.float32]:
    loaded, words, collator = ours(made)
    return loaded.embed_queries(loaded.pack_queries(collator, words.tokens(texts), loaded.query_length)).numpy()


def unit(vector_BD: Any) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector_BD / np.linalg.norm(vector_BD, axis=1, keepdims=True)
    return found


@every
def test_vectors_and_hits_are_those_of_sentence_transformers(kind, folder, retriever):
    """In batches of 32 with padding, and alone; the longest text is beyond what the encoder reads. All hits stand in the same order.

    sentence-transformers is given title, one blank and text, or the text alone where there is no title, also if the text begins with blanks.
    """
    model = theirs(folder(kind))
    longest = " ".join(DOCUMENTS[:20])
    query_BD = unit(model.encode_query([*QUERIES, longest]))
    document_ND = unit(model.encode_document([f"{a} {b}" if a else b for a, b in zip(TITLES, DOCUMENTS, strict=True)]))
    made = retriever(kind)
    found_BD, found_ND = queries(made, [*QUERIES, longest]), blocks(made, DOCUMENTS, TITLES, 32)
    np.testing.assert_allclose(found_BD, query_BD, atol=1e-5)
    np.testing.assert_allclose(found_ND, document_ND, atol=1e-5)
    np.testing.assert_allclose(blocks(made, DOCUMENTS[:9], TITLES[:9], 1), document_ND[:9], atol=1e-5)
    score_BN, order_BN = query_BD @ document_ND.T, np.argsort(-found_BD @ found_ND.T, axis=1, kind="stable")
    ranked_BN = np.take_along_axis(score_BN, order_BN, axis=1)
    assert (np.diff(ranked_BN, axis=1) < 1e-6).all()
    assert len({*map(tuple, order_BN.tolist())}) > 1


@every
def test_an_export_gives_the_vectors_back(kind, folder, retriever, tmp_path):
    made = retriever(kind)
    model, apart = theirs(folder(kind)), ours(made)[0].towers == "separate"
    for side, name in (("query", "encode_query"), ("block", "encode_document")):
        target = tmp_path / (side if apart else "both")
        if not target.exists():
            export(made.path, target, side if apart else None)
        expected, found = (unit(getattr(each, name)(DOCUMENTS[:20])) for each in (model, theirs(target)))
        np.testing.assert_allclose(found, expected, atol=1e-6)


def gradients_apart(model_type: str, folder: Path) -> float:
    """The largest deviation of a gradient from transformers', as a share of its tensor's largest number where that is above 1.

    Of a sum over a batch with padding, for each weight. transformers reads what was saved, and pads where the folder says.
    """
    plain_folder = kinds.plain(model_type, folder / "plain")
    made = import_encoder(plain_folder, None, None, EncoderSettings(pooling="mean"), folder / "retriever")
    loaded, words, collator = ours(made)
    if model_type in ("t5", "mt5"):
        plain = family(model_type).base.from_pretrained(made.path / "block").eval()
    else:
        plain = AutoModel.from_pretrained(made.path / "block", **attention(model_type)).eval()
    packed = loaded.pack_queries(collator, words.tokens(QUERIES), loaded.query_length)
    loaded.embed_queries(packed)[:, 0].sum().backward()
    batch = AutoTokenizer.from_pretrained(plain_folder)(QUERIES, return_tensors="pt", padding=True)
    batch.pop("token_type_ids", None)
    state, mask = plain(**batch).last_hidden_state, batch["attention_mask"][..., None]
    (torch.where(mask > 0, state, 0).sum(1) / mask.sum(1))[:, 0].sum().backward()
    found = dict(loaded.query_tower.bert.named_parameters())
    pairs = [
        (weight.grad, found[name].grad)
        for name, weight in plain.named_parameters()
        if weight.grad is not None and name in found
    ]
    assert len(pairs) > 9
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1)) for a, b in pairs)


@pytest.mark.parametrize(
    "model_type", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in kinds.MODELS]
)
def test_gradients_are_those_of_transformers(model_type, tmp_path):
    assert gradients_apart(model_type, tmp_path) < (
        2e-5 if model_type == "bert" else 1e-5
    )  # BERT's modules are realmctl's own


def attention(model_type: str) -> dict[str, str]:
    return {"attn_implementation": family(model_type).attention} if model_type != "bert" else {}


def test_every_family_is_tried_here():
    offered = {name for name, where in OFFERS["realmctl.families"].items() if ".tower_only:" in where}
    assert offered | {"bert"} == set(kinds.MODELS) and {*OFFERS["realmctl.poolings"], "cls+mean"} <= {
        *kinds.KINDS,
        "lasttoken",
    }


@pytest.mark.parametrize("model_type", [name for name in kinds.MODELS if name != "bert"])
def test_what_needs_a_head_is_refused_by_name(model_type, folder):
    kind = folder(model_type)
    assert family(model_type).positions(read_config(kind)) >= 256
    with pytest.raises(ConfigError, match=f"{model_type} encoder is a tower"):
        load_masked_lm(kind)


@pytest.mark.parametrize("kind", ["distilbert", "qwen3", "mistral"])
def test_dropout_is_set_wherever_a_module_holds_it(kind, retriever):
    """Two passes in training differ with a rate, and are the same without one."""
    made = retriever(kind)
    _, words, collator = ours(made)
    for rate, same in ((0.0, True), (0.5, False)):
        loaded = Retriever.load(made.path, dropout=rate).train()
        packed = loaded.pack_queries(collator, words.tokens(QUERIES), loaded.query_length)
        assert torch.equal(loaded.embed_queries(packed), loaded.embed_queries(packed)) is same


# What is decided here, and said.


def test_a_folder_in_bfloat16_is_computed_in_float32(folder, tmp_path, capsys):
    from sentence_transformers import SentenceTransformer

    made = import_encoder(folder("bfloat16"), None, None, EncoderSettings(), tmp_path / "retriever")
    assert "saved in bfloat16, and its weights are computed in float32" in capsys.readouterr().err
    in_bfloat16 = SentenceTransformer(str(folder("bfloat16")), device="cpu").encode_query(QUERIES)
    apart = np.abs(unit(in_bfloat16.astype(np.float32)) - queries(made, QUERIES)).max()
    assert 1e-4 < apart < 2e-2
    assert "bfloat16" not in (made.path / "block" / "config.json").read_text()


def with_prompts(folder: Path, copy: Path, **prompts: str) -> Path:
    shutil.copytree(folder, copy)
    path = copy / "config_sentence_transformers.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "prompts": prompts}))
    return copy


@pytest.mark.parametrize("name", ["passage", "corpus"])
def test_a_prompt_for_passages_stands_before_blocks_and_is_said(name, folder, tmp_path, capsys):
    """sentence-transformers documents it, and puts nothing there."""
    copied = with_prompts(folder("distilbert"), tmp_path / "copy", query="query: ", **{name: "passage: "})
    made = import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")
    assert f"names its prompt for documents {name}" in capsys.readouterr().err
    model = theirs(copied)
    asked, found = (
        unit(model.encode_document(DOCUMENTS[:9], prompt_name=name)),
        blocks(made, DOCUMENTS[:9], [""] * 9, 9),
    )
    np.testing.assert_allclose(found, asked, atol=1e-5)
    without = import_encoder(copied, None, None, EncoderSettings(block_prefix=""), tmp_path / "without")
    plain = unit(model.encode_document(DOCUMENTS[:9], prompt=""))
    np.testing.assert_allclose(blocks(without, DOCUMENTS[:9], [""] * 9, 9), plain, atol=1e-5)
    assert np.abs(plain - found).max() > 1e-3


@pytest.mark.parametrize("kind", ["distilbert", "qwen3", "t5"])
def test_a_prompt_that_ends_in_a_letter_is_that_of_the_folder(kind, folder, tmp_path):
    """sentence-transformers gives the tokenizer both as one text. An option that ends so is a slip, and refused."""
    copied = with_prompts(folder(kind), tmp_path / "copy", query="notes on", document="in 1843")
    made, model = import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever"), theirs(copied)
    np.testing.assert_allclose(queries(made, QUERIES[8:]), unit(model.encode_query(QUERIES[8:])), atol=1e-5)
    with pytest.raises(ConfigError, match="ends in a letter"):
        import_encoder(copied, None, None, EncoderSettings(query_prefix="notes on"), tmp_path / "other")


def test_code_of_a_folder_is_not_run_and_is_said(folder, tmp_path, capsys):
    copied = changed(folder("qwen3"), tmp_path / "copy", "config.json", auto_map={"AutoModel": "own.Model"})
    (copied / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    made = import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")
    assert "auto_map" in capsys.readouterr().err and not (tmp_path / "ran").exists()
    assert "auto_map" not in (made.path / "block" / "config.json").read_text()


def test_prompts_of_other_tasks_are_named(folder, tmp_path, capsys):
    import_encoder(folder("gemma3_text"), None, None, EncoderSettings(), tmp_path / "retriever")
    assert "has prompts for other tasks too: STS" in capsys.readouterr().err


# Adapters.


def adapter(base: Path, folder: Path, **fields: Any) -> Path:
    """A LoRA adapter of BERT's queries and values, as PEFT writes it."""
    folder.mkdir()
    torch.manual_seed(1)
    tensors = {}
    for layer in range(2):
        for part in ("query", "value"):
            place = f"base_model.model.encoder.layer.{layer}.attention.self.{part}"
            tensors |= {f"{place}.lora_A.weight": torch.randn(4, 16), f"{place}.lora_B.weight": torch.randn(16, 4)}
    save_file(tensors, folder / "adapter_model.safetensors")
    stated = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "base_model_name_or_path": str(base), "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps({**stated, **fields}))
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json", "tokenizer.json"):
        shutil.copyfile(base / name, folder / name)
    shutil.copyfile(base / "tokenizer_config.json", folder / "tokenizer_config.json")
    shutil.copytree(base / "1_Pooling", folder / "1_Pooling")
    return folder


@pytest.mark.parametrize("root", [False, True])
def test_an_adapter_is_merged(root, folder, tmp_path):
    """W + alpha / r * B A, and with alpha / sqrt(r) where it says so."""
    base = folder("bert")
    made = import_encoder(adapter(base, tmp_path / "a", use_rslora=root), None, None, EncoderSettings(), tmp_path / "r")
    merged = tmp_path / "merged"
    shutil.copytree(base, merged)
    tensors, low_rank = load_file(base / "model.safetensors"), load_file(tmp_path / "a" / "adapter_model.safetensors")
    for layer in range(2):
        for part in ("query", "value"):
            name = f"encoder.layer.{layer}.attention.self.{part}"
            up, down = (low_rank[f"base_model.model.{name}.lora_{each}.weight"] for each in "BA")
            tensors[f"{name}.weight"] += (8 / 4**0.5 if root else 8 / 4) * up @ down
    save_file(tensors, merged / "model.safetensors", {"format": "pt"})
    np.testing.assert_allclose(queries(made, QUERIES), unit(theirs(merged).encode_query(QUERIES)), atol=1e-5)
    assert np.abs(queries(made, QUERIES) - unit(theirs(base).encode_query(QUERIES))).max() > 1e-2


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"bias": "all"}, "bias"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"r": 3}, "do not fit"),
        ({"base_model_name_or_path": ""}, "lacks"),
        ({"modules_to_save": ["pooler"]}, "modules_to_save"),
    ],
)
def test_an_adapter_that_is_more_than_a_product_is_refused(fields, named, folder, tmp_path):
    path = adapter(folder("bert"), tmp_path / "a", **fields)
    if "r" in fields:
        tensors = load_file(path / "adapter_model.safetensors")
        save_file(
            {name: tensor[:, :3].contiguous() for name, tensor in tensors.items()}, path / "adapter_model.safetensors"
        )
    with pytest.raises(InputError, match=named):
        import_encoder(path, None, None, EncoderSettings(), tmp_path / "retriever")


# What is refused, by name and with a way out.


def test_multi_vector_and_sparse_encoders_are_refused_by_name(folder, tmp_path):
    path = kinds.encoder(tmp_path / "e", "bert")[0]
    token = kinds.saved(
        tmp_path / "colbert",
        [path, kinds.module("Dense", 16, 8, module_input_name="token_embeddings"), kinds.module("MultiVectorMask")],
        "MultiVectorEncoder",
    )
    with pytest.raises(InputError, match=r"late-interaction encoder as ColBERT"):
        import_encoder(token, None, None, EncoderSettings(), tmp_path / "retriever")
    stated = json.loads((token / "config_sentence_transformers.json").read_text())
    for kind, named in (("SparseEncoder", "SPLADE"), ("CrossEncoder", "cross-encoder")):
        (token / "config_sentence_transformers.json").write_text(json.dumps({**stated, "model_type": kind}))
        with pytest.raises(InputError, match=named):
            import_encoder(token, None, None, EncoderSettings(), tmp_path / "retriever")


def changed(folder: Path, copy: Path, name: str, **fields: Any) -> Path:
    shutil.copytree(folder, copy)
    path = copy / name
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.is_file() else {}), **fields}))
    return copy


@pytest.mark.parametrize(
    ("kind", "name", "fields", "error", "named"),
    [
        ("bert", "1_Pooling/config.json", {"pooling_mode": "attention"}, InputError, "attention.*lasttoken"),
        ("bert", "1_Pooling/config.json", {"pooling_mode": []}, InputError, "its pooling"),
        ("bert", "1_Pooling/config.json", {"include_prompt": "no"}, InputError, "include_prompt"),
        ("bert", "sentence_bert_config.json", {"transformer_task": "fill-mask"}, InputError, "transformer_task"),
        ("bert", "sentence_bert_config.json", {"config_kwargs": {"is_causal": True}}, InputError, "is_causal"),
        (
            "bert",
            "sentence_bert_config.json",
            {"processing_kwargs": {"text": {"max_length": 3}}},
            InputError,
            "processing_kwargs",
        ),
        ("qwen3", "config.json", {"quantization_config": {"quant_method": "gptq"}}, InputError, "quantised"),
        ("qwen3", "config.json", {"hidden_act": "xielu"}, InputError, "xielu"),
        ("qwen3", "config.json", {"num_hidden_layers": "2"}, InputError, "num_hidden_layers"),
        ("gte", "config.json", {"num_hidden_layers": 3}, InputError, "lack the tensor 'layers.2"),
        ("gte", "config.json", {"num_hidden_layers": 1}, InputError, r"layers?\.1"),
        ("qwen3", "config.json", {"num_hidden_layers": 3}, InputError, "num_hidden_layers"),
        ("qwen3", "config.json", {"hidden_size": 32}, InputError, "differs|fit"),
        ("qwen3", "config.json", {"vocab_size": 10}, InputError, "pad_token_id"),
        ("qwen3", "config.json", {"model_type": "qwen3_5"}, InputError, "qwen3_5"),
        ("qwen3", "config.json", {"rope_parameters": {"rope_type": "nonsense"}}, InputError, "config.json"),
        ("t5", "config.json", {"num_layers": 3}, InputError, "lack the tensor"),
        ("router", "router_config.json", {"structure": {"a": []}}, InputError, "none for a query"),
        (
            "router",
            "router_config.json",
            {"parameters": {"route_mappings": {"('query', 'text')": "query"}}},
            InputError,
            "routes",
        ),
        (
            "router",
            "router_config.json",
            {"structure": {"query": ["../up"], "document": ["x"]}},
            InputError,
            "inside|Transformer",
        ),
        ("bert", "config_sentence_transformers.json", {"prompts": {"query": 3}}, InputError, "object of texts"),
        (
            "bert",
            "config_sentence_transformers.json",
            {"prompts": {"query": "on " * 200}},
            InputError,
            "--query-prefix",
        ),
        ("static", "modules.json", {}, InputError, "list"),
    ],
)
def test_a_folder_that_asks_for_something_else_is_refused(kind, name, fields, error, named, folder, tmp_path):
    copied = changed(folder(kind), tmp_path / "copy", name, **fields) if name != "modules.json" else tmp_path / "copy"
    if name == "modules.json":
        shutil.copytree(folder(kind), copied)
        (copied / name).write_text("{}")
    with pytest.raises(error, match=named):
        import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")
    assert not (tmp_path / "retriever").exists()


def test_weights_that_are_missing_unknown_or_quantised_are_refused(folder, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(folder("nomic_bert"), copied)
    path = copied / "model.safetensors"
    tensors = load_file(path)
    name = next(iter(tensors))

    def refused(changed_tensors: dict[str, torch.Tensor], match: str) -> None:
        save_file(changed_tensors, path)
        with pytest.raises(InputError, match=match):
            import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")

    refused({key: value for key, value in tensors.items() if key != name}, r"lack the tensor 'embeddings.LayerNorm")
    refused({**tensors, "extra.weight": torch.zeros(2)}, r"extra.weight")
    refused({**tensors, name: torch.zeros(3)}, r"embeddings\.LayerNorm")
    refused({**tensors, name: torch.zeros(16, dtype=torch.int8)}, "Quantised")
    path.unlink()
    (copied / "onnx").mkdir()
    (copied / "onnx" / "model.onnx").write_bytes(b"")
    with pytest.raises(InputError, match="ONNX alone"):
        import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: {"embeddings": t["embeddings"].to(torch.int8)}, "quantised"),
        (lambda t: {**t, "mapping": t["mapping"] + 20}, "mapping"),
        (lambda t: {**t, "weights": t["weights"][:3]}, "weights"),
        (lambda t: {**t, "more": torch.ones(2)}, "more"),
        (lambda t: {"other": t["weights"]}, "neither"),
    ],
)
def test_a_table_that_does_not_fit_together_is_refused(change, named, folder, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(folder("model2vec"), copied)
    save_file(change(load_file(copied / "model.safetensors")), copied / "model.safetensors")
    with pytest.raises(InputError, match=named):
        import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")


def test_model2vec_without_modules_is_read_too(folder, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(folder("model2vec"), copied)
    (copied / "modules.json").unlink()
    made = import_encoder(copied, None, None, EncoderSettings(), tmp_path / "retriever")
    np.testing.assert_allclose(
        queries(made, QUERIES), unit(theirs(folder("model2vec")).encode_query(QUERIES)), atol=1e-5
    )


def test_queries_and_documents_of_two_tokenizers_are_refused(folder, tmp_path):
    with pytest.raises(MismatchError, match="different tokenizers"):
        import_encoder(folder("bert"), folder("static"), None, EncoderSettings(), tmp_path / "retriever")


def test_a_block_of_two_texts_needs_a_token_between_them(folder, tmp_path):
    with pytest.raises(ConfigError, match="nothing between two texts"):
        import_encoder(folder("static"), None, None, EncoderSettings(block_form="separated"), tmp_path / "retriever")


def test_an_empty_text_has_a_finite_vector(retriever):
    for kind in ("static", "max", "lasttoken", "qwen3-both-ways", "weightedmean"):
        made = retriever(kind)
        assert np.isfinite(blocks(made, ["", "a"], ["", ""], 2)).all(), kind

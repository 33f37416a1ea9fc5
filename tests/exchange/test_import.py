"""Imported weights compute what transformers 4.57.6 computed, and a checkpoint that is not right leaves nothing behind."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from realmctl.artifact import Artifact, open_artifact
from realmctl.errors import ConfigError, InputError, MismatchError, RealmctlError
from realmctl.exchange.importing import Extras, import_checkpoint
from realmctl.index.store import open_index
from realmctl.nn.bert_files import load_masked_lm
from realmctl.nn.inputs import Packer, block_token_mask
from realmctl.nn.marginal import token_marginal
from realmctl.nn.reader import Reader
from realmctl.nn.retriever import Retriever
from realmctl.nn.span_head import SpanReader, reader_loss
from realmctl.retrieval.corpus import Corpus
from realmctl.retrieval.qa import QuestionAnswerer
from stages.embed import Embed
from tests.exchange import realm_checkpoints as published
from tests.nn import realm_case as case
from tests.nn.test_golden_realm import BLOCK, LOSS, READER_LOSS, SCORE, SPAN

RECORDS = [b"The cat. The dog.", "caf\u00e9 x".encode(), b"a bc d", b"zz top", b"hello. the end.", b"xyz"]
TITLES = ["cats", "cats", "letters", "band", "", "end"]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def packer() -> Packer:
    return Packer(cls_id=case.CLS, sep_id=case.SEP, pad_id=0, mask_id=case.MASK)


def imported(folder: Path, out: Path, **extras: Any) -> dict[str, Artifact]:
    return import_checkpoint(str(folder), out, Extras(**extras), workers=1)


def scores(retriever: Retriever, packer: Packer) -> Tensor:
    block_BND = retriever.embed_blocks(packer.block(case.TITLES, case.BODIES)).unflatten(0, (2, 3))
    return retriever.score(retriever.embed_queries(packer.query(case.QUERIES, 64)), block_BND)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("kind", ["embedder", "scorer"])
def test_a_retriever_scores_as_transformers_did(tmp_path, packer, kind: str, pickled: bool):
    folder = published.write(tmp_path / "c", getattr(published, kind)(), pickled=pickled)
    made = imported(folder, tmp_path / "w")
    assert made.keys() == {"retriever"} and made["retriever"].path == tmp_path / "w" / "retriever" / "v1"
    retriever = Retriever.load(made["retriever"].path)
    assert retriever.towers == "shared"
    assert_close(scores(retriever, packer), torch.tensor(SCORE), atol=1e-4, rtol=1e-5)
    config = retriever.query_tower.bert.config
    assert (config.pad_token_id, config.hidden_act, config.layer_norm_eps) == (0, "gelu_new", 1e-12)
    assert retriever.query_tower.norm.eps == 1e-12
    assert retriever.query_tower.bert.embeddings.word_embeddings.padding_idx == 0


def test_the_encoder_has_the_loss_that_transformers_had(tmp_path, packer):
    tensors = {name: tensor for name, tensor in published.encoder().items() if "decoder" not in name}
    for number, given in enumerate([tensors, published.encoder()]):
        made = imported(published.write(tmp_path / f"c{number}", given), tmp_path / f"w{number}")["encoder"]
        mlm, has_head = load_masked_lm(made.path)
        assert has_head and mlm.bert.pooler is not None
        assert mlm.cls.predictions.decoder.weight is mlm.bert.embeddings.word_embeddings.weight
        joint = packer.joint([query for query in case.QUERIES for _ in range(3)], case.BODIES, 64, 288)
        position_BM, target_BM = torch.tensor([[2, 4], [2, 0]]), torch.tensor([[33, 34], [35, 0]])
        log_prob_BNM = Reader(mlm).eval().mlm_log_prob(joint, position_BM, target_BM, 3)
        loss, _ = token_marginal(torch.tensor(SCORE), log_prob_BNM, torch.tensor([[True, True], [True, False]]))
        assert loss.item() == pytest.approx(LOSS, abs=1e-5)


def span_numbers(reader: SpanReader, packer: Packer) -> tuple[float, int, list[int]]:
    packed, start_B = packer.reader([case.QUESTION] * 2, case.EVIDENCE)
    span_BS, (start_S, end_S) = reader.span_scores(packed, block_token_mask(packed, start_B), case.SPAN_WIDTH)
    score_QKS = (span_BS + torch.tensor(case.RELEVANCE)[:2, None])[None]
    correct_QKS = torch.zeros_like(score_QKS, dtype=torch.bool)
    for block, (first, last) in enumerate([(4, 5), (5, 6)]):
        correct_QKS[0, block] = (start_S == first) & (end_S == last)
    block, span = divmod(int(score_QKS.flatten().argmax()), len(start_S))
    return reader_loss(score_QKS, correct_QKS).item(), block, [int(start_S[span]), int(end_S[span])]


def test_the_reader_finds_the_span_that_transformers_found(tmp_path, packer):
    made = imported(published.write(tmp_path / "c", published.reader(), pickled=True), tmp_path / "w")
    loss, block, span = span_numbers(SpanReader.load(made["span-reader"].path), packer)
    assert loss == pytest.approx(READER_LOSS, abs=1e-4) and (block, span) == (BLOCK, SPAN)


@pytest.fixture
def embedded(tmp_path) -> tuple[Artifact, np.ndarray]:
    """The pre-trained embedder, and RECORDS with TITLES as it embeds them: made on a path that shares no file with import."""
    retriever = imported(published.write(tmp_path / "pre", published.embedder()), tmp_path / "w")["retriever"]
    ids = {word: number for number, word in enumerate(published.VOCABULARY)}

    def wordpieces(text: str) -> list[int]:
        found: list[int] = []
        for word in text.lower().replace("é", "e").replace(".", " . ").split():
            letters = [word] if word in ids else [word[0], *(f"##{letter}" for letter in word[1:])]
            found += [ids[letter] for letter in letters]
        return found

    packed = Packer(1, 2, 0, 3).block([wordpieces(t) for t in TITLES], [wordpieces(r.decode()) for r in RECORDS])
    with torch.inference_mode():
        return retriever, published.tower().embed(packed).numpy()


def open_qa(folder: Path, rows: np.ndarray, **options: Any) -> Path:
    write = published.write(folder, published.openqa(torch.from_numpy(rows)), **{"pickled": True, **options})
    published.write_records(write / "block_records.npy", RECORDS)
    return write


def titles(folder: Path) -> Path:
    (folder / "titles.txt").write_text("".join(f"{title}\n" for title in TITLES))
    return folder / "titles.txt"


def test_an_open_qa_checkpoint_answers(tmp_path, packer, embedded):
    retriever, rows = embedded
    folder = open_qa(tmp_path / "qa", rows, num_block_records=len(RECORDS))
    made = imported(folder, tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    blocks, model = made["blocks"], made["qa-model"]
    corpus = Corpus(blocks)
    assert [corpus.record(row)["text"].encode() for row in range(6)] == RECORDS
    assert [corpus.record(row)["title"] for row in range(6)] == TITLES
    assert [corpus.record(row)["id"] for row in range(6)] == ["0-0", "0-1", "1-0", "2-0", "3-0", "4-0"]
    assert corpus.record(0)["sentences"] == [[0, 8], [9, 17]] and corpus.sentences(0).tolist() == [0, 5]
    index, query_side = model.part("index"), model.part("retriever")
    assert index.lineage["retriever"] == retriever.content == query_side.metrics["block_retriever"]
    assert index.lineage["blocks"] == blocks.content
    np.testing.assert_array_equal(open_index(index.path).vectors(np.arange(6)), rows)
    assert span_numbers(SpanReader.load(model.part("reader").path), packer)[1:] == (BLOCK, SPAN)
    loaded = Retriever.load(query_side.path)
    assert loaded.towers == "query-only"
    assert loaded.block_encoder_hash() == Retriever.load(retriever.path).block_encoder_hash()
    answerer = QuestionAnswerer(model, blocks, device="cpu", precision="fp32")
    question = answerer.tokens(["the cat"])
    hits = answerer.search(question, 6)
    expected = published.tower().embed(packer.query(question, 64)).detach().numpy() @ rows.T
    assert [hit.row for hit in hits[0]] == np.argsort(-expected[0]).tolist()
    answers = answerer.answer(question, hits, 3)[0]
    assert answers and all(answer.text in corpus.record(answer.hit.row)["text"] for answer in answers)
    again = imported(folder, tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    assert {kind: artifact.path for kind, artifact in again.items()} == {
        kind: artifact.path for kind, artifact in made.items()
    }


def test_with_titles_the_blocks_embed_to_the_rows_of_the_index(tmp_path, embedded):
    retriever, rows = embedded
    made = imported(open_qa(tmp_path / "qa", rows), tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    anew = Embed(blocks=made["blocks"], retriever=retriever, precision="fp32").make(tmp_path / "w" / "embeddings")
    assert_close(torch.from_numpy(np.load(anew.file("embeddings.npy"))), torch.from_numpy(rows), atol=1e-4, rtol=1e-4)


def test_without_titles_the_blocks_say_so_and_are_not_embedded(tmp_path, embedded):
    retriever, rows = embedded
    made = imported(open_qa(tmp_path / "qa", rows), tmp_path / "w")
    assert made["blocks"].metrics["titles"] is False
    assert made["qa-model"].part("index").lineage["retriever"] not in (
        retriever.content,
        made["qa-model"].part("retriever").content,
    )
    with pytest.raises(MismatchError, match="without titles"):
        Embed(blocks=made["blocks"], retriever=retriever).make(tmp_path / "w" / "embeddings")
    with pytest.raises(MismatchError, match="query side alone"):
        Embed(blocks=made["blocks"], retriever=made["qa-model"].path).make(tmp_path / "w" / "embeddings")
    assert QuestionAnswerer(made["qa-model"], made["blocks"], device="cpu").reader_beam == 2
    assert made["qa-model"].settings["reader_length"] == 24 and made["qa-model"].metrics["span_head_trained"]


def test_an_index_of_another_embedder_or_other_titles_is_refused(tmp_path, embedded):
    retriever, rows = embedded
    wrong = open_qa(tmp_path / "qa", np.random.default_rng(0).standard_normal(rows.shape).astype(np.float32))
    with pytest.raises(MismatchError, match="did not make this index"):
        imported(wrong, tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    assert not (tmp_path / "w" / "qa-model" / "v1").exists()
    right = open_qa(tmp_path / "qa2", rows)
    made = imported(right, tmp_path / "w")
    for other in (made["qa-model"].path / "retriever", made["blocks"].path):
        with pytest.raises(MismatchError, match="no pre-trained embedder"):
            imported(right, tmp_path / "w", retriever=other)


def test_a_span_head_that_never_learnt_is_noticed(tmp_path, embedded):
    tensors = published.openqa(torch.from_numpy(embedded[1]))
    tensors["reader.qa_outputs.layer_normalization.weight"] = torch.ones(256)
    tensors["reader.qa_outputs.layer_normalization.bias"] = torch.zeros(256)
    folder = published.write(tmp_path / "qa", tensors)
    records = published.write_records(tmp_path / "records.npy", [text.decode() for text in RECORDS])
    model = imported(folder, tmp_path / "w", records=records)["qa-model"]
    assert model.metrics["span_head_trained"] is False


def test_a_scorer_with_two_towers_keeps_both(tmp_path):
    tensors = published.scorer()
    tensors["query_embedder.cls.dense.bias"] += 1
    retriever = Retriever.load(imported(published.write(tmp_path / "c", tensors), tmp_path / "w")["retriever"].path)
    assert retriever.towers == "separate" and retriever.block_tower
    assert torch.equal(retriever.query_tower.projection.bias, retriever.block_tower.projection.bias + 1)


def test_names_that_may_be_there_or_not(tmp_path):
    """One tower under one name; one bias under either name; the numbers of the positions; weights in parts."""
    one = {name: tensor for name, tensor in published.scorer().items() if name.startswith("query_embedder.")}
    encoder = published.encoder()
    del encoder["cls.predictions.bias"]
    encoder["realm.embeddings.position_ids"] = torch.arange(40)[None]
    assert imported(published.write(tmp_path / "a", one), tmp_path / "w1")["retriever"]
    made = imported(published.write(tmp_path / "b", encoder), tmp_path / "w2")["encoder"]
    assert torch.equal(load_masked_lm(made.path)[0].cls.predictions.bias, published.mlm().cls.predictions.bias)
    names = sorted(published.reader())
    folder = published.write(tmp_path / "c", {name: published.reader()[name] for name in names[:20]}, pickled=True)
    (folder / "pytorch_model.bin").rename(folder / "pytorch_model-1.bin")
    torch.save({name: published.reader()[name] for name in names[20:]}, folder / "pytorch_model-2.bin")
    parts = {name: f"pytorch_model-{1 + (number >= 20)}.bin" for number, name in enumerate(names)}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": parts}))
    assert imported(folder, tmp_path / "w3")["span-reader"]
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"a": "../../pre/x.bin"}}))
    with pytest.raises(InputError, match="no file of weights beside it"):
        imported(folder, tmp_path / "w4")


def refused(folder: Path, tmp_path: Path, error: type[RealmctlError], match: str, **extras: Any) -> None:
    with pytest.raises(error, match=match) as caught:
        imported(folder, tmp_path / "out", **extras)
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()


KINDS = {
    "embedder": ("cls.dense.weight", "realm.encoder.layer.1.output.dense.bias"),
    "scorer": ("embedder.cls.LayerNorm.bias", "query_embedder.realm.pooler.dense.weight"),
    "encoder": ("cls.predictions.transform.dense.weight", "realm.embeddings.LayerNorm.weight"),
    "reader": ("qa_outputs.dense_output.weight", "realm.encoder.layer.0.attention.self.key.bias"),
    "openqa": (
        "reader.qa_outputs.dense_intermediate.bias",
        "embedder.realm.embeddings.word_embeddings.weight",
        "block_emb",
    ),
}


def tensors_of(kind: str) -> dict[str, Tensor]:
    return published.openqa(torch.ones(6, 16)) if kind == "openqa" else getattr(published, kind)()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names])
def test_a_tensor_that_is_missing_misshapen_or_too_many_is_named(tmp_path, kind: str, name: str):
    whole = tensors_of(kind)
    for number, change in enumerate(("missing", "misshapen", "integers", "extra")):
        tensors = dict(whole)
        if change == "missing":
            del tensors[name]
        elif change == "extra":
            name = name.rpartition(".")[0] + ".gamma" if "." in name else "block_emb2"
            tensors[name] = torch.zeros(3)
        else:
            tensors[name] = torch.zeros(7, 7, 7) if change == "misshapen" else whole[name].long()
        folder = published.write(tmp_path / str(number), tensors)
        published.write_records(folder / "block_records.npy", RECORDS)
        refused(folder, tmp_path, InputError, f"'{name}'")


@pytest.mark.parametrize("kind", KINDS)
def test_unused_tensors_are_checked_too(tmp_path, kind: str):
    prefix = {"scorer": "embedder.", "openqa": "reader."}.get(kind, "")
    tensors = tensors_of(kind) | {prefix + "cls.predictions.decoder.weight": torch.zeros(2, 2)}
    refused(published.write(tmp_path / "c", tensors), tmp_path, InputError, "cls.predictions.decoder.weight")


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({"model_type": "bert"}, "type 'bert'"), ({"hidden_size": 64}, "word_embeddings"), ({"hidden_size": 10**12}, "no size"),
        ({"num_hidden_layers": 3}, "layer.2"), ({"num_hidden_layers": 1}, "no place for"), ({"vocab_size": "60"}, "no size"),
        ({"layer_norm_eps": 1e-3}, "layer_norm_eps"), ({"hidden_act": "sinh"}, "hidden_act"), ({"hidden_act": ["x"]}, "hidden_act"),
        ({"num_attention_heads": 5}, "do not divide"), ({"hidden_dropout_prob": "x"}, "hidden_dropout_prob"),
        ({"retriever_proj_size": 8}, "cls.dense.weight"), ({"intermediate_size": True}, "no size"),
    ],
)  # fmt: skip
def test_a_config_that_does_not_describe_the_weights(tmp_path, config: dict[str, Any], match: str):
    refused(published.write(tmp_path / "c", published.embedder(), **config), tmp_path, InputError, match)


def test_other_span_heads_and_wrong_numbers_of_blocks(tmp_path):
    for name, config in (("a", {"span_hidden_size": 128}), ("b", {"reader_layer_norm_eps": 1e-12})):
        refused(published.write(tmp_path / name, published.reader(), **config), tmp_path, InputError, "span head of")
    tensors = tensors_of("openqa")
    refused(published.write(tmp_path / "c", tensors, num_block_records=13353718), tmp_path, InputError, "13353718")
    folder = published.write(tmp_path / "d", tensors)
    refused(folder, tmp_path, InputError, "no block records at")
    published.write_records(folder / "block_records.npy", RECORDS[:5])
    refused(folder, tmp_path, MismatchError, "indexes 6 blocks, and .* holds 5")


@pytest.mark.parametrize("lines", [5, 7])
def test_titles_that_do_not_pair_with_the_blocks(tmp_path, lines: int, embedded):
    folder = open_qa(tmp_path / "qa", embedded[1])
    (tmp_path / "t.txt").write_text("title\n" * lines)
    with pytest.raises(MismatchError, match="line n must be the title of block n"):
        imported(folder, tmp_path / "out", titles=tmp_path / "t.txt")
    assert not list((tmp_path / "out").glob("*/v*"))


def test_other_vocabularies(tmp_path):
    words = published.VOCABULARY
    for name, vocabulary in (
        ("short", words[:-1]),
        ("long", [*words, "more"]),
        ("moved", [words[5], *words[1:5], "[PAD]", *words[6:]]),
    ):
        folder = published.write(tmp_path / name, published.embedder(), vocabulary=vocabulary)
        refused(folder, tmp_path, MismatchError, "Name the tokenizer")
    folder = published.write(tmp_path / "none", published.embedder(), vocabulary=[])
    refused(folder, tmp_path, InputError, "holds no tokenizer")
    refused(folder, tmp_path, MismatchError, "Name the tokenizer", tokenizer=str(tmp_path / "short"))
    other = published.write(tmp_path / "other", published.embedder())
    assert imported(folder, tmp_path / "w", tokenizer=str(other))["retriever"]


def test_extras_that_a_checkpoint_has_no_use_for(tmp_path):
    folder = published.write(tmp_path / "c", published.embedder())
    refused(folder, tmp_path, ConfigError, "without an index", titles=tmp_path / "t")


class Attack:
    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, (f"touch {self.canary}",)


def test_weights_that_are_an_attack(tmp_path):
    canary = tmp_path / "canary"
    folder = published.write(tmp_path / "c", {**published.embedder(), "x": Attack(canary)}, pickled=True)  # type: ignore[dict-item]
    refused(folder, tmp_path, InputError, r"asks for \w+\.system")
    for content in ([1, 2], {"a": 1}, {1: torch.ones(1)}, torch.ones(2)):
        torch.save(content, folder / "pytorch_model.bin")
        refused(folder, tmp_path, InputError, "something else than named tensors")
    assert not canary.exists()


@pytest.mark.parametrize("pickled", [False, True])
def test_weights_that_are_cut(tmp_path, pickled: bool):
    folder = published.write(tmp_path / "c", published.embedder(), pickled=pickled)
    path = folder / ("pytorch_model.bin" if pickled else "model.safetensors")
    whole = path.read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        refused(folder, tmp_path, InputError, path.name)
    path.unlink()
    refused(folder, tmp_path, InputError, "holds no weights")
    for text in ("", "[]", "{", "[" * 100_000):
        (folder / "config.json").write_text(text)
        refused(folder, tmp_path, InputError, "Cannot read")
    refused(tmp_path / "nowhere", tmp_path, InputError, "SOURCE")


def test_other_models_are_no_realm(tmp_path):
    refused(
        published.write(tmp_path / "c", {"bert.x": torch.ones(1)}),
        tmp_path,
        InputError,
        "none of transformers' REALM models",
    )
    with zipfile.ZipFile(published.write(tmp_path / "d", {}, pickled=True) / "pytorch_model.bin", "w") as archive:
        archive.writestr("evil.txt", "x")
    refused(tmp_path / "d", tmp_path, InputError, "is refused")


def test_malicious_records_write_nothing(tmp_path, embedded):
    folder, canary = open_qa(tmp_path / "qa", embedded[1]), tmp_path / "canary"
    published.write_records(folder / "block_records.npy", [Attack(canary)] * 6)
    refused(folder, tmp_path, InputError, "system")
    published.write_records(folder / "block_records.npy", [*RECORDS[:5], Attack(canary)])
    with pytest.raises(InputError, match="system"):
        imported(folder, tmp_path / "late")
    assert not canary.exists() and not list((tmp_path / "late").glob("*/v*"))


def test_everything_that_was_imported_opens_again(tmp_path, embedded):
    made = imported(open_qa(tmp_path / "qa", embedded[1], pickled=False), tmp_path / "w")
    for kind in ("blocks", "qa-model"):
        assert open_artifact(tmp_path / "w" / kind).content == made[kind].content

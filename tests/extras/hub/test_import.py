"""Imported weights compute what the same weights compute that took another path, and an open-QA checkpoint answers.

That both compute what transformers 4.57.6 computed is for tests/parity.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from realmctl.artifacts import open_artifact
from realmctl.artifacts.description import has_titles
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint
from realmctl.index.index_type import open_index
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.inputs import Collator, block_token_mask
from realmctl.models.marginal import token_marginal
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import read_settings
from realmctl.models.span_head import SpanReader, reader_loss
from realmctl.retrieval.answering.qa_model import QaModel
from stages.embed import Embed
from stages.finetune import Finetune
from tests.fixtures import realm_case as case
from tests.fixtures import realm_checkpoints as published
from tests.fixtures.realm_checkpoints import RECORDS, TITLES, imported, open_qa, titles


def scores(retriever: Retriever, collator: Collator) -> Tensor:
    block_BND = retriever.embed_blocks(collator.block(case.TITLES, case.BODIES)).unflatten(0, (2, 3))
    return retriever.score(retriever.embed_queries(collator.query(case.QUERIES, 64)), block_BND)


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("kind", ["embedder", "scorer"])
def test_a_retriever_scores_as_its_weights_do(tmp_path, collator, kind: str, pickled: bool):
    folder = published.write(tmp_path / "c", getattr(published, kind)(), pickled=pickled)
    made = imported(folder, tmp_path / "w")
    assert made.keys() == {"retriever"} and made["retriever"].path == tmp_path / "w" / "retriever" / "v1"
    retriever = Retriever.load(made["retriever"].path)
    assert retriever.towers == "shared"
    tower = published.tower()
    plain = Retriever(tower, tower, query_length=64, block_length=288, pooling="pooler")
    assert_close(scores(retriever, collator), scores(plain, collator))
    config = retriever.query_tower.bert.config
    assert (config.pad_token_id, config.hidden_act, config.layer_norm_eps) == (0, "gelu_new", 1e-12)
    assert retriever.query_tower.norm.eps == 1e-12
    assert retriever.query_tower.bert.embeddings.word_embeddings.padding_idx == 0


def test_the_encoder_has_the_loss_of_its_weights(tmp_path, collator):
    tensors = {name: tensor for name, tensor in published.encoder().items() if "decoder" not in name}
    for number, given in enumerate([tensors, published.encoder()]):
        made = imported(published.write(tmp_path / f"c{number}", given), tmp_path / f"w{number}")["encoder"]
        mlm, has_head = load_masked_lm(made.path)
        assert has_head and mlm.bert.pooler is not None
        assert mlm.cls.predictions.decoder.weight is mlm.bert.embeddings.word_embeddings.weight
        assert loss_of(Reader(mlm), collator) == pytest.approx(loss_of(Reader(published.mlm()), collator), abs=1e-6)


def loss_of(reader: Reader, collator: Collator) -> float:
    joint = collator.joint([query for query in case.QUERIES for _ in range(3)], case.BODIES, 64, 288)
    position_BM, target_BM = torch.tensor([[2, 4], [2, 0]]), torch.tensor([[33, 34], [35, 0]])
    score_BN = torch.tensor([[1.0, 0.0, -1.0], [0.5, 2.0, 1.0]])
    log_prob_BNM = reader.eval().mlm_log_prob(joint, position_BM, target_BM, 3)
    return token_marginal(score_BN, log_prob_BNM, torch.tensor([[True, True], [True, False]]))[0].item()


def span_numbers(reader: SpanReader, collator: Collator) -> tuple[float, int, list[int]]:
    packed, start_B = collator.reader([case.QUESTION] * 2, case.EVIDENCE)
    span_BS, (start_S, end_S) = reader.span_scores(packed, block_token_mask(packed, start_B), case.SPAN_WIDTH)
    score_QKS = (span_BS + torch.tensor(case.RELEVANCE)[:2, None])[None]
    correct_QKS = torch.zeros_like(score_QKS, dtype=torch.bool)
    for block, (first, last) in enumerate([(4, 5), (5, 6)]):
        correct_QKS[0, block] = (start_S == first) & (end_S == last)
    block, span = divmod(int(score_QKS.flatten().argmax()), len(start_S))
    return reader_loss(score_QKS, correct_QKS).item(), block, [int(start_S[span]), int(end_S[span])]


def test_the_reader_finds_the_span_of_its_weights(tmp_path, collator):
    made = imported(published.write(tmp_path / "c", published.reader(), pickled=True), tmp_path / "w")
    loss, *found = span_numbers(SpanReader.load(made["span-reader"].path), collator)
    expected, *place = span_numbers(published.span_reader(), collator)
    assert loss == pytest.approx(expected, abs=1e-5) and found == place


def test_an_open_qa_checkpoint_answers(tmp_path, collator, embedded):
    retriever, rows = embedded
    folder = open_qa(tmp_path / "qa", rows, num_block_records=len(RECORDS))
    made = imported(folder, tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    blocks, model = made["blocks"], made["qa-model"]
    corpus = Corpus(blocks)
    assert [corpus.block(row).text.encode() for row in range(6)] == RECORDS
    assert [corpus.block(row).title for row in range(6)] == TITLES
    assert [corpus.block(row).id for row in range(6)] == ["0-0", "0-1", "1-0", "2-0", "3-0", "4-0"]
    assert corpus.block(0).sentences == ((0, 8), (9, 17)) and corpus.sentences(0).tolist() == [0, 5]
    index, query_side = model.part("index"), model.part("retriever")
    assert index.lineage["retriever"] == retriever.content == read_settings(query_side.path).block_retriever
    assert index.lineage["blocks"] == blocks.content
    np.testing.assert_array_equal(open_index(index.path).vectors(np.arange(6)), rows)
    expected = span_numbers(published.span_reader(), collator)
    assert span_numbers(SpanReader.load(model.part("reader").path), collator)[1:] == expected[1:]
    loaded = Retriever.load(query_side.path)
    assert loaded.towers == "query-only"
    assert loaded.block_encoder_hash() == Retriever.load(retriever.path).block_encoder_hash()
    answerer = QaModel.open(model, blocks=blocks, device="cpu", precision="fp32").answerer
    question = answerer.tokens(["the cat"])
    hits = answerer.searcher.search(question, 6)
    expected = published.tower().embed(collator.query(question, 64)).detach().numpy() @ rows.T
    assert [hit.row for hit in hits[0]] == np.argsort(-expected[0]).tolist()
    answers = answerer.answer(question, hits, 3)[0]
    assert answers and all(answer.text in corpus.block(answer.hit.row).text for answer in answers)
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
    assert has_titles(made["blocks"]) is False and made["blocks"].has("blocks.json")
    assert made["qa-model"].part("index").lineage["retriever"] not in (
        retriever.content,
        made["qa-model"].part("retriever").content,
    )
    with pytest.raises(MismatchError, match="without titles"):
        Embed(blocks=made["blocks"], retriever=retriever).make(tmp_path / "w" / "embeddings")
    with pytest.raises(MismatchError, match="query encoder"):
        Embed(blocks=made["blocks"], retriever=made["qa-model"].path).make(tmp_path / "w" / "embeddings")
    assert QaModel.open(made["qa-model"], blocks=made["blocks"], device="cpu").answerer.reader_beam == 2
    assert made["qa-model"].settings["reader_length"] == 24 and made["qa-model"].metrics["span_head_trained"]


def test_an_open_qa_checkpoint_is_fine_tuned_further(tmp_path, embedded):
    retriever, rows = embedded
    made = imported(open_qa(tmp_path / "qa", rows), tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question": "the dog", "answer": ["cat"]}) + "\n")
    tuned = Finetune(
        model=made["qa-model"],
        blocks=made["blocks"],
        questions=questions,
        steps=8,
        batch_size=1,
        lr=1e-2,
        warmup=1,
        retriever_beam=6,
        reader_beam=2,
        reader_length=24,
        span_width=3,
        precision="fp32",
    ).make(tmp_path / "tuned")
    losses = [json.loads(line)["loss"] for line in tuned.file("metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0]
    assert tuned.part("index").content == made["qa-model"].part("index").content
    assert read_settings(tuned.part("retriever").path).block_retriever == retriever.content
    before, after = (Retriever.load(model.part("retriever").path) for model in (made["qa-model"], tuned))
    assert after.towers == "query-only" and after.block_encoder_hash() == before.block_encoder_hash()


def test_an_index_of_another_embedder_or_other_titles_is_refused(tmp_path, embedded):
    retriever, rows = embedded
    wrong = open_qa(tmp_path / "qa", np.random.default_rng(0).standard_normal(rows.shape).astype(np.float32))
    with pytest.raises(MismatchError):
        imported(wrong, tmp_path / "w", titles=titles(tmp_path), retriever=retriever.path)
    assert not (tmp_path / "w" / "qa-model" / "v1").exists()
    right = open_qa(tmp_path / "qa2", rows)
    made = imported(right, tmp_path / "w")
    for other in (made["qa-model"].path / "retriever", made["blocks"].path):
        with pytest.raises(MismatchError, match="--retriever"):
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
    with pytest.raises(InputError, match=r"x.bin"):
        imported(folder, tmp_path / "w4")


def test_an_encoder_whose_words_are_held_by_its_decoder_alone(tmp_path):
    """`safetensors.torch.save_model` writes tied tensors once, under the first of their names."""
    tensors = published.encoder()
    words = tensors.pop("realm.embeddings.word_embeddings.weight")
    tensors["cls.predictions.decoder.weight"] = words
    made = imported(published.write(tmp_path / "c", tensors), tmp_path / "w")["encoder"]
    assert torch.equal(load_masked_lm(made.path)[0].bert.embeddings.word_embeddings.weight, words)
    tensors = published.embedder()
    del tensors["realm.embeddings.word_embeddings.weight"]
    with pytest.raises(InputError, match=r"'realm\.embeddings\.word_embeddings\.weight'"):  # another table
        imported(published.write(tmp_path / "e", tensors), tmp_path / "we")


def test_a_hub_id_is_fetched_with_its_records(tmp_path, monkeypatch, embedded):
    folder, asked = open_qa(tmp_path / "snapshot", embedded[1]), []
    monkeypatch.chdir(tmp_path)

    def snapshot(name: str, allow_patterns: list[str]) -> str:
        asked.append((name, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert import_checkpoint("google/realm-orqa-nq-openqa", tmp_path / "w", ImportExtras(), 1).keys() == {
        "blocks",
        "qa-model",
    }
    assert asked[0][0] == "google/realm-orqa-nq-openqa"
    assert {"block_records.npy", "*.safetensors", "*.json", "vocab.txt"} <= set(asked[0][1])


def test_everything_that_was_imported_opens_again(tmp_path, embedded):
    made = imported(open_qa(tmp_path / "qa", embedded[1], pickled=False), tmp_path / "w")
    for kind in ("blocks", "qa-model"):
        assert open_artifact(tmp_path / "w" / kind).content == made[kind].content

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close
from transformers import AutoModel

from realmctl.errors import InputError, MismatchError
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.in_batch import in_batch_scores, in_batch_softmax
from realmctl.models.inputs import TokenBatch
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import ProjectionStart
from tests.fixtures.transformers_bert import as_transformers


@pytest.mark.parametrize("norm_eps", [1e-12, 1e-3])
@pytest.mark.parametrize("pooling", ["pooler", "cls", "mean"])
def test_embedding_is_the_formula_on_transformers_states(
    mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path, pooling, norm_eps
) -> None:
    retriever = Retriever.from_bert(mlm.bert, projection=16, pooling=pooling, norm_eps=norm_eps).eval()
    torch.nn.init.normal_(retriever.query_tower.projection.weight, std=1e-3)  # a variance that the larger one shows in
    retriever.save(tmp_path)
    retriever = Retriever.load(tmp_path)
    tower = retriever.query_tower
    outputs = as_transformers(tower.bert)(batch.ids_BL, batch.mask_BL.long(), batch.segments_BL)
    pooled = outputs.last_hidden_state[:, 0]
    if pooling == "pooler":
        pooled = torch.tanh(F.linear(pooled, tower.bert.pooler.dense.weight, tower.bert.pooler.dense.bias))
        assert_close(pooled, outputs.pooler_output)
    if pooling == "mean":  # row by row, without padding
        pooled = torch.stack(
            [state[:length].mean(0) for state, length in zip(outputs.last_hidden_state, batch.lengths_B, strict=True)]
        )
    projected = F.linear(pooled, tower.projection.weight, tower.projection.bias)
    expected = F.layer_norm(projected, (16,), tower.norm.weight, tower.norm.bias, eps=norm_eps)
    assert_close(retriever.embed_blocks(batch), expected, atol=1e-5, rtol=1e-5)
    other = F.layer_norm(projected, (16,), tower.norm.weight, tower.norm.bias, eps=1e-15 / norm_eps)
    assert (other - expected).abs().max() > 0.1


def test_the_projection_drops_out_in_training_alone(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    """At BERT's own rate, after the layer norm (official ict_model.py; transformers had none)."""
    mlm.bert.config.hidden_dropout_prob = 0.25
    retriever = Retriever.from_bert(mlm.bert, projection=64)
    exact = retriever.eval().embed_blocks(batch)
    assert not (exact == 0).any()
    rough = torch.stack([retriever.train().embed_blocks(batch) for _ in range(50)])
    kept = rough != 0
    assert (~kept).float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert_close(rough[kept], (exact / 0.75).expand_as(rough)[kept], atol=1e-4, rtol=1e-4)


def test_score_is_the_inner_product() -> None:
    query_BD, block_BND = torch.randn(2, 4), torch.randn(2, 3, 4)
    expected = [[float(query_BD[b] @ block_BND[b, n]) for n in range(3)] for b in range(2)]
    assert_close(Retriever.score(query_BD, block_BND), torch.tensor(expected))


def test_scores_are_not_rounded_under_autocast() -> None:
    query_BD, block_BND = torch.randn(2, 128), torch.randn(2, 3, 128)
    exact = Retriever.score(query_BD, block_BND)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(Retriever.score(query_BD, block_BND), exact)
        loss, _ = in_batch_softmax(in_batch_scores(query_BD, block_BND[:, 0]), torch.arange(len(query_BD)))
    assert torch.equal(
        loss, in_batch_softmax(in_batch_scores(query_BD, block_BND[:, 0]), torch.arange(len(query_BD)))[0]
    )


def test_embeddings_are_float32_under_autocast(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    retriever = Retriever.from_bert(mlm.bert).eval()
    with torch.autocast("cpu", torch.bfloat16):
        rough = retriever.embed_blocks(batch)
    assert rough.dtype == torch.float32
    assert torch.cosine_similarity(rough, retriever.embed_blocks(batch)).min() > 0.99


def test_separate_towers_start_equal_and_train_apart(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    retriever = Retriever.from_bert(mlm.bert, towers="separate").eval()
    assert_close(retriever.embed_queries(batch), retriever.embed_blocks(batch))
    retriever.embed_queries(batch).sum().backward()
    assert all(p.grad is None for p in retriever.block_tower.parameters())
    assert all(p.grad is not None for p in retriever.query_tower.parameters())


def test_the_source_model_is_left_alone(mlm: BertForMaskedLM) -> None:
    retriever = Retriever.from_bert(mlm.bert)
    assert mlm.bert.pooler is None
    assert {id(p) for p in mlm.parameters()}.isdisjoint(id(p) for p in retriever.parameters())


@pytest.mark.parametrize("towers", ["shared", "separate"])
@pytest.mark.parametrize("pooling", ["pooler", "cls", "mean"])
def test_save_and_load(mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path, towers, pooling) -> None:
    retriever = Retriever.from_bert(mlm.bert, towers=towers, pooling=pooling, query_length=32).eval()
    with torch.no_grad():
        retriever.query_tower.norm.bias.add_(1.0)
    retriever.save(tmp_path)
    loaded = Retriever.load(tmp_path)
    assert (loaded.towers, loaded.pooling, loaded.projection, loaded.query_length) == (
        towers,
        pooling,
        128,
        32,
    )
    assert loaded.block_encoder_hash() == retriever.block_encoder_hash()
    assert torch.equal(loaded.embed_queries(batch), retriever.embed_queries(batch))
    assert torch.equal(loaded.embed_blocks(batch), retriever.embed_blocks(batch))
    assert (tmp_path / "query").exists() == (towers == "separate")
    auto = AutoModel.from_pretrained(tmp_path / "block")
    ours = retriever.block_tower.bert.embeddings.word_embeddings.weight
    assert torch.equal(auto.embeddings.word_embeddings.weight, ours)


def test_query_only_remembers_its_block_encoder(mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path) -> None:
    full = Retriever.from_bert(mlm.bert).eval()
    trained = full.query_only()
    with torch.no_grad():
        trained.query_tower.projection.bias[0] += 5.0
    assert not torch.equal(trained.embed_queries(batch), full.embed_queries(batch))
    trained.save(tmp_path)
    loaded = Retriever.load(tmp_path)
    assert loaded.towers == "query-only"
    assert loaded.block_encoder_hash() == full.block_encoder_hash()
    with pytest.raises(MismatchError, match="query-only"):
        loaded.embed_blocks(batch)


def test_the_hash_sees_one_changed_weight(mlm: BertForMaskedLM) -> None:
    retriever = Retriever.from_bert(mlm.bert)
    before = retriever.block_encoder_hash()
    with torch.no_grad():
        retriever.block_tower.bert.embeddings.word_embeddings.weight[7, 0] += 1e-3
    assert retriever.block_encoder_hash() != before


def test_altered_folders_are_refused(mlm: BertForMaskedLM, tmp_path: Path) -> None:
    Retriever.from_bert(mlm.bert).save(tmp_path / "a")
    Retriever.from_bert(mlm.bert).save(tmp_path / "b")
    swapped = (tmp_path / "b" / "block" / "projection.safetensors").read_bytes()
    (tmp_path / "a" / "block" / "projection.safetensors").write_bytes(swapped)
    with pytest.raises(InputError, match="changed after"):
        Retriever.load(tmp_path / "a")
    settings = json.loads((tmp_path / "b" / "retriever.json").read_text())
    settings["projection"] = 64
    (tmp_path / "b" / "retriever.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="shape"):
        Retriever.load(tmp_path / "b")
    with pytest.raises(InputError, match=r"retriever\.json"):
        Retriever.load(tmp_path)


@pytest.mark.parametrize("epsilon", ["1e-3", 0.0, -1e-3, 2.0, [1e-3], None, float("nan")])
def test_an_epsilon_that_is_none_is_refused(mlm: BertForMaskedLM, tmp_path: Path, epsilon) -> None:
    Retriever.from_bert(mlm.bert, projection=16).save(tmp_path)
    path = tmp_path / "retriever.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"norm_eps": epsilon}))
    with pytest.raises(InputError, match="norm_eps"):
        Retriever.load(tmp_path)


@pytest.mark.parametrize("towers", ["shared", "separate"])
def test_a_scale_makes_products_that_many_cosines(
    mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path, towers
) -> None:
    retriever = Retriever.from_bert(mlm.bert, projection=16, pooling="mean", towers=towers).eval()
    torch.nn.init.normal_(retriever.query_tower.projection.weight, std=0.5)
    retriever.start_projection(scale=20.0)
    query_BD, block_BD = retriever.embed_queries(batch), retriever.embed_blocks(batch)
    cosine = torch.nn.functional.cosine_similarity(query_BD[:, None], block_BD[None], dim=2)
    assert_close(retriever.score(query_BD, block_BD.expand(4, 4, 16)), 20 * cosine, atol=1e-4, rtol=1e-4)
    retriever.save(tmp_path)
    assert json.loads((tmp_path / "retriever.json").read_text())["start"] == {"init": "random", "scale": 20.0}
    loaded = Retriever.load(tmp_path)
    assert loaded.start == loaded.query_only().start == ProjectionStart("random", 20.0)
    assert torch.equal(loaded.embed_queries(batch), query_BD)


def test_given_projection_weights_are_those_of_both_towers(mlm: BertForMaskedLM, batch: TokenBatch) -> None:
    retriever = Retriever.from_bert(mlm.bert, projection=8, pooling="mean", towers="separate").eval()
    weight_DH, bias_D = torch.randn(8, 32), torch.randn(8)
    retriever.start_projection(weight_DH=weight_DH, bias_D=bias_D)
    assert retriever.start == ProjectionStart("pca", None)
    expected = F.layer_norm(F.linear(retriever.query_tower.pool(batch), weight_DH, bias_D), (8,))
    assert_close(retriever.embed_queries(batch), expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(retriever.embed_queries(batch), retriever.embed_blocks(batch))


@pytest.mark.parametrize("changed", [{"pooling": "max"}, {"start": {"warmth": 1}}, {"start": 3}])
def test_an_unknown_pooling_or_start_is_refused(mlm: BertForMaskedLM, tmp_path: Path, changed) -> None:
    Retriever.from_bert(mlm.bert, projection=16).save(tmp_path)
    path = tmp_path / "retriever.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(InputError, match=next(iter(changed))):
        Retriever.load(tmp_path)

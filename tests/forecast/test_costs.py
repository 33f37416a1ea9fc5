"""Work by the formulas against the operations that PyTorch counts while the models run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, BertConfig, BertForMaskedLM

from realmctl.forecast.chain import PlannedStage, paper_chain
from realmctl.forecast.costs import BEGINNING, WRITTEN, Made, cost_of, questions_of
from realmctl.forecast.machines import FAISS_RATE, GATE_RATE, Machines
from realmctl.forecast.sizes import (
    EncoderShape,
    Text,
    VectorsSize,
    language_model_shape,
    text_of_blocks,
    text_of_bytes,
)
from realmctl.index.build import build
from realmctl.index.settings import IndexSettings
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.writing import PromptWriter
from realmctl.pipeline.discovery import own_stages
from tests.fixtures.language_models import make_babbler, make_gpt2

SHAPE = EncoderShape(layers=3, hidden=64, intermediate=256, vocabulary=500)


def counted(length, rows=2):
    config = BertConfig(
        vocab_size=500,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=512,
        attn_implementation="eager",
    )
    model = BertForMaskedLM(config).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros(rows, length, dtype=torch.long))
    return counter.get_total_flops() / rows, sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize("length", [16, 200])
def test_the_forward_pass_of_an_encoder_and_its_head(length):
    flops, weights = counted(length)
    assert SHAPE.flops(length) + SHAPE.head_flops(length) == pytest.approx(flops, rel=1e-9)
    assert SHAPE.weights == weights


def chain():
    return {stage.name: stage for stage in paper_chain(own_stages(), "scratch:base")}


def costs(**settings):
    """The costs of the paper's stages with some settings of `pretrain` changed."""
    made, found = Made(), {}
    for name, stage in chain().items():
        changed = stage.with_settings(**settings) if name == "model" else stage
        found[name] = cost_of(changed, made, text_of_blocks(1000, 288), lambda _: SHAPE)
    return found


def index_costs(rows, **settings):
    """What an index of so many vectors of 128 numbers costs, and what it costs in a refresh."""
    made = Made(vectors={"embeddings": VectorsSize(rows, 128)})
    stage = chain()["index"].with_settings(**settings)
    return cost_of(stage, made, None, lambda _: SHAPE), made.indexes.get("index")


@pytest.mark.parametrize("settings", [{"type": "exact"}, {"type": "hnsw", "m": 8}, {"type": "int8"}])
def test_an_index_leaves_on_disk_what_its_files_have(settings, tmp_path):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(2000, 128)).astype(np.float32))
    build(tmp_path, IndexSettings(**settings, min_recall=0.0, recall_sample=10))
    beside = sum(file.stat().st_size for file in tmp_path.iterdir() if file.name != "vectors.npy")
    cost, _ = index_costs(2000, **settings)
    assert cost.disk_bytes == pytest.approx(beside, rel=0.05, abs=10_000)


def test_int8_costs_its_recall_gate_and_faiss_its_training_but_in_a_refresh():
    assert index_costs(2000, type="int8")[0].work == 2 * index_costs(1000, type="int8")[0].work
    assert index_costs(1000, type="int8", recall_sample=10)[0].work == index_costs(1000, type="int8")[0].work / 100
    pytest.importorskip("faiss")
    small, large = (index_costs(rows, type="faiss", factory="IVF4096,PQ64") for rows in (1e6, 1e7))
    assert large[1].work == 10 * small[1].work and large[0].disk_bytes == 10 * small[0].disk_bytes
    assert small[0].work - small[1].work == large[0].work - large[1].work > 0


def test_the_table_of_rates_tells_the_builds_that_were_measured():
    """docs/results/indexes/measured.json: CPU seconds of one core."""
    pytest.importorskip("faiss")
    one_core = Machines("a core", 1, 0, {"gate": GATE_RATE, "faiss": FAISS_RATE})
    records = json.loads((Path(__file__).parents[2] / "docs" / "results" / "indexes" / "measured.json").read_text())
    large = [each for each in records if each["rows"] >= 1e6 and each["part"] in ("build", "refresh")]
    measured = {(each["rows"], each["type"], each["part"]): each["found"]["cpu_s"] for each in large}
    for (rows, kind, part), seconds in measured.items():
        if kind in ("int8", "faiss"):
            costs_of = index_costs(rows, type=kind, factory="IVF4096,PQ64" if kind == "faiss" else None)
            forecast = one_core.seconds("index", costs_of[part == "refresh"])
            assert forecast == pytest.approx(seconds, rel=0.35), (rows, kind, part)


def test_every_stage_of_the_papers_has_a_cost():
    assert all(cost is not None and cost.work > 0 for cost in costs().values())
    assert cost_of(PlannedStage("x", "no-such-stage", {}, {}), Made(), None, lambda _: SHAPE) is None


def test_a_language_model_that_reads_costs_its_forward_pass_unless_it_learns(tmp_path):
    folder = make_gpt2(tmp_path / "gpt2", width=64)
    shape = language_model_shape(str(folder))
    net = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(input_ids=torch.zeros(1, 100, dtype=torch.long))
    head = 100 * 2 * 64 * net.config.vocab_size
    assert shape.flops(100) + head == pytest.approx(counter.get_total_flops(), rel=1e-9)
    frozen, trained = (costs(reader_lm=str(folder), reader=reader)["model"] for reader in (None, "trained"))
    assert frozen.work < trained.work < costs()["model"].work
    assert trained.weights - frozen.weights == shape.weights
    assert frozen.held_bytes - trained.held_bytes == 4 * shape.weights
    small, cached = (
        costs(reader_lm=str(folder), **more)["model"] for more in ({"precision": "bf16"}, {"reader_cache": 2.0})
    )
    assert frozen.held_bytes - small.held_bytes == 2 * shape.weights
    assert cached.held_bytes - frozen.held_bytes == 2e9


def test_writing_queries_costs_what_the_model_computes(tmp_path):
    folder, made, text = make_babbler(tmp_path / "lm", width=64), Made(), text_of_blocks(1000, 288)
    made.texts["blocks"] = text
    settings = {"lm": str(folder), "sample": 300, "block_length": 100, "queries_per_block": 3}
    cost = cost_of(
        PlannedStage("queries", "generate-queries", settings, {"blocks": "blocks"}), made, None, lambda _: SHAPE
    )
    model, beginning = load_language_model(folder).eval(), [5] * BEGINNING
    writer = PromptWriter(model, beginning, WRITTEN, lambda text: False)
    prompts, uniform = [[*beginning, *[row] * 100] for row in (7, 8)], np.zeros((2, 3, WRITTEN))
    writer.write(prompts, uniform)  # and so the beginning is known
    with FlopCounterMode(display=False) as counter:
        writer.write(prompts, uniform)
    assert cost is not None and cost.work == pytest.approx(150 * counter.get_total_flops(), rel=0.2)


def test_a_continuation_has_more_hidden_tokens_than_a_span(tmp_path):
    given = {"reader_lm": str(make_gpt2(tmp_path / "gpt2")), "target_length": 20}
    span, continuation = (costs(**given, target=target)["model"] for target in ("span", "continuation"))
    shape = language_model_shape(given["reader_lm"])
    assert continuation.work - span.work == pytest.approx(200_000 * 512 * 8 * shape.head_flops(17), rel=1e-6)


def test_pretraining_work_grows_with_steps_batch_and_candidates():
    base = costs()["model"]
    assert costs(steps=400_000)["model"].work == 2 * base.work
    assert costs(batch_size=1024)["model"].work == 2 * base.work
    assert 1.9 < costs(candidates=16)["model"].work / base.work < 2.1
    assert base.refreshed.flops == costs()["embeddings"].work


def test_the_inverse_cloze_task_beside_costs_what_it_costs_alone():
    base, beside, distilled = (
        costs(steps=100_000, ict_batch_size=4096, **given)["model"]
        for given in ({}, {"ict_weight": 1.0}, {"ict_weight": 1.0, "distill_start": 2.0})
    )
    alone = costs()["retriever"].work  # its defaults have as many steps and pairs
    assert beside.work - base.work == pytest.approx(alone, rel=1e-6)
    assert distilled.work - base.work == pytest.approx(alone * 4 / 3, rel=1e-6)


def test_without_the_null_document_one_more_block_is_embedded():
    base, without = costs()["model"], costs(null_document=False)["model"]
    length = text_of_blocks(1000, 288).length
    assert without.work - base.work == pytest.approx(3 * 200_000 * 512 * SHAPE.flops(length), rel=1e-6)


def test_embedding_is_the_forward_pass_over_all_blocks():
    text = text_of_blocks(1000, 288)
    assert costs()["embeddings"].work == 1000 * SHAPE.flops(text.length)
    assert costs()["embeddings"].disk_bytes == 1000 * 128 * 4


def test_a_text_is_scaled_and_a_dump_gives_fewer_blocks_than_its_bytes_of_prose():
    assert Text(10, 2, 30).scaled(3) == Text(30, 6, 30)
    assert text_of_bytes(1e6, 288, is_dump=True).blocks == pytest.approx(
        text_of_bytes(1e6, 288, is_dump=False).blocks / 2
    )
    assert text_of_bytes(5.75e6, 288, is_dump=True).blocks == pytest.approx(2314, rel=0.01), "as measured on an excerpt"


def test_a_plan_without_questions_takes_the_number_of_natural_questions(tmp_path):
    assert questions_of({}) == 79_168
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "who?", "answer": ["me"]}\n' * 3)
    assert questions_of({"questions": file}) == 3

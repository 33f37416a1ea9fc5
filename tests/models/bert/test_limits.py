"""A BERT that is too large is refused before its weights are allocated."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from pathlib import Path

import pytest

from realmctl.artifacts.hashing import files_below
from realmctl.errors import ConfigError, InputError, RealmctlError, ResourceError
from realmctl.models.bert import limits
from realmctl.models.bert.files import load_masked_lm, save_masked_lm, scratch_config
from realmctl.models.bert.limits import SIZE_LIMITS, weight_count
from realmctl.models.bert.modules import BertForMaskedLM


@pytest.mark.parametrize(
    "spec", ["L9999-H65536-A2", "L1-H32768", "L1000000000-H16", "L1-H1024-A512", "L" + "9" * 5000 + "-H16"]
)
def test_a_size_beyond_the_limits_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError) as error:
        scratch_config(spec, 100)
    assert len(str(error.value)) < 400


def test_the_command_of_the_reproduction_ends_at_once(realmctl, chain) -> None:
    code, _, said = realmctl("mlm-init", "--blocks", chain.blocks.path, "--bert", "scratch:L9999-H65536-A2")
    assert code == 2 and said.strip().splitlines()[-1].startswith("error: The BERT size 'L9999-H65536-A2' is too large")


def test_a_size_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 10**6)
    assert scratch_config("L1-H16", 100)
    with pytest.raises(ResourceError, match=r"0\.4 GB.* 0\.0 GB"):
        scratch_config("base", 30522)


@pytest.mark.parametrize("spec", ["L1-H16", "L3-H32-A4"])
def test_the_estimate_is_the_number_of_weights(spec: str) -> None:
    config = scratch_config(spec, 123)
    model = BertForMaskedLM(config)
    count = weight_count(config.num_hidden_layers, config.hidden_size, config.intermediate_size, 123, 512, 2)
    assert count == sum(weight.numel() for weight in model.parameters())


ODD = [0, -1, 2.0, "7", None, True, [1], {}, 10**9, 10**12, 10**30]


@pytest.mark.parametrize("name", [*SIZE_LIMITS, "hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_a_config_with_odd_sizes_is_refused_before_allocation(mlm: BertForMaskedLM, tmp_path: Path, name: str) -> None:
    save_masked_lm(mlm, tmp_path)
    path = tmp_path / "config.json"
    fields = json.loads(path.read_text())
    for value in ODD:
        if name.endswith("_prob") and value == 0:
            continue
        path.write_text(json.dumps({**fields, name: value}))
        tracemalloc.start()
        with pytest.raises(InputError, match=name):
            load_masked_lm(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()


@pytest.mark.parametrize(
    "odd",
    [
        {"hidden_act": "nosuch"},
        {"hidden_act": 7},
        {"layer_norm_eps": "x"},
        {"pad_token_id": 10**9},
        {"pad_token_id": "x"},
        {"initializer_range": "x"},
        {"model_type": ["bert"]},
        {"architectures": 7},
        {"dtype": "nosuch"},
        {"id2label": 7},
        {"chunk_size_feed_forward": "x"},
        {"is_decoder": "x"},
    ],
)
def test_other_odd_fields_never_show_a_traceback(mlm: BertForMaskedLM, tmp_path: Path, odd: dict[str, object]) -> None:
    save_masked_lm(mlm, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **odd}))
    try:
        load_masked_lm(tmp_path)
    except RealmctlError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("text", ["[", "[]", "7", "[" * 50_000, "\xff"])
def test_a_config_that_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"config\.json"):
        load_masked_lm(tmp_path)
    assert files_below(tmp_path)


@pytest.fixture(scope="module")
def few_positions(chain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chain's encoder, cut to 12 positions. A sentence beside a block has up to 40 wordpieces."""
    folder = tmp_path_factory.mktemp("few") / "bert"
    shutil.copytree(chain.encoder.path, folder)
    mlm, _ = load_masked_lm(folder)
    positions = mlm.bert.embeddings.position_embeddings
    positions.weight.data, mlm.config.max_position_embeddings = positions.weight.data[:12], 12
    save_masked_lm(mlm, folder)
    return folder


@pytest.mark.parametrize(
    ("command", "inputs", "cause"),
    [
        ("mlm-init", [], "Lengths of the inputs"),
        pytest.param("condenser-init", [], "Lengths of the inputs", marks=pytest.mark.house),
        ("ict-init", [], "--query-length and chunk --max-wordpieces"),
        ("pretrain", ["spans", "retriever", "index"], "tag --query-length and chunk --max-wordpieces"),
        ("finetune", ["retriever", "index", "questions"], "--reader-length 320"),
    ],
)
def test_inputs_longer_than_the_positions_of_a_bert_are_refused(
    realmctl, chain, few_positions: Path, tmp_path: Path, command: str, inputs: list[str], cause: str
) -> None:
    named = {name: getattr(chain, name) for name in ["blocks", *inputs]}
    options = [f"--{name}={getattr(given, 'path', given)}" for name, given in named.items()]
    steps = ["--steps", 2, "--batch-size", 2, "--out", tmp_path / "made"]
    code, _, said = realmctl(command, "--bert", few_positions, *options, *steps)
    assert code == 2 and f"error: {cause}: an input may have" in said and "but this encoder has 12 positions" in said

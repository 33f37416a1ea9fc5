"""The comparison of `make parity` with the numbers that it wrote, so that nobody needs an old package to run the tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.parity.compare import TOLERANCE, by_kind, compared, table
from tests.parity.ours import deviation
from tests.parity.reference_case import SEED, SIZES, config, inputs

GOLDEN = Path(__file__).parent / "golden"
KINDS = {
    "embedder": {"queries", "blocks"},
    "scorer": {"relevance", "query", "candidate"},
    "encoder": {"logits", "loss"},
    "reader": {"logits", "retriever_loss", "reader_loss", "block", "start", "end"},
    "openqa": {"retrieved", "read", "correct", "retriever_loss", "reader_loss", "block", "start", "end", "ids", "text"},
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_every_class_computes_what_transformers_computed(capsys):
    worst = by_kind(compared(GOLDEN))
    assert worst.keys() == {f"{name}/{number}" for name, numbers in KINDS.items() for number in numbers}
    assert table(GOLDEN, worst), capsys.readouterr().out


def test_a_changed_weight_shows(tmp_path):
    """One weight in a thousand parts: the comparison is no formality."""
    folder = shutil.copytree(GOLDEN, tmp_path / "bent")
    path = folder / "embedder" / "model.safetensors"
    tensors = load_file(path)
    tensors["realm.encoder.layer.1.output.dense.weight"][0, 0] += 1e-3
    save_file(tensors, path)
    worst = by_kind(compared(folder))
    assert worst["embedder/blocks"] > TOLERANCE and worst["embedder/queries"] > TOLERANCE
    assert worst["reader/logits"] <= TOLERANCE and not table(folder, worst)


def test_deviations_are_of_the_largest_value_and_whole_numbers_are_equal_or_not():
    assert deviation(torch.tensor([-4.0, 1.0]), torch.tensor([-4.0, 1.5])) == 0.125
    assert deviation(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")
    assert deviation(torch.zeros(2), torch.zeros(3)) == float("inf")


def test_the_golden_numbers_say_what_made_them():
    case = json.loads((GOLDEN / "case.json").read_text())
    made_by = case["made_by"]
    assert (made_by["seed"], made_by["transformers"], made_by["torch"][:6]) == (SEED, "4.57.6", "2.13.0")
    assert case["inputs"] == inputs(SIZES["golden"])
    assert config(SIZES["golden"]).items() <= json.loads((GOLDEN / "openqa" / "config.json").read_text()).items()
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 300_000
    # `make parity` deletes the folder before it writes it, so it may hold no other file
    assert {path.name for path in GOLDEN.iterdir()} == {*KINDS, "case.json", "numbers.safetensors"}

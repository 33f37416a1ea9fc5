"""Two artifacts differ by bytes, by rounding, or by more."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

from realmctl.artifacts import Artifact
from realmctl.artifacts.manifest import FileEntry
from tests.processes.comparison import METRIC_TOLERANCE, WEIGHT_TOLERANCE, difference


@pytest.fixture
def copied(chain, tmp_path):
    """A function that copies the chain's encoder with some weights and a loss changed."""

    def copy(weight: float = 0.0, loss: float = 0.0, recipe: str | None = None) -> Artifact:
        folder = tmp_path / f"{weight} {loss}"
        shutil.copytree(chain.encoder.path, folder)
        for file in folder.rglob("*"):
            file.chmod(0o644 if file.is_file() else 0o755)
        tensors = load_file(folder / "model.safetensors")
        name = sorted(tensors)[0]
        tensors[name].view(-1)[0] += weight
        save_file(tensors, folder / "model.safetensors")
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        lines[-1]["loss"] += loss
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        made = chain.encoder.manifest
        settings = {**made.settings, "another": recipe} if recipe else made.settings
        files = {**made.files, "model.safetensors": FileEntry(1, "other")}
        return Artifact(folder, dataclasses.replace(made, settings=settings, files=files))

    return copy


def test_the_same_content_is_the_same(chain):
    found = difference(chain.encoder, chain.encoder)
    assert found.same_bytes and found.close and found.weight == found.metric == 0


def test_rounding_is_close_and_reported(chain, copied):
    found = difference(copied(weight=WEIGHT_TOLERANCE[0] / 2, loss=METRIC_TOLERANCE[0] / 2), chain.encoder)
    assert not found.same_bytes and found.close
    assert found.weight == pytest.approx(WEIGHT_TOLERANCE[0] / 2, rel=1e-2)
    assert found.metric == pytest.approx(METRIC_TOLERANCE[0] / 2, rel=1e-1)


@pytest.mark.parametrize("change", [{"weight": 0.1}, {"loss": 0.1}, {"recipe": "another"}])
def test_more_than_rounding_is_a_difference(chain, copied, change):
    assert not difference(copied(**change), chain.encoder).close


def test_a_missing_step_is_a_difference(chain, copied):
    other = copied()
    (other.path / "metrics.jsonl").write_text("")
    assert not difference(other, chain.encoder).close

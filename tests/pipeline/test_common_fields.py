"""Fields that mean the same in every stage: refused by their own flag, even where the artifact exists."""

from __future__ import annotations

import pytest

from realmctl.cli.available_stages import available_stages
from realmctl.errors import ConfigError
from realmctl.pipeline import roles
from realmctl.pipeline.common_fields import CHECKS, check_common_fields
from stages.build_index import BuildIndex
from tests.fixtures.small_stages import Plain


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:15"])
def test_devices_that_are_spelled_right(device):
    check_common_fields({"device": device, "refresh_device": device, "anything": device})


@pytest.mark.parametrize("device", ["gpu", "", "cuda:", "cuda:x", "CPU", "elsewhere", "cuda:0 "])
def test_devices_that_are_not(device):
    with pytest.raises(ConfigError, match=r"^--device .* is not a device\. Use auto, cpu"):
        check_common_fields({"device": device})


def test_a_refresher_may_run_elsewhere():
    check_common_fields({"refresh_device": "elsewhere"})
    with pytest.raises(ConfigError, match="--refresh-device 'gpu'"):
        check_common_fields({"refresh_device": "gpu"})


@pytest.mark.parametrize(
    ("name", "value"), [("seed", -1), ("workers", -1), ("micro_batch", -2), ("checkpoint_every", 0)]
)
def test_numbers_below_the_least(name, value):
    with pytest.raises(ConfigError, match=f"--{name.replace('_', '-')} {value} is too small"):
        check_common_fields({name: value})


def test_every_check_is_of_a_field_that_stages_have():
    fields = {name for stage in available_stages().values() for name in roles(stage)}
    assert set(CHECKS) <= fields


def test_a_wrong_runtime_option_is_refused_though_the_artifact_exists(tmp_path):
    Plain().make(tmp_path / "plain")
    with pytest.raises(ConfigError, match="--workers -3"):
        Plain(workers=-3).make(tmp_path / "plain")


@pytest.mark.parametrize("seed", [2**63, 2**70, "1e300", str(2**64), -(2**63) - 1])
def test_numbers_that_no_library_takes(seed):
    with pytest.raises(ConfigError, match=r"--limit: .* is not a whole number of at most 63 bits"):
        Plain(limit=seed)
    assert Plain(limit=str(2**63 - 1)).limit == 2**63 - 1  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 5, "", [], object()])
def test_an_input_that_is_no_artifact_is_refused(value):
    with pytest.raises(ConfigError, match=r"--embeddings: .* is not an artifact. Give an artifact of kind embeddings"):
        BuildIndex(embeddings=value)


def test_every_training_stage_computes_its_batch_in_parts_by_one_name():
    training = [stage for stage in available_stages().values() if {"steps", "batch_size"} <= roles(stage).keys()]
    assert {"IctInit", "LmFinetune"} <= {stage.__name__ for stage in training}
    for stage in training:
        assert roles(stage)["micro_batch"].name == "runtime", stage
        assert not {name for name in roles(stage) if "chunk" in name}, stage

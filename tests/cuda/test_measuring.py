"""The measurements that `make test-cuda` prints, on the CPU and at toy scale."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.forecast.machines import DEVICES
from realmctl.forecast.sizes import EncoderShape
from stages.embed import Embed
from stages.mlm_init import MlmInit
from tests.cuda.measuring import Measurement, device_of, embedding, table_text, training_step
from tests.fixtures.chain import pretrain


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10", "a10"),
        ("Tesla T4", None),
    ],
)
def test_a_driver_s_name_is_a_device_of_the_table(name, key):
    assert device_of(name) == (DEVICES[key] if key else None)


def test_utilisation_is_the_share_of_the_peak():
    row = Measurement("NVIDIA L4", "embed", seconds=2.0, rows=100, flops=121e12, memory_bytes=2.0**30)
    assert row.utilisation == pytest.approx(0.5)
    text = table_text([row, Measurement("Tesla T4", "x", 1.0, 1, 1e12, 0.0)])
    assert "50.0%" in text and "50.0" in text and "1.00 GiB" in text and "not known" in text


def test_steps_and_embedding_are_measured_with_their_work(chain, tmp_path):
    """A step of twice the rows has twice the work; the encoder's formulas are tested beside `plan`."""
    shape = EncoderShape(1, 16, 64, 300)
    steps = [
        training_step(
            MlmInit(blocks=chain.blocks, spans=None, bert="scratch:L1-H16", steps=5, batch_size=size, length=24), shape
        )
        for size in (2, 4)
    ]
    assert steps[1].flops == 2 * steps[0].flops and all(step.seconds > 0 and step.memory_bytes > 0 for step in steps)
    step = training_step(pretrain(chain, steps=3, refresh="never"), shape)
    assert step.rows == 4 and step.flops > steps[1].flops
    row = embedding(Embed(blocks=chain.blocks, retriever=chain.retriever), shape, tmp_path)
    length = len(np.load(chain.blocks.file("tokens.npy"))) / 40
    assert row.rows == 40 and row.flops == pytest.approx(40 * shape.flops(length))

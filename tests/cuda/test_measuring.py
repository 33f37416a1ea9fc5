"""The measurements that `make test-cuda` prints, on the CPU and at toy scale."""

from __future__ import annotations

from stages.embed import Embed
from stages.mlm_init import MlmInit
from tests.cuda.measuring import Measurement, embedding, table_text, training_step
from tests.fixtures.chain import pretrain


def test_a_row_has_its_speed_and_memory():
    text = table_text([Measurement("NVIDIA L4", "embed", seconds=2.0, rows=100, memory_bytes=2.0**30)])
    assert "NVIDIA L4" in text and text.splitlines()[-1].split() == ["embed", "2.0000", "50.0", "1.00", "GiB"]


def test_steps_and_embedding_are_measured(chain, tmp_path):
    stage = MlmInit(blocks=chain.blocks, spans=None, bert="scratch:L1-H16", steps=5, batch_size=2, length=24)
    step = training_step(stage)
    assert (step.what, step.rows) == ("mlm-init", 2) and step.seconds > 0 and step.memory_bytes > 0
    assert training_step(pretrain(chain, steps=3, refresh="never")).rows == 4
    row = embedding(Embed(blocks=chain.blocks, retriever=chain.retriever), tmp_path)
    assert row.rows == 40 and row.seconds > 0

"""A step on the device: nothing is read back within it, and how fast it is."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from realmctl.training import loop
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.finetune import Finetune
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from stages.pretrain import Pretrain
from stages.tag import Tag
from tests.cuda.measuring import embedding, training_step
from tests.fixtures.objectives import jobs_of
from tests.fixtures.together import make_alone

WORDPIECES = 8000


@pytest.fixture
def refused(monkeypatch):
    """Have CUDA refuse whatever waits for the device, from the forward pass to the update."""
    gradients = loop._Run._gradients

    def without_waits(run: Any, parts: Any) -> Any:
        torch.cuda.set_sync_debug_mode("error")
        try:
            return gradients(run, parts)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(loop._Run, "_gradients", without_waits)


@pytest.mark.parametrize(
    "name", ["mlm-micro", "ict", "ict-cache", "condenser", "cocondenser", "pretrain", "finetune", "closed-book"]
)
def test_no_host_round_trip_in_a_step(chain, refused, tmp_path, name):
    job = jobs_of(chain, tmp_path)[name]
    assert make_alone(job, tmp_path / "made").metrics["steps"] == job.fields["steps"]


def test_cuda_sees_round_trips():
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchroniz"):
            float(torch.ones(3, device="cuda").sum())
    finally:
        torch.cuda.set_sync_debug_mode("default")


def write_corpus(path: Path, documents: int) -> Path:
    """Documents of several hundred words, with years, which `tag` finds."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    with path.open("w") as file:
        for number in range(documents):
            text = " ".join(
                f"{' '.join(draw.choices(words, k=14)).capitalize()} in {draw.randint(1500, 2000)}." for _ in range(40)
            )
            file.write(f'{{"id": "{number}", "title": "Page {number}", "text": "{text}"}}\n')
    return path


def test_throughput_of_a_bert_base(tmp_path, measured):
    """Random weights are as fast as trained ones. The rows of the table are printed at the end."""
    blocks = Chunk(corpus=(write_corpus(tmp_path / "c.jsonl", 600),), tokenizer=f"train:{WORDPIECES}").make(
        tmp_path / "blocks"
    )
    spans = Tag(blocks=blocks).make(tmp_path / "spans")
    encoder = MlmInit(blocks=blocks, spans=None, bert="scratch:base", steps=1, batch_size=2).make(tmp_path / "encoder")
    retriever = IctInit(blocks=blocks, encoder=encoder, steps=1, batch_size=2).make(tmp_path / "retriever")
    embed = Embed(blocks=blocks, retriever=retriever)
    index = BuildIndex(embeddings=embed.make(tmp_path / "embeddings"), type="exact").make(tmp_path / "index")
    parts = {"blocks": blocks, "retriever": retriever, "index": index, "encoder": encoder}
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"question": "When was it?", "answer": ["1600"]}\n' * 64)
    measured.append(embedding(embed, tmp_path / "measured"))
    for stage in (
        MlmInit(blocks=blocks, spans=None, bert="scratch:base", steps=24, batch_size=64),
        IctInit(blocks=blocks, encoder=encoder, steps=24, batch_size=64),
        Pretrain(**parts, spans=spans, steps=24, batch_size=16, candidates=8, refresh="never"),
        Finetune(**parts, questions=questions, steps=24, batch_size=4, retriever_beam=100),
    ):
        measured.append(training_step(stage))
    assert all(row.seconds > 0 and row.memory_bytes > 0 for row in measured)

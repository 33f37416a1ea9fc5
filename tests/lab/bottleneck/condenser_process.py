"""A tiny Condenser on a blocks artifact, and one of several processes that take its gradients.

Usage: python -m tests.lab.bottleneck.condenser_process BLOCKS passages|spans FILE, with RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT set
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.lab.bottleneck import condenser_objective as condenser
from realmctl.lab.bottleneck.condenser_model import Condenser
from realmctl.lab.bottleneck.condenser_objective import CondenserObjective
from realmctl.lab.bottleneck.masked_passages import MaskedPassages, SpanPairs, WholeWordMasking
from realmctl.lab.bottleneck.settings import CondenserSettings
from realmctl.models.bert.files import scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.inputs import Collator
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import data_parallel
from realmctl.training.data.own_blocks import rows_by_document
from realmctl.training.gradient_buckets import GradientBuckets


def objective(
    path: Path, *, contrastive: bool = True, chunk: int = 0, dropout: float = 0.0, length: int = 24, documents: int = 99
) -> CondenserObjective:
    """Four documents (or blocks) a batch."""
    blocks = open_artifact(path)
    vocabulary, corpus = Tokenizer.load(blocks.path), Corpus(blocks)
    words, collator = len(vocabulary), Collator.of(vocabulary)
    masking = WholeWordMasking(
        continues_V=np.zeros(words, dtype=bool), mask_id=collator.mask_id, ordinary=np.arange(5, words), spared=None
    )
    torch.manual_seed(1)
    config = scratch_config("L2-H16-A2", words, dropout)
    config.initializer_range = 0.2
    model = Condenser(BertForMaskedLM(config), skip_from=1).train()
    examples = (
        SpanPairs(corpus, collator, masking, rows_by_document(corpus)[:documents], length=length)
        if contrastive
        else MaskedPassages(corpus, collator, masking, length=length)
    )
    settings = CondenserSettings(blocks=blocks, encoder=None, batch_size=4, contrastive=contrastive, micro_batch=chunk)
    return CondenserObjective(model, examples, settings)


def without_cache(made: CondenserObjective, step: int) -> Any:
    """The chunks of a step, without the first pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condenser, "prepared", lambda parts, *_: parts)
        return made.draw(step)


def gradients(made: CondenserObjective) -> dict[str, Any]:
    """Loss, metrics and gradients of the first step."""
    total, sums, counts = 0.0, dict[str, float](), dict[str, float]()
    for part in made.draw(0):
        loss, terms = made.loss(part)
        assert loss is not None
        loss.backward()
        total += loss.item()
        for name, (value, count) in terms.items():
            sums[name] = sums.get(name, 0.0) + float(value)
            counts[name] = counts.get(name, 0.0) + float(count)
    found = {name: parameter.grad for name, parameter in made.model.named_parameters()}
    return {"loss": total, "metrics": {name: sums[name] / counts[name] for name in sums}, **found}


def summed(made: CondenserObjective) -> dict[str, Tensor]:
    """Loss and gradients, summed over the processes."""
    buckets = GradientBuckets(made.model)
    found = gradients(made)
    buckets.finish()
    loss = sum(data_parallel.exchange(found["loss"]))
    return {"loss": torch.tensor(loss), **{name: parameter.grad for name, parameter in made.model.named_parameters()}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    with data_parallel.process_group(torch.device("cpu")):
        save_file(summed(objective(Path(sys.argv[1]), contrastive=sys.argv[2] == "spans")), sys.argv[3])

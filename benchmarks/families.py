"""A training step of a family of encoders beside transformers' own masked language model, on the same batch.

    python benchmarks/families.py modernbert xlm-roberta

It prints milliseconds of a step (forward and backward) of both, and their ratio. Weights are random. families.md has the results.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from realmctl.models.encoder import states_at_places
from realmctl.models.families.known import family, mlm_logits
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.spans.query import hide
from realmctl.tokens.frame import Frame

VOCABULARY, HIDDEN, LAYERS, HEADS = 8000, 256, 4, 4
MASKED = 0.15


def model(model_type: str) -> PreTrainedModel:
    """Return a small masked language model of a family."""
    config = family(model_type).config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN,
        max_position_embeddings=514,
        pad_token_id=1,
        **(
            {"bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2}
            if model_type == "modernbert"
            else {}
        ),
    )
    made: PreTrainedModel = family(model_type).masked_lm(config).train()
    return made


def batch(rows: int, longest: int) -> QueryBatch:
    """Return rows of 10 tokens to the longest, with hidden tokens."""
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, VOCABULARY, int(length)) for length in rng.integers(10, longest - 1, rows)]
    queries = [hide(text, np.flatnonzero(rng.random(len(text)) < MASKED), 4) for text in texts]
    return Collator(Frame(0, (2, 2), 2, 0), 1, 4).queries(queries, longest)


def milliseconds(step: Callable[[], Tensor], mlm: PreTrainedModel, times: int) -> float:
    """Return the median time of a step."""
    taken = []
    for _ in range(times + 1):
        start = time.perf_counter()
        mlm.zero_grad()
        step().backward()  # type: ignore[no-untyped-call]
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="+")
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--longest", type=int, default=128)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    given = batch(options.rows, options.longest)
    packed, target_M = given.packed, given.target_M
    labels_BL = torch.full_like(packed.ids_BL, -100)
    labels_BL.view(-1)[given.place_M] = target_M
    for model_type in options.types:
        mlm = model(model_type)

        def ours(mlm: PreTrainedModel = mlm) -> Tensor:
            state_MH = states_at_places(mlm.base_model, packed, given.place_M)
            return F.cross_entropy(mlm_logits(mlm, state_MH).float(), target_M)

        def theirs(mlm: PreTrainedModel = mlm) -> Tensor:
            loss: Tensor = mlm(input_ids=packed.ids_BL, attention_mask=packed.mask_BL.long(), labels=labels_BL).loss
            return loss

        own, other = (milliseconds(step, mlm, options.times) for step in (ours, theirs))
        print(f"{model_type}: {own:.0f} ms, transformers {other:.0f} ms, ratio {other / own:.2f}")


if __name__ == "__main__":
    main()

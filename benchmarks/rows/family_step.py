"""A step of masked language modelling, forward and backward, of an encoder of each family: 16 rows of 10 to 128 wordpieces, random weights.

The peer is transformers' own masked language model over padded rows, with its loss. All families compute the vocabulary's logits at the hidden
wordpieces alone. BERT, RoBERTa, XLM-R and CamemBERT also leave out padding and compute the last layer only where it is read; ModernBERT and
MPNet run transformers' module.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from row import Row, Work, equal_losses, precisions, under_autocast

VOCABULARY, HIDDEN, LAYERS, HEADS, LONGEST = 32_000, 256, 4, 4, 128
PAD, MASK, FRAME = 1, 4, (0, 2)
MASKED = 0.15


def prepare(folder: Path, quick: bool) -> str:
    rng, rows = np.random.default_rng(0), 4 if quick else 16
    lengths = rng.integers(10, LONGEST - 1, rows)
    np.savez(folder / "texts.npz", *(rng.integers(5, VOCABULARY, int(length)) for length in lengths))
    return f"{rows} rows of 10 to {LONGEST} wordpieces, {LAYERS} layers of {HIDDEN}, {VOCABULARY:,} wordpieces"


def model_and_batch(model_type: str, folder: Path) -> tuple[Any, Any]:
    import torch

    from realmctl.models.families.known import family
    from realmctl.models.inputs import Collator
    from realmctl.spans.query import hide
    from realmctl.tokens.frame import Frame

    special = dict(zip(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), FRAME * 2, strict=True))
    config = family(model_type).config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=4 * HIDDEN,
        max_position_embeddings=514,
        pad_token_id=PAD,
        **(
            special if model_type == "modernbert" else {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        ),
    )
    torch.manual_seed(0)
    mlm = family(model_type).masked_lm(config).train()
    rng = np.random.default_rng(1)
    with np.load(folder / "texts.npz") as texts:
        queries = [
            hide(text, np.flatnonzero(rng.random(len(text)) < MASKED), MASK) for text in map(texts.get, texts.files)
        ]
    cls, sep = FRAME
    return mlm, Collator(Frame((cls,), (sep, sep), (sep,), 0), PAD, MASK).queries(queries, LONGEST)


def ours(model_type: str, precision: str, folder: Path) -> Work:
    import torch
    import torch.nn.functional as F

    from realmctl.models.encoder import states_at_places
    from realmctl.models.families.known import mlm_logits
    from realmctl.models.precision import autocast

    mlm, batch = model_and_batch(model_type, folder)

    def step() -> np.ndarray:
        mlm.zero_grad()
        with autocast(torch.device("cpu"), precision):
            state_MH = states_at_places(mlm.base_model, batch.packed, batch.place_M)
            loss = F.cross_entropy(mlm_logits(mlm, state_MH).float(), batch.target_M)
        loss.backward()
        return np.array([float(loss)])

    return step


def transformers(model_type: str, folder: Path) -> Work:
    import torch

    mlm, batch = model_and_batch(model_type, folder)
    labels_BL = torch.full_like(batch.packed.ids_BL, -100)
    labels_BL.view(-1)[batch.place_M] = batch.target_M

    def step() -> np.ndarray:
        mlm.zero_grad()
        loss = mlm(input_ids=batch.packed.ids_BL, attention_mask=batch.packed.mask_BL.long(), labels=labels_BL).loss
        loss.backward()
        return np.array([float(loss)])

    return step


ROWS = tuple(
    Row(
        name=f"family-step-{model_type}",
        stage=f"step of mlm-init, {title}",
        prepare=prepare,
        ours=precisions(partial(ours, model_type)),
        peers=under_autocast("transformers", partial(transformers, model_type)),
        agree=equal_losses(2e-2),
    )
    for model_type, title in (("xlm-roberta", "XLM-R"), ("modernbert", "ModernBERT"))
)

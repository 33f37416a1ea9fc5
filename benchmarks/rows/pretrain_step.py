"""A pre-training step, forward and backward, beside the only PyTorch port of REALM's objective.

The peer is RealmScorer + RealmKnowledgeAugEncoder of transformers 4.57.6, which transformers 5 removed. Both sides get the same random weights
and token ids, without dropout. Our side computes two queries at once, as `realmctl pretrain --micro-batch 2` does.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from row import Row, Work, equal_losses, precisions, under_autocast
from torch import Tensor

CANDIDATES, QUERY, BLOCK, MASKS, VOCABULARY, PROJECTION = 8, 64, 288, 10, 30522, 128
CLS, SEP, PAD, MASK = 101, 102, 0, 103
MICRO_BATCH = 2


def prepare(size: str, folder: Path, quick: bool) -> str:
    """Write random weights and token ids for both sides. Most blocks are full, as after greedy packing."""
    from realmctl.models.bert.files import scratch_config
    from realmctl.models.bert.modules import BertForMaskedLM
    from realmctl.models.reader import Reader
    from realmctl.models.retriever import Retriever

    queries = 2 if quick else 4
    torch.manual_seed(0)
    mlm = BertForMaskedLM(scratch_config(size, VOCABULARY, dropout=0.0, hidden_act="gelu"))
    Retriever.from_bert(mlm.bert, projection=PROJECTION).save(folder / "retriever")
    Reader(mlm).save(folder / "reader")
    rng = np.random.default_rng(0)
    draws: dict[str, Any] = {"queries": [], "targets": [], "positions": [], "bodies": [], "titles": []}
    for _ in range(queries):
        tokens = rng.integers(1000, VOCABULARY, rng.integers(30, QUERY - 2))
        positions = np.sort(rng.choice(len(tokens), rng.integers(1, 4), replace=False))
        draws["targets"].append(tokens[positions].tolist())
        tokens[positions] = MASK
        draws["positions"].append((positions + 1).tolist())
        draws["queries"].append(tokens.tolist())
        lengths = [0, *(int(280 - min(200, rng.exponential(20))) for _ in range(CANDIDATES - 1))]
        draws["bodies"] += [rng.integers(1000, VOCABULARY, length).tolist() for length in lengths]
        draws["titles"] += [rng.integers(1000, VOCABULARY, 3 if length else 0).tolist() for length in lengths]
    (folder / "batch.json").write_text(json.dumps(draws), encoding="utf-8")
    return f"{size}, {queries} queries, {CANDIDATES} candidates of {BLOCK} wordpieces"


def ours(precision: str, folder: Path) -> Work:
    """Take the step as `realmctl pretrain` does."""
    from realmctl.models.inputs import Collator
    from realmctl.models.marginal import token_marginal
    from realmctl.models.precision import autocast
    from realmctl.models.reader import Reader
    from realmctl.models.retriever import Retriever
    from realmctl.tokens.frame import Frame

    retriever, reader = Retriever.load(folder / "retriever").train(), Reader.load(folder / "reader").train()
    draws = json.loads((folder / "batch.json").read_text(encoding="utf-8"))
    collator = Collator(Frame.bert(CLS, SEP), PAD, MASK)
    hidden, count = sum(map(len, draws["targets"])), len(draws["queries"])
    cuts = [slice(start, start + MICRO_BATCH) for start in range(0, count, MICRO_BATCH)]

    def loss_of(cut: slice) -> Tensor:
        """Return the part of the batch's loss that comes from these queries."""
        queries, positions, targets = (draws[name][cut] for name in ("queries", "positions", "targets"))
        rows = slice(cut.start * CANDIDATES, cut.stop * CANDIDATES)
        pairs = [*zip(draws["titles"][rows], draws["bodies"][rows], strict=True)]
        distinct: dict[str, int] = {}
        place = [distinct.setdefault(json.dumps(pair), len(distinct)) for pair in pairs]
        titles, bodies = zip(*(json.loads(pair) for pair in distinct), strict=True)
        most = max(map(len, targets))
        position_BM, target_BM = (
            torch.tensor([row + [0] * (most - len(row)) for row in rows]) for rows in (positions, targets)
        )
        mask_BM = torch.tensor([[slot < len(row) for slot in range(most)] for row in targets])
        query_BD = retriever.embed_queries(collator.query(queries, QUERY))
        block_BND = retriever.embed_blocks(collator.block(titles, bodies, BLOCK))[place].unflatten(
            0, (len(queries), -1)
        )
        repeated = [query for query in queries for _ in range(CANDIDATES)]
        joint = collator.joint(repeated, [body for _, body in pairs], QUERY, BLOCK)
        log_prob_BNM = reader.mlm_log_prob(joint, position_BM, target_BM, CANDIDATES)
        return token_marginal(retriever.score(query_BD, block_BND), log_prob_BNM, mask_BM, normaliser=hidden)[0]

    def step() -> Tensor:
        for module in (retriever, reader):
            module.zero_grad()
        total = torch.zeros(())
        for cut in cuts:
            with autocast(torch.device("cpu"), precision):
                loss = loss_of(cut)
            loss.backward()
            total += loss.detach()
        return total

    return lambda: np.array([float(step())])


def transformers(folder: Path) -> Work:
    """Take the step as in transformers' documentation of REALM, with every input padded to its full length."""
    from safetensors.torch import load_file
    from transformers import RealmConfig, RealmKnowledgeAugEncoder, RealmScorer

    fields = json.loads((folder / "reader" / "config.json").read_text(encoding="utf-8"))
    fields = {
        name: value
        for name, value in fields.items()
        if name not in ("model_type", "architectures", "dtype", "transformers_version")
    }
    config = RealmConfig(**{**fields, "num_candidates": CANDIDATES, "retriever_proj_size": PROJECTION})
    scorer, encoder = RealmScorer(config), RealmKnowledgeAugEncoder(config)
    block = folder / "retriever" / "block"
    tower = {f"realm.{name}": tensor for name, tensor in load_file(block / "model.safetensors").items()}
    tower |= {f"cls.{name}": tensor for name, tensor in load_file(block / "projection.safetensors").items()}
    fill(scorer.embedder, tower)
    weights = load_file(folder / "reader" / "model.safetensors")
    fill(encoder, {name.replace("bert.", "realm.", 1): tensor for name, tensor in weights.items()})
    encoder.tie_weights()
    encoder.cls.predictions.decoder.bias = encoder.cls.predictions.bias
    scorer.train(), encoder.train()
    draws = json.loads((folder / "batch.json").read_text(encoding="utf-8"))
    count, joint_length = len(draws["queries"]), QUERY + BLOCK
    repeated = [query for query in draws["queries"] for _ in range(CANDIDATES)]
    query = padded([[CLS, *tokens, SEP] for tokens in draws["queries"]], None, QUERY)
    blocks = padded([[CLS, *title, SEP] for title in draws["titles"]], draws["bodies"], BLOCK)
    joint = padded([[CLS, *tokens, SEP] for tokens in repeated], draws["bodies"], joint_length)
    labels, mlm_mask = torch.full((count, joint_length), -100), torch.zeros(count, joint_length)
    for row in range(count):
        labels[row, draws["positions"][row]] = torch.tensor(draws["targets"][row])
        mlm_mask[row, draws["positions"][row]] = 1

    def step() -> Tensor:
        scorer.zero_grad(), encoder.zero_grad()
        candidates = {f"candidate_{name}": part.view(count, CANDIDATES, -1) for name, part in blocks.items()}
        score_BN = scorer(**query, **candidates).relevance_score
        shaped = {name: part.view(count, CANDIDATES, -1) for name, part in joint.items()}
        loss = encoder(**shaped, relevance_score=score_BN, labels=labels, mlm_mask=mlm_mask).loss
        loss.backward()
        return loss.detach()

    return lambda: np.array([float(step())])


def padded(firsts: list[list[int]], seconds: list[list[int]] | None, length: int) -> dict[str, Tensor]:
    """Return `first` or `first second [SEP]`, padded to `length`, under the argument names of transformers."""
    ids, mask, segments = (torch.zeros(len(firsts), length, dtype=torch.long) for _ in range(3))
    for row, first in enumerate(firsts):
        second = [] if seconds is None else [*seconds[row], SEP]
        end = len(first) + len(second)
        ids[row, :end] = torch.tensor(first + second)
        mask[row, :end], segments[row, len(first) : end] = 1, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def fill(module: Any, tensors: dict[str, Tensor]) -> None:
    """Load all of `tensors`. Any other tensor of the module must belong to the head, which the step does not use."""
    missing, unexpected = module.load_state_dict(tensors, strict=False)
    left = [name for name in missing if "cls.predictions" not in name and not name.startswith("realm.pooler")]
    if left or unexpected:
        raise ValueError(f"The peer's tensors do not match: {left + list(unexpected)}")


ROWS = tuple(
    Row(
        name=f"pretrain-step-{size}",
        stage="pre-training step",
        prepare=partial(prepare, size),
        ours=precisions(ours),
        peers=under_autocast("transformers 4.57.6", transformers, realm=True),
        agree=equal_losses(1e-3),
    )
    for size in ("L6-H384-A12", "L2-H128-A2")
)

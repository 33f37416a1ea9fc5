"""The reader's part of a fine-tuning step, forward and backward: a question with each of five blocks, and the loss over all their spans.

The peer is RealmReader of transformers 4.57.6, which RealmForOpenQA trains. Both sides get the same random weights, token ids and retrieval scores, without dropout.
RealmForOpenQA reads one question at a time; our side reads those of a micro-batch together.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from row import Row, Side, Work, equal_losses
from torch import Tensor

BLOCKS, LENGTH, BLOCK, WIDTH, VOCABULARY = 5, 320, 288, 10, 30522
CLS, SEP, PAD, MASK = 101, 102, 0, 103


def prepare(folder: Path, quick: bool) -> str:
    from transformers import BertModel

    from realmctl.models.bert.files import scratch_config
    from realmctl.models.span_head import SpanReader

    size, questions = "L2-H128-A2" if quick else "L6-H384-A12", 1 if quick else 2
    torch.manual_seed(0)
    SpanReader(BertModel(scratch_config(size, VOCABULARY, dropout=0.0, hidden_act="gelu"))).save(folder / "reader")
    rng = np.random.default_rng(0)

    def tokens(length: int) -> list[int]:
        return [int(each) for each in rng.integers(1000, VOCABULARY, length)]

    drawn = {
        "questions": [tokens(int(rng.integers(8, 16))) for _ in range(questions)],
        "bodies": [
            [tokens(BLOCK - 20 - int(rng.exponential(15)) % 100) for _ in range(BLOCKS)] for _ in range(questions)
        ],
        "relevance": rng.standard_normal((questions, BLOCKS)).tolist(),
        "first": [int(rng.integers(0, 100)) for _ in range(questions)],
    }
    (folder / "drawn.json").write_text(json.dumps(drawn), encoding="utf-8")
    return f"{size}, {questions} questions with {BLOCKS} blocks of about {BLOCK - 30} wordpieces"


def ours(precision: str, folder: Path) -> Work:
    """Take the step as `realmctl finetune` does."""
    from realmctl.models.inputs import Collator, block_token_mask
    from realmctl.models.precision import autocast
    from realmctl.models.span_head import SpanReader, reader_loss
    from realmctl.tokens.frame import Frame

    reader = SpanReader.load(folder / "reader").train()
    drawn, collator = (
        json.loads((folder / "drawn.json").read_text(encoding="utf-8")),
        Collator(Frame.bert(CLS, SEP), PAD, MASK),
    )
    count = len(drawn["questions"])

    def step() -> np.ndarray:
        reader.zero_grad()
        asked = [question for question in drawn["questions"] for _ in range(BLOCKS)]
        packed, start_B = collator.reader(asked, [body for bodies in drawn["bodies"] for body in bodies], LENGTH)
        with autocast(torch.device("cpu"), precision):
            score_BS, (first_S, last_S) = reader.span_scores(packed, block_token_mask(packed, start_B), WIDTH)
        total_QKS = score_BS.view(count, BLOCKS, -1) + torch.tensor(drawn["relevance"])[:, :, None]
        correct_QKS = torch.zeros_like(total_QKS, dtype=torch.bool)
        for row, first in enumerate(drawn["first"]):
            place = first + int(start_B[BLOCKS * row])
            correct_QKS[row, 0] = (first_S == place) & (last_S == place + 1)
        loss_Q = reader_loss(total_QKS, correct_QKS)
        loss_Q.mean().backward()
        return loss_Q.detach().numpy()

    return step


def transformers(folder: Path) -> Work:
    """Take the step as RealmForOpenQA does, with every input padded to its full length."""
    from safetensors.torch import load_file
    from transformers import RealmConfig, RealmReader

    fields = json.loads((folder / "reader" / "config.json").read_text(encoding="utf-8"))
    left = ("model_type", "architectures", "dtype", "transformers_version")
    fields = {name: value for name, value in fields.items() if name not in left}
    beams = {
        "reader_beam_size": BLOCKS,
        "searcher_beam_size": BLOCKS,
        "reader_seq_len": LENGTH,
        "max_span_width": WIDTH,
    }
    reader = RealmReader(RealmConfig(**{**fields, **beams}))
    names = {"dense": "dense_intermediate", "norm": "layer_normalization", "output": "dense_output"}
    tensors = {f"realm.{name}": tensor for name, tensor in load_file(folder / "reader" / "model.safetensors").items()}
    for name, tensor in load_file(folder / "reader" / "span_head.safetensors").items():
        part, _, rest = name.partition(".")
        tensors[f"qa_outputs.{names[part]}.{rest}"] = tensor
    missing, unexpected = reader.load_state_dict(tensors, strict=False)
    left = [name for name in missing if "pooler" not in name and not name.startswith("cls.")]
    if left or unexpected:
        raise ValueError(f"The peer's tensors do not match: {left + unexpected}")
    reader.train()
    drawn = json.loads((folder / "drawn.json").read_text(encoding="utf-8"))

    def one(number: int) -> float:
        question, bodies = drawn["questions"][number], drawn["bodies"][number]
        packed, start = laid_out(question, bodies), len(question) + 2 + drawn["first"][number]
        gold = torch.tensor([[start], *[[-1]] * (BLOCKS - 1)])
        found = reader(
            **packed,
            relevance_score=torch.tensor(drawn["relevance"][number]),
            block_mask=packed["token_type_ids"].bool() & (packed["input_ids"] != SEP),
            start_positions=gold,
            end_positions=gold + (gold >= 0),
            has_answers=torch.tensor([True] + [False] * (BLOCKS - 1)),
        )
        (found.reader_loss / len(drawn["questions"])).backward()
        return float(found.reader_loss)

    def step() -> np.ndarray:
        reader.zero_grad()
        return np.array([one(number) for number in range(len(drawn["questions"]))])

    return step


def laid_out(question: list[int], bodies: list[list[int]]) -> dict[str, Tensor]:
    """`[CLS] question [SEP] body [SEP]`, padded to the full length."""
    ids, mask, segments = (torch.zeros(len(bodies), LENGTH, dtype=torch.long) for _ in range(3))
    for row, body in enumerate(bodies):
        whole: list[Any] = [CLS, *question, SEP, *body, SEP]
        ids[row, : len(whole)] = torch.tensor(whole)
        mask[row, : len(whole)], segments[row, len(question) + 2 : len(whole)] = 1, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


ROWS = (
    Row(
        name="reader-step",
        stage="fine-tuning step, the reader",
        prepare=prepare,
        ours=(Side("float32", partial(ours, "fp32")), Side("bfloat16", partial(ours, "bf16"))),
        peers=(Side("transformers 4.57.6, float32", transformers, realm=True),),
        agree=equal_losses(5e-3),
    ),
)

"""The reader's part of a step with a language model of GPT-2's shape: log p(y|z,x) of all candidates, forward alone, as for a frozen reader.

The peers are what people write with transformers: each prompt with its target through the model, with labels, one row at a time; or all rows in one
padded batch. All sides have the same random weights. Eight blocks are retrieved by two queries, so that most blocks are read twice.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from row import Row, Side, Work, equal_losses

CANDIDATES, BLOCKS, BLOCK, SENTENCE, SPAN = 8, 8, 200, 40, 6
"""Candidates of a query, the null document first; distinct blocks; tokens of a block, of a sentence before its span, and of the span. A token is a
character here."""


def prepare(folder: Path, quick: bool) -> str:
    """Write a GPT-2 with random weights, whose tokens are characters, and texts."""
    from tokenizers import Tokenizer as LibraryTokenizer
    from tokenizers import decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel

    alphabet = ["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = LibraryTokenizer(models.BPE(vocab={token: number for number, token in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    layers, queries = (2, 2) if quick else (12, 2)
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config(n_layer=layers, bos_token_id=0, eos_token_id=0)).save_pretrained(folder)
    rng = np.random.default_rng(0)

    def text(length: int) -> str:
        return "".join(chr(97 + letter) for letter in rng.integers(0, 26, length))

    places = [[-1, *rng.choice(BLOCKS, CANDIDATES - 1, replace=False).tolist()] for _ in range(queries)]
    drawn = {
        "texts": [[f"{text(SENTENCE)} ", text(SPAN)] for _ in range(queries)],
        "blocks": [[text(8), text(BLOCK - int(rng.integers(0, 60)))] for _ in range(BLOCKS)],
        "places": places,
    }
    (folder / "texts.json").write_text(json.dumps(drawn), encoding="utf-8")
    return (
        f"GPT-2 of {layers} layers, {queries} queries, {CANDIDATES} candidates out of {BLOCKS} blocks of {BLOCK} tokens"
    )


def ours(folder: Path) -> Work:
    """Read as `realmctl pretrain --reader-lm` does."""
    from realmctl.lab.language_models.models.known import load_reader
    from realmctl.lab.language_models.models.prompts import BlockPrompt
    from realmctl.lab.language_models.models.reading import ReadBlock, ReadingLimits
    from realmctl.spans.query import HiddenText

    reader = load_reader(folder, BlockPrompt(), ReadingLimits(512, 64)).eval()
    drawn = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    texts, blocks = [HiddenText(*text) for text in drawn["texts"]], [ReadBlock(*block) for block in drawn["blocks"]]
    place_BN = np.array(drawn["places"])

    @torch.inference_mode()
    def read() -> np.ndarray:
        log_prob_BNM, hidden_BM = reader.log_prob(texts, blocks, place_BN)
        return log_prob_BNM.masked_fill(~hidden_BM[:, None], 0.0).sum(2).numpy()

    return read


def transformers(batched: bool, folder: Path) -> Work:
    """Score prompt by prompt by the model's own loss, or all prompts in a padded batch."""
    from tokenizers import Tokenizer as LibraryTokenizer
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = LibraryTokenizer.from_file(str(folder / "tokenizer.json"))
    drawn, rows = json.loads((folder / "texts.json").read_text(encoding="utf-8")), []
    for (before, hidden), places in zip(drawn["texts"], drawn["places"], strict=True):
        for place in places:
            block = "" if place < 0 else "{}\n{}\n\n".format(*drawn["blocks"][place])
            prompt = [0, *tokenizer.encode(block + before.rstrip()).ids]
            rows.append((prompt, tokenizer.encode(f" {hidden}").ids))
    length = max(len(prompt) + len(target) for prompt, target in rows)

    @torch.inference_mode()
    def one_by_one() -> np.ndarray:
        found = []
        for prompt, target in rows:
            labels = torch.tensor([[-100] * len(prompt) + target])
            found.append(-net(input_ids=torch.tensor([prompt + target]), labels=labels).loss.item() * len(target))
        return np.array(found).reshape(-1, CANDIDATES)

    @torch.inference_mode()
    def together() -> np.ndarray:
        ids, mask = torch.zeros(len(rows), length, dtype=torch.long), torch.zeros(len(rows), length, dtype=torch.long)
        for number, (prompt, target) in enumerate(rows):
            end = len(prompt) + len(target)
            ids[number, :end], mask[number, :end] = torch.tensor(prompt + target), 1
        log_prob = net(input_ids=ids, attention_mask=mask).logits.log_softmax(-1)
        found = [
            sum(float(log_prob[number, len(prompt) - 1 + place, token]) for place, token in enumerate(target))
            for number, (prompt, target) in enumerate(rows)
        ]
        return np.array(found).reshape(-1, CANDIDATES)

    return together if batched else one_by_one


def row_by_row(folder: Path) -> Work:
    return transformers(False, folder)


def padded(folder: Path) -> Work:
    return transformers(True, folder)


ROWS = (
    Row(
        name="language-model-reader",
        stage="reading by a language model",
        prepare=prepare,
        ours=(Side("float32", ours),),
        peers=(Side("transformers, row by row", row_by_row), Side("transformers, padded batch", padded)),
        agree=equal_losses(1e-3),
    ),
)

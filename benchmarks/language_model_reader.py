"""Time the reader's part of a step with a language model of GPT-2's shape: log p(y|z,x) of all candidates, by realmctl and by a plain loop.

    python benchmarks/language_model_reader.py [--queries 2] [--blocks 8] [--rounds 3]

The peer is what people write with transformers: each prompt with its target through the model, with labels, one row at a time; or all rows in one
padded batch. Both sides have the same random weights of 12 layers and 768 hidden numbers (GPT-2's), frozen, on one thread, in float32. Their log-likelihoods
must agree to 1e-3. The sides take turns; each turn is timed in CPU seconds. `--blocks` is the number of distinct blocks that the queries retrieve, 8 each:
fewer blocks are shared by more queries.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from realmctl.models.lm.causal import CausalReader
from realmctl.models.lm.model import LanguageModel, SpecialIds
from realmctl.models.lm.prompts import BlockPrompt
from realmctl.models.lm.reading import Passage, ReadingLimits
from realmctl.spans.query import HiddenText

CANDIDATES, BLOCK, SENTENCE, SPAN = 8, 200, 40, 6
"""Candidates of a query, and tokens of a block, of a sentence before its span, and of the span; one character is one token here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--queries", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)

    def text(length: int) -> str:
        return "".join(chr(97 + letter) for letter in rng.integers(0, 26, length))

    texts = [HiddenText(text(SENTENCE) + " ", text(SPAN)) for _ in range(options.queries)]
    blocks = [Passage(text(8), text(BLOCK - rng.integers(0, 60))) for _ in range(options.blocks)]
    place_BN = np.array([rng.choice(options.blocks, CANDIDATES, replace=False) for _ in texts])
    place_BN[:, 0] = -1  # the null document
    reader = make_reader(options.layers)
    sides = {
        "realmctl": lambda: reader.log_prob(texts, blocks, place_BN)[0].sum(2),
        "row by row": lambda: row_by_row(reader, texts, blocks, place_BN),
        "padded batch": lambda: padded(reader, texts, blocks, place_BN),
    }
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    found = {}
    with torch.inference_mode():
        for _ in range(options.rounds):
            for name, side in sides.items():
                start = time.process_time()
                found[name] = side()
                seconds[name].append(time.process_time() - start)
    for name, each in seconds.items():
        print(f"{name}: {statistics.median(each):.2f} s ({min(each):.2f}-{max(each):.2f})")
    for name in ("row by row", "padded batch"):
        ratios = [peer / own for own, peer in zip(seconds["realmctl"], seconds[name], strict=True)]
        print(f"{name} / realmctl: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
        if (difference := (found[name] - found["realmctl"]).abs().max()) > 1e-3:
            sys.exit(f"The log-likelihoods of {name} differ by {difference:.1e}: these are not the same computation.")


def make_reader(layers: int) -> CausalReader:
    """A GPT-2 with random weights, whose tokens are characters."""
    alphabet = {
        token: number for number, token in enumerate(["<|endoftext|>", *sorted(pre_tokenizers.ByteLevel.alphabet())])
    }
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    net = GPT2LMHeadModel(GPT2Config(n_layer=layers)).eval()
    return CausalReader(
        LanguageModel(net, tokenizer, SpecialIds(0, 0, 0)), BlockPrompt(), ReadingLimits(512, 64)
    ).eval()


def rows_of(
    reader: CausalReader, texts: list[HiddenText], blocks: list[Passage], place_BN: np.ndarray
) -> list[tuple[list[int], list[int]]]:
    """Prompt and target of each row."""
    model, rows = reader.model, []
    for text, places in zip(texts, place_BN, strict=True):
        for place in places:
            block = "" if place < 0 else f"{blocks[place].title}\n{blocks[place].text}\n\n"
            rows.append(([0, *model.ids(block + text.before.rstrip())], model.ids(f" {text.hidden}")))
    return rows


def row_by_row(reader: CausalReader, texts: list[HiddenText], blocks: list[Passage], place_BN: np.ndarray) -> Tensor:
    found = []
    for prompt, target in rows_of(reader, texts, blocks, place_BN):
        labels = torch.tensor([[-100] * len(prompt) + target])
        found.append(-reader.model.net(input_ids=torch.tensor([prompt + target]), labels=labels).loss * len(target))
    return torch.stack(found).view(place_BN.shape)


def padded(reader: CausalReader, texts: list[HiddenText], blocks: list[Passage], place_BN: np.ndarray) -> Tensor:
    batch = reader.model.batch(*zip(*rows_of(reader, texts, blocks, place_BN), strict=True), ended=False)
    return reader.model.log_prob(batch)[0].sum(1).view(place_BN.shape)


if __name__ == "__main__":
    main()

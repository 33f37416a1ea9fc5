"""Reranking beside sentence-transformers: CPU seconds for 50 blocks of 128 wordpieces by a 6-layer cross-encoder.

    python benchmarks/rerank.py                          # random weights of BERT, and of XLM-RoBERTa
    python benchmarks/rerank.py --model FOLDER           # a model of your own

Both sides compute in float32 on one thread, in this process, in alternating rounds, and their scores are compared. Blocks are made of random words of
the vocabulary, each one wordpiece; with --model each block has as many words. `mixed` are blocks of 16 to 128 wordpieces.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from realmctl.retrieval.search.reranking import Pair, Reranking

BLOCKS, WORDPIECES, ASKED, WORDS, ROUNDS = 50, 128, 8, 8000, 5
SIZES: dict[str, Any] = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 514,
    "num_labels": 1,
}


def words_of(rng: np.random.Generator) -> list[str]:
    """Different words of four to nine letters."""
    letters = np.array([*"etaoinshrdlu"])
    found: dict[str, None] = {}
    while len(found) < WORDS:
        found["".join(rng.choice(letters, rng.integers(4, 10)))] = None
    return [*found]


def make_model(folder: Path, family: str, words: list[str]) -> Path:
    """Save a cross-encoder with random weights as sentence-transformers does."""
    from sentence_transformers import CrossEncoder
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    torch.manual_seed(0)
    fields = {"vocab_size": len(vocabulary), "pad_token_id": 0, "initializer_range": 0.1, **SIZES}
    AutoModelForSequenceClassification.from_config(AutoConfig.for_model(family, **fields)).save_pretrained(folder)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if family == "bert" else [])]
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    plain = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, model_input_names=names, **roles)
    plain.save_pretrained(folder)
    CrossEncoder(str(folder), device="cpu").save(str(folder / "saved"), create_model_card=False)
    return folder / "saved"


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and what it returns."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def compare(name: str, model: Path, words: list[str]) -> None:
    """Print a line of the table for blocks of one length, and one for blocks of several."""
    from sentence_transformers import CrossEncoder

    ours, theirs = Reranking.of(model, BLOCKS, "cpu"), CrossEncoder(str(model), device="cpu")
    assert ours is not None
    for kind, least in (("128", WORDPIECES), ("mixed", 16)):
        rng = np.random.default_rng(1)
        question = " ".join(rng.choice(words, ASKED))
        texts = [" ".join(rng.choice(words, rng.integers(least, WORDPIECES + 1))) for _ in range(BLOCKS)]
        sides: list[Callable[[], Any]] = [
            lambda texts=texts, question=question: theirs.predict([(question, text) for text in texts]),
            lambda texts=texts, question=question: ours.model.scores([Pair(question, "", text) for text in texts]),
        ]
        for side in sides:
            side()  # a first call is slower
        rounds = [[cpu_seconds(side) for side in sides] for _ in range(ROUNDS)]
        seconds = [[one[0] for one in each] for each in rounds]
        apart = float(np.abs(rounds[0][0][1] - rounds[0][1][1]).max())
        ratios = [own / their for their, own in seconds]
        medians = " | ".join(f"{statistics.median(each):.3f}" for each in zip(*seconds, strict=True))
        spread = f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"| {name} | {kind} | {medians} | {spread} | {apart:.1e} |", flush=True)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, action="append", default=[])
    given = parser.parse_args()
    torch.set_num_threads(1)
    words = words_of(np.random.default_rng(0))
    print(
        "| model | wordpieces of a block | sentence-transformers, CPU s | realmctl, CPU s | ratio (least to most) | largest deviation |\n"
        "|---|---|--:|--:|---|--:|"
    )
    for model in given.model:
        compare(model.name, model, words)
    for family in () if given.model else ("bert", "xlm-roberta"):
        with tempfile.TemporaryDirectory() as folder:
            compare(family, make_model(Path(folder), family, words), words)


if __name__ == "__main__":
    main()

"""Write a small T5 and a small GPT-2 with random weights, and a tokenizer trained on a world's text: folders FOLDER/t5 and FOLDER/gpt2.

    python examples/recorded/small_language_models.py WORLD FOLDER

They are as small as the readers that they are compared with: two layers (two on each side for T5) of width 128.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel, T5Config, T5ForConditionalGeneration

SPECIAL = ["<pad>", "</s>", "<extra_id_0>", "<extra_id_1>"]
WORDS, LAYERS, WIDTH, HEADS = 3000, 2, 128, 4


def texts(world: Path) -> Iterator[str]:
    """Yield the texts of a world's parallel corpora and its training questions."""
    for file in sorted((world / "parallel").rglob("wiki_*")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)["text"]
    for line in (world / "train.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)["question"]


def trained_tokenizer(world: Path) -> LibraryTokenizer:
    """Return a byte-level BPE tokenizer."""
    tokenizer = LibraryTokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts(world), trainer)
    return tokenizer


def models_of(words: int) -> dict[str, PreTrainedModel]:
    """Return {name: model with random weights} for a vocabulary of this size."""
    torch.manual_seed(0)
    t5 = T5Config(
        vocab_size=words,
        d_model=WIDTH,
        d_kv=WIDTH // HEADS,
        d_ff=4 * WIDTH,
        num_layers=LAYERS,
        num_decoder_layers=LAYERS,
        num_heads=HEADS,
        dropout_rate=0.0,
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    gpt2 = GPT2Config(
        vocab_size=words,
        n_embd=WIDTH,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=128,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=1,
    )
    return {"t5": T5ForConditionalGeneration(t5), "gpt2": GPT2LMHeadModel(gpt2)}


def main() -> None:
    """Run the command line: write the folders."""
    world, folder = map(Path, sys.argv[1:3])
    tokenizer = trained_tokenizer(world)
    for name, model in models_of(tokenizer.get_vocab_size()).items():
        model.save_pretrained(folder / name)
        tokenizer.save(str(folder / name / "tokenizer.json"))


if __name__ == "__main__":
    main()

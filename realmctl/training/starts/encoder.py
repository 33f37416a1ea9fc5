"""The BERT that a stage starts from: an encoder artifact, a folder, or fresh weights of a named size."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from realmctl.artifacts import Artifact, require_same_vocabulary
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.log import say
from realmctl.models.bert.files import load_masked_lm, scratch_config
from realmctl.models.bert.modules import BertForMaskedLM, Encoder
from realmctl.models.precision import seed_everything
from realmctl.tokens.tokenizer import Tokenizer

SCRATCH = "scratch:"
BERT_INITIALIZER_RANGE, BERT_HIDDEN_SIZE = 0.02, 768
"""The initialiser range and hidden size of BERT base (google-research/bert, modeling.py)."""
Head = Literal["any", "trained", "required"]
"""any: nothing depends on the head. trained: a missing one is made, and said, since training begins with it. required: a missing one is an error."""
SCRATCH_DROPOUT = 0.1
"""Dropout of a BERT from scratch where no other is asked for: BERT's (Devlin et al. 2019, appendix A.2)."""


def starting_bert(
    encoder: Artifact | None,
    bert: str | None,
    blocks: Artifact,
    seed: int,
    dropout: float | None = None,
    head: Head = "any",
) -> Encoder:
    """Load or make the BERT to start from, with the blocks' vocabulary.

    Args:
        encoder: an encoder artifact.
        bert: instead of it a BERT folder or `scratch:SIZE`.
        blocks: the blocks whose vocabulary the BERT must have.
        seed: seed of fresh weights.
        dropout: dropout, saved with the BERT. None keeps the rates of a loaded BERT, and is 0.1 for one from scratch.
        head: what is asked of its masked-language-model head.

    Raises:
        ConfigError: both are given.
        MismatchError: the vocabularies differ.
        InputError: neither is given, or the head is required and missing.
    """
    if encoder is not None and bert is not None:
        raise ConfigError(f"--bert {bert} and --encoder {encoder} are two starts. Give one of them.")
    if encoder is not None:
        require_same_vocabulary(blocks, encoder)
        return _loaded(encoder.path, head, dropout)
    if bert is None:
        raise InputError(
            "no encoder is named, and the workspace has none to start from. Make one with `realmctl mlm-init`, or name --encoder, "
            "--bert FOLDER, or --bert scratch:SIZE, such as scratch:tiny, for random weights."
        )
    words = Tokenizer.load(blocks.path)
    words.require_masks(blocks)
    seed_everything(seed)
    if bert.startswith(SCRATCH):
        return _fresh(bert.removeprefix(SCRATCH), words, SCRATCH_DROPOUT if dropout is None else dropout)
    model = _loaded(Path(bert), head, dropout)
    _require_tokenizer(Path(bert), blocks, words, model.config.vocab_size)
    return model


def masked_lm_with_head(folder: Path) -> Encoder:
    """Load a BERT folder. Raises InputError when it has no masked-language-model head."""
    return _loaded(folder, "required")


def _loaded(folder: Path, head: Head, dropout: float | None = None) -> Encoder:
    model, had_head = load_masked_lm(folder, dropout)
    if head == "required" and not had_head:
        raise InputError(
            f"{folder} has no masked-language-model head, and answers without retrieval come from that head. "
            "Use an encoder that mlm-init or pretrain made, or a BERT that was saved with its head."
        )
    if head == "trained" and not had_head:
        say(f"{folder} has no masked-language-model head; it gets a fresh one")
    return model


def _fresh(size: str, words: Tokenizer, dropout: float) -> Encoder:
    """A BERT with random weights.

    Their standard deviation is BERT's 0.02 times sqrt(768 / hidden size), so that a sum over the hidden units has the same
    variance at every width. docs/concepts/fidelity.md lists this deviation.
    """
    config = scratch_config(size, words.rows, dropout, pad=words.pad)
    config.initializer_range = BERT_INITIALIZER_RANGE * (BERT_HIDDEN_SIZE / config.hidden_size) ** 0.5
    return BertForMaskedLM(config)


def _require_tokenizer(folder: Path, blocks: Artifact, words: Tokenizer, rows: int) -> None:
    """Raise MismatchError unless an encoder has a row for each wordpiece, and its folder no other tokenizer than the blocks.

    A vocabulary may be padded beyond the tokenizer's, as ModernBERT's is.
    """
    has_tokenizer = any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt"))
    fits = (
        Tokenizer.load(folder).identity == words.identity and words.rows <= rows
        if has_tokenizer
        else len(words) == rows
    )
    if not fits:
        raise MismatchError(
            f"{folder} has a vocabulary of {rows} wordpieces that is not the one of {blocks} ({len(words)}), or another tokenizer. "
            f"Chunk the corpus with its tokenizer: realmctl chunk --tokenizer {folder}."
        )

"""The kinds of language models that read, and which of them a folder holds."""

from __future__ import annotations

from pathlib import Path

import torch

from realmctl.lab.language_models.models.causal import CausalReader
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.lab.language_models.models.prompts import BlockPrompt
from realmctl.lab.language_models.models.reading import LmReader, ReadingLimits
from realmctl.lab.language_models.models.seq2seq import Seq2SeqReader


def load_reader(
    folder: Path,
    prompt: BlockPrompt,
    limits: ReadingLimits,
    dropout: float | None = None,
    dtype: torch.dtype = torch.float32,
) -> LmReader:
    """Load the language model of a folder as a reader. Arguments as in `load_language_model`; raises what it and the kind raise."""
    return reader_of(load_language_model(folder, dropout, dtype), prompt, limits)


def reader_of(model: LanguageModel, prompt: BlockPrompt, limits: ReadingLimits) -> LmReader:
    """Return a language model as a reader. Raises what its kind raises."""
    return (Seq2SeqReader if model.reads_source_apart else CausalReader)(model, prompt, limits)

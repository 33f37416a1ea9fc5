"""Models with a head of their own in Hugging Face's layout, opened with their tokenizer. No code of a folder is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import AutoTokenizer
from transformers.utils import logging as transformers_logging

from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.models.bert.foreign_config import count_weights, read_config
from realmctl.models.bert.limits import require_memory
from realmctl.models.families.known import FAMILIES, family
from realmctl.models.weights import require_finite
from realmctl.tokens.library_file import open_tokenizer

AFTER_PADDING = ("xlm-roberta-xl", "roberta-prelayernorm", "data2vec-text", "longformer", "ibert", "xmod", "esm")
"""Types of encoders, beside those of the families, whose positions begin behind that of padding."""


def open_foreign(folder: Path, kind: Any, what: str, flag: str, drawn: tuple[str, ...] = ()) -> tuple[Any, Any, int]:
    """Return the tokenizer, the model in float32 on the CPU, and the most tokens of an input.

    Args:
        folder: folder with config.json, model.safetensors and the files of a tokenizer.
        kind: class of transformers that builds the model, such as AutoModelForTokenClassification.
        what: what the folder should hold, such as `token-classification model`.
        flag: what the user named, for messages.
        drawn: beginnings of the names of tensors that the file may lack, which are then random.

    Raises:
        InputError: `folder` has no such model with a fast tokenizer, the file lacks a tensor, its weights are not finite, or the model brings its own code.
        ResourceError: the weights do not fit into the free memory.
    """
    config = read_config(folder, what)
    require_memory(count_weights(folder, kind, config, f"Name a {what}."), folder)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # what is missing is refused below, or is to be drawn
    if (library_file := folder / "tokenizer.json").is_file():
        open_tokenizer(library_file)  # which refuses what would take down the process
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        model, report = kind.from_pretrained(
            str(folder),
            config=config,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below
        )
        longest = min(int(tokenizer.model_max_length), _positions(model.config))
    except Exception as error:  # transformers raises many kinds for fields of a wrong type
        raise as_realmctl_error(error, folder) or InputError(
            f"{flag}: no {what} can be loaded from there ({one_line(error)}). "
            "Name a folder or hub id with config.json, model.safetensors and tokenizer files."
        ) from None
    if unlike := sorted(report["mismatched_keys"]):
        tensor, held, wanted = unlike[0]
        raise InputError(
            f"{flag}: its tensor '{tensor}' has the shape {[*held]}, and config.json describes {[*wanted]}. Restore the model's own config.json."
        )
    if missing := sorted(name for name in report["missing_keys"] if not name.startswith(drawn or "\0")):
        raise InputError(
            f"{flag}: its weights lack the tensor '{missing[0]}', so it is no trained {what}. Name another."
        )
    words = [file for name, file in tokenizer.vocab_files_names.items() if name != "tokenizer_file"]
    if lacking := [] if library_file.is_file() else [file for file in words if not (folder / file).is_file()]:
        raise InputError(
            f"{flag}: it has neither a tokenizer.json nor {lacking[0]}, so every word would be unknown. Put the model's own tokenizer files beside config.json."
        )
    if not tokenizer.is_fast:
        raise InputError(f"{flag}: its tokenizer does not give character offsets. Use a model with a tokenizer.json.")
    if tokenizer.pad_token is None:
        raise InputError(f"{flag}: its tokenizer has no padding token. Name one as pad_token in tokenizer_config.json.")
    if (last := max(tokenizer.get_vocab().values(), default=-1)) >= model.config.vocab_size:
        raise InputError(
            f"{flag}: its tokenizer has ids up to {last}, but the model has {model.config.vocab_size} rows. They belong to two models. "
            "Restore the model's own tokenizer files."
        )
    require_finite(model.state_dict(), folder)
    return tokenizer, model.float().eval(), longest


def _positions(config: Any) -> int:
    """Return the most tokens of an input. The positions of some encoders begin behind that of padding, such as RoBERTa's."""
    if config.model_type in FAMILIES.names():
        return family(config.model_type).positions(config)
    return int(config.max_position_embeddings) - (config.pad_token_id + 1 if config.model_type in AFTER_PADDING else 0)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write a tokenizer of transformers without the cutting and padding of the last text that it read, which it would keep."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)

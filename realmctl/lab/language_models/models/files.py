"""Folders of language models: strict checks, then transformers' own loader.

Only three kinds of file are read: config.json, tokenizer.json and weights in safetensors. No code of a folder is run, and
no pickle is opened. The sizes in config.json are checked before any weight is allocated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as LibraryTokenizer
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GenerationConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from realmctl.artifacts.disk import share_as_folder
from realmctl.errors import ConfigError, InputError, as_realmctl_error, one_line
from realmctl.lab.language_models.models.model import LanguageModel, SpecialIds
from realmctl.models.bert.foreign_config import CONFIG, count_weights, read_config
from realmctl.models.bert.limits import require_memory
from realmctl.models.weights import require_finite, require_sound
from realmctl.tokens.library_file import open_tokenizer

TOKENIZER, WEIGHTS, SHARDS = "tokenizer.json", "model.safetensors", "model.safetensors.index.json"
CHAT_TEMPLATE = "chat_template.jinja"
OTHER_KINDS = "Name a folder of T5's kind (sequence to sequence) or of GPT-2's (causal)."


def load_language_model(
    folder: Path, dropout: float | None = None, dtype: torch.dtype = torch.float32, attention: str | None = "eager"
) -> LanguageModel:
    """Load a folder that `AutoModelForSeq2SeqLM` or `AutoModelForCausalLM` can load.

    Args:
        folder: config.json, tokenizer.json and model.safetensors, which may be in several parts.
        dropout: Value for every dropout rate of the model; None keeps those of config.json.
        dtype: In what its weights are held, whatever the file has.
        attention: How transformers computes attention; None for its fastest way. Its masks for that are read on the host, for which a step of training on a GPU would wait.

    Raises:
        InputError: A file is missing or damaged, the weights are pickled or not finite, the model brings its own code or has no head that
            predicts the next token, or fails at a short text, or tokenizer and weights do not fit together.
        ResourceError: The weights do not fit into the free memory.
    """
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()  # what does not fit is refused here, in one paragraph
    config = read_config(folder, "language model")
    _require_head(config, folder)
    if dropout is not None:
        _set_dropout(config, dropout)
    tokenizer = _tokenizer(folder)
    rows, most = 1 + max(tokenizer.get_vocab().values(), default=-1), getattr(config, "vocab_size", 0)
    if rows > most:
        raise InputError(
            f"{folder / TOKENIZER} has ids up to {rows - 1}, but the model has {most} rows. They belong to two models. Restore the model's own "
            "tokenizer.json."
        )
    special = _special_ids(config, folder)
    _require_safe_weights(folder)
    require_memory(count_weights(folder, _kind(config), config, OTHER_KINDS), folder, dtype.itemsize)
    model = LanguageModel(_weights(config, folder, dtype, attention), tokenizer, special)
    _require_computes(model, folder)
    return model


def require_named_prompt(folder: Path, prompts: Mapping[str, str | None]) -> None:
    """Raise ConfigError for a chat model where the user names none of the prompts, {option: text}: the defaults are plain text."""
    settings = folder / "tokenizer_config.json"
    try:
        has_template = settings.is_file() and "chat_template" in json.loads(settings.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{settings} is not JSON ({one_line(error)}). Copy it again.") from None
    if any(text is not None for text in prompts.values()) or not (has_template or (folder / CHAT_TEMPLATE).is_file()):
        return
    raise ConfigError(
        f"{folder} is a chat model: its tokenizer has a chat template, and realmctl's own prompt is plain text. Name its base model, or the prompt "
        f"that this one shall read with {' or '.join(prompts)}; it may be plain text too."
    )


def save_language_model(model: LanguageModel, folder: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json. `transformers` loads the folder.

    Raises:
        QualityError: A tensor holds a number that is not finite.
    """
    require_sound(model.net.state_dict(), folder / WEIGHTS)
    model.net.generation_config = GenerationConfig.from_model_config(model.net.config)
    model.net.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        share_as_folder(path)
    model.tokenizer.save(str(folder / TOKENIZER))


def _require_head(config: Any, folder: Path) -> None:
    names = getattr(config, "architectures", None) or []
    if names and not any(part in name for name in names for part in ("CausalLM", "LMHead", "ConditionalGeneration")):
        raise InputError(
            f"{folder} is no language model: {CONFIG} calls it {names[0]}, which has no head for the next token. {OTHER_KINDS} An encoder reads with "
            "--encoder or --bert."
        )


def _set_dropout(config: Any, rate: float) -> None:
    for name in config.to_dict():
        if ("dropout" in name or name.endswith("pdrop")) and isinstance(getattr(config, name, None), float):
            setattr(config, name, rate)


def _tokenizer(folder: Path) -> LibraryTokenizer:
    path = folder / TOKENIZER
    if not path.is_file():
        raise InputError(
            f"{folder} has no {TOKENIZER}, so its model cannot read text. Save the model's fast tokenizer into the folder: "
            "AutoTokenizer.from_pretrained(ID).save_pretrained(FOLDER)."
        )
    return open_tokenizer(path)


def _special_ids(config: Any, folder: Path) -> SpecialIds:
    end = getattr(config, "eos_token_id", None)
    end = end[0] if isinstance(end, list) and end else end
    if type(end) is not int or not 0 <= end < config.vocab_size:
        raise InputError(
            f"{folder / CONFIG} has the eos_token_id {end!r}, so no answer of the model would end. Write the id of its "
            "end-of-text token there."
        )
    others = [getattr(config, name, None) for name in ("pad_token_id", "bos_token_id")]
    pad, start = (other if type(other) is int and 0 <= other < config.vocab_size else end for other in others)
    return SpecialIds(end=end, pad=pad, start=start)


def _require_safe_weights(folder: Path) -> None:
    if (folder / "adapter_config.json").exists():
        raise InputError(
            f"{folder} holds an adapter, which changes the weights of another model. Merge it into its model, and save the model."
        )
    if (folder / WEIGHTS).is_file() or (folder / SHARDS).is_file():
        return
    pickles = [path.name for path in sorted(folder.glob("*.bin"))]
    found = f"only {pickles[0]}, a pickle, which can run code when it is opened" if pickles else "no weights"
    raise InputError(
        f"{folder} has no {WEIGHTS}; it has {found}. Convert the weights where you trust them: "
        "AutoModel.from_pretrained(FOLDER).save_pretrained(NEW), or use a revision that has safetensors."
    )


def _require_computes(model: LanguageModel, folder: Path) -> None:
    """Raise InputError where the model fails at two short rows: transformers checks few fields of config.json before it computes with them."""
    short, longer = [model.special.start], [model.special.start, model.special.end]
    try:
        with torch.no_grad():
            model.log_prob(model.batch([short, longer], [longer, short]))
    except Exception as error:
        raise as_realmctl_error(error, folder) or InputError(
            f"{folder / CONFIG} describes a model that cannot compute ({one_line(error)}). Restore the model's own {CONFIG}."
        ) from None


def _kind(config: object) -> Any:
    return AutoModelForSeq2SeqLM if getattr(config, "is_encoder_decoder", False) else AutoModelForCausalLM


def _weights(config: object, folder: Path, dtype: torch.dtype, attention: str | None) -> PreTrainedModel:
    try:
        net, report = _kind(config).from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=dtype,
            attn_implementation=attention,
            output_loading_info=True,
        )
    except Exception as error:
        raise as_realmctl_error(error, folder) or InputError(
            f"Cannot read the weights in {folder}: {one_line(error)}. Copy the folder again."
        ) from None
    if report["missing_keys"]:
        raise InputError(
            f"The weights in {folder} lack the tensor '{min(report['missing_keys'])}'. They belong to another model, or "
            "its config.json does not describe them."
        )
    require_finite(net.state_dict(), folder)
    net.generation_config = (
        GenerationConfig()
    )  # a folder's own would change what is generated: penalties, beams, another type of output
    return net.eval()

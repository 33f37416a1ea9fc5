"""What a folder of a cross-encoder says beside its weights, as sentence-transformers writes it.

Names of classes in a folder are compared with those that are known, and never imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.models.bert.foreign_config import read_fields

SENTENCE_TRANSFORMERS, MODULES, LENGTH = (
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
)
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "Sigmoid": torch.sigmoid,
    "Identity": lambda logits: logits,
    "Tanh": torch.tanh,
    "ReLU": torch.relu,
    "Softplus": torch.nn.functional.softplus,
    "LogSigmoid": torch.nn.functional.logsigmoid,
}
CLASSIFIER, YES_NO = ["Transformer"], ["Transformer", "LogitScore"]


@dataclass(frozen=True, kw_only=True)
class CrossEncoderFolder:
    """What the files beside the weights say.

    activation: the name of the function of the logits; None where the folder names none. prompt: what stands before each question.
    max_length: most tokens of an input; None for what the tokenizer says. yes, no: tokens of a language model whose logits are compared;
    no may be None alone, for the logit of `yes`. Both are None for a classifier.
    """

    activation: str | None = None
    prompt: str = ""
    max_length: int | None = None
    yes: int | None = None
    no: int | None = None
    is_classifier: bool = True


def read_folder(folder: Path, flag: str) -> CrossEncoderFolder:
    """Read the files of a cross-encoder beside its weights. A folder of transformers has none of them.

    Raises InputError for what is not computed here, with the option `flag` in its message.
    """
    stated, config = _object(folder / SENTENCE_TRANSFORMERS, flag), _object(folder / "config.json", flag)
    if (kind := stated.get("model_type", "CrossEncoder")) != "CrossEncoder":
        raise refused(
            flag, f"it is a {str(kind)[:40]} of sentence-transformers, which gives vectors and no score of a pair"
        )
    modules = _modules(folder, flag)
    kinds = [name for name, _ in modules]
    causal = any("ForCausalLM" in str(name) for name in config.get("architectures") or [])
    if kinds not in (CLASSIFIER, YES_NO):
        raise refused(
            flag,
            f"its modules are {', '.join(kinds)[:80]}, and Transformer alone or with LogitScore behind it can be used",
        )
    held = modules[0][1]
    limits, ids = _object(held / LENGTH, flag), {}
    if limits.get("processing_kwargs"):
        raise refused(flag, f"its processing_kwargs ask for {str(limits['processing_kwargs'])[:60]}")
    if kinds == YES_NO:
        ids = _object(modules[1][1] / "config.json", flag)
        causal = True
    own = config.get("sentence_transformers")
    names = (
        stated.get("activation_fn"),
        own.get("activation_fn") if isinstance(own, dict) else None,
        config.get("sbert_ce_default_activation_function"),
    )
    prompts, chosen = stated.get("prompts") or {}, stated.get("default_prompt_name")
    if not isinstance(prompts, dict) or (chosen is not None and not isinstance(prompts.get(chosen), str)):
        raise refused(flag, f"its default_prompt_name is {str(chosen)[:40]!r}, which its prompts do not have")
    length = limits.get("max_seq_length")
    return CrossEncoderFolder(
        activation=next((_activation(str(name), flag) for name in names if name is not None), None),
        prompt="" if chosen is None else prompts[chosen],
        max_length=length if type(length) is int and length > 2 else None,
        yes=_id(ids.get("true_token_id"), flag),
        no=_id(ids.get("false_token_id"), flag),
        is_classifier=not causal,
    )


def refused(flag: str, why: str) -> InputError:
    """The error for a folder that is no cross-encoder, or not one that is computed here."""
    return InputError(
        f"{flag}: {why}. Name a cross-encoder that sentence-transformers saved, a sequence-classification model of transformers, or an "
        "artifact that reranks."
    )


def _activation(name: str, flag: str) -> str:
    if not name.startswith("torch.nn.") or (known := name.rpartition(".")[2]) not in ACTIVATIONS:
        raise refused(flag, f"its activation_fn is {name[:60]!r}, and one of {', '.join(ACTIVATIONS)} can be used")
    return known


def _id(value: object, flag: str) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise refused(flag, f"its LogitScore names the token {str(value)[:40]!r}, which is no number of a token")
    return value


def _modules(folder: Path, flag: str) -> list[tuple[str, Path]]:
    """Names of the modules and their folders, which lie in `folder`; Transformer alone where nothing is said."""
    if not (folder / MODULES).is_file():
        return [("Transformer", folder)]
    from realmctl.imports.model_folder import read_json

    found = []
    for entry in read_json(folder / MODULES, list):
        kind, place = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(place, str) or "\0" in place:
            raise refused(flag, f"{MODULES} is malformed")
        path = (folder / place).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise refused(flag, f"{MODULES} names {place[:80]!r}, which is not a folder inside it")
        found.append((kind.rpartition(".")[2], path))
    return found


def _object(path: Path, flag: str) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return read_fields(path)
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or refused(
            flag, f"{path.name} cannot be read ({one_line(error)})"
        ) from None

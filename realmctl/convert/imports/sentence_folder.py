"""Read a sentence-transformers folder: modules.json names a Transformer, a Pooling, and what follows.

Only modules whose computation is known are accepted: Transformer, Pooling (mean or cls), Dense, LayerNorm and Normalize.
The names of classes in the folder are compared with these and never imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor

from realmctl.convert.imports.checkpoint import load_weights
from realmctl.errors import InputError
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.head_steps import Activation, HeadStep

MODULES = "modules.json"
MAX_JSON_BYTES = 2**20
POOLINGS: Mapping[str, Pooling] = {"cls": "cls", "mean": "mean"}
OLD_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
ACTIVATIONS: Mapping[str, Activation] = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu"}
INPUT = "sentence_embedding"
QUERY_PROMPTS, BLOCK_PROMPTS = ("query",), ("document", "passage", "corpus")


@dataclass(frozen=True)
class SentenceFolder:
    """What a sentence-transformers folder describes.

    bert: folder of the BERT. steps, tensors: the head, and its weights by their names in `head_of`.
    max_length: longest input in tokens; None if the folder does not say. lowercase: whether text is put in lower case
    before the tokenizer. query_prompt, block_prompt: prefixes.
    """

    bert: Path
    pooling: Pooling
    steps: tuple[HeadStep, ...]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    max_length: int | None = None
    lowercase: bool = False
    query_prompt: str = ""
    block_prompt: str = ""


def is_sentence_folder(folder: Path) -> bool:
    """Return whether a folder is laid out as sentence-transformers saves a model."""
    return (folder / MODULES).is_file()


def read_sentence_folder(folder: Path) -> SentenceFolder:
    """Read the modules of a folder and the weights of its head. Raises InputError for anything that is not known."""
    listed = _json(folder / MODULES, list)
    modules = [_module(folder, entry) for entry in listed]
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"]:
        raise _refused(
            folder, f"its modules are {', '.join(kinds) or 'none'}, and the first two must be Transformer and Pooling"
        )
    bert, pooling = modules[0][1], _pooling(modules[1][1])
    steps: list[HeadStep] = []
    tensors: dict[str, Tensor] = {}
    width = _width(modules[1][1])
    for number, (kind, path) in enumerate(modules[2:]):
        step, weights = _step(folder, kind, path, width)
        steps.append(step)
        width = step.width
        tensors |= {f"{number}.{name}": tensor for name, tensor in weights.items()}
    prompts = _prompts(folder)
    return SentenceFolder(
        bert,
        pooling,
        tuple(steps),
        tensors,
        *_limits(bert),
        _prompt(prompts, QUERY_PROMPTS),
        _prompt(prompts, BLOCK_PROMPTS),
    )


def _module(folder: Path, entry: Any) -> tuple[str, Path]:
    """Return the class name and the folder of a module, which must lie in `folder`."""
    try:
        kind, place = str(entry["type"]).rpartition(".")[2], PurePosixPath(entry["path"])
    except (KeyError, TypeError) as error:
        raise _refused(folder, f"{MODULES} is malformed ({error!r})") from None
    if place.is_absolute() or ".." in place.parts or "\0" in str(place):
        raise _refused(folder, f"{MODULES} names {str(place)[:80]!r}, which is not a folder inside it")
    return ("Transformer" if kind == "BERT" else kind), folder / place


def _pooling(folder: Path) -> Pooling:
    config = _json(folder / "config.json", dict)
    modes = config.get("pooling_mode", [mode for name, mode in OLD_POOLINGS.items() if config.get(name)])
    others = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    modes = [modes] if isinstance(modes, str) else modes
    unknown = [name for name in others if name not in OLD_POOLINGS]
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in POOLINGS or unknown:
        raise _refused(folder, f"its pooling is {str(unknown or modes)[:80]}; mean and cls can be used")
    if config.get("include_prompt") is False:
        raise _refused(folder, "its pooling leaves out the prompt (include_prompt), which is not done here")
    return POOLINGS[modes[0]]


def _width(folder: Path) -> int:
    config = _json(folder / "config.json", dict)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if type(width) is not int or width < 1:
        raise _refused(folder, f"the width of its embeddings is {str(width)[:40]}")
    return width


def _step(folder: Path, kind: str, path: Path, width: int) -> tuple[HeadStep, dict[str, Tensor]]:
    """Return a step of the head and its tensors, by their names in the step's module."""
    config = _json(path / "config.json", dict) if (path / "config.json").is_file() else {}
    for name in ("module_input_name", "module_output_name"):
        if config.get(name) not in (None, INPUT):
            raise _refused(path, f"it reads or writes {str(config[name])[:40]!r}, and only {INPUT} can be used")
    if kind == "Normalize":
        return HeadStep("normalize", width), {}
    if kind == "LayerNorm":
        tensors = load_weights(path)[1]
        return HeadStep("layer-norm", width), {name.removeprefix("norm."): tensor for name, tensor in tensors.items()}
    if kind != "Dense":
        raise _refused(
            folder, f"its module {kind[:40]} is not known; Dense, LayerNorm and Normalize can follow the pooling"
        )
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    name = activation.rpartition(".")[2]
    if not activation.startswith("torch.nn.") or name not in ACTIVATIONS or config.get("use_residual"):
        raise _refused(
            path, f"its activation is {activation[:60]!r}" + (" with a residual" if config.get("use_residual") else "")
        )
    bias, outputs = config.get("bias", True), config.get("out_features")
    if type(bias) is not bool or type(outputs) is not int or outputs < 1:
        raise _refused(path, "its config.json has no out_features, or bias is not true or false")
    tensors = load_weights(path)[1]
    step = HeadStep("dense", outputs, bias, ACTIVATIONS[name])
    return step, {name.replace("linear.", "0.", 1): tensor.float() for name, tensor in tensors.items()}


def _limits(bert: Path) -> tuple[int | None, bool]:
    """Return the longest input in tokens, and whether text is put in lower case."""
    path = bert / "sentence_bert_config.json"
    config = _json(path, dict) if path.is_file() else {}
    length = config.get("max_seq_length")
    return length if type(length) is int and length > 2 else None, config.get("do_lower_case") is True


def _prompts(folder: Path) -> Mapping[str, Any]:
    path = folder / "config_sentence_transformers.json"
    config = _json(path, dict) if path.is_file() else {}
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict):
        raise _refused(folder, "its prompts are not an object")
    return prompts


def _prompt(prompts: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first prompt of these names, or nothing, as sentence-transformers' encode_query and encode_document do.

    Its default prompt serves `encode`, which does not know queries from documents.
    """
    return next((str(prompts[name]) for name in names if prompts.get(name)), "")


def _json(path: Path, kind: type[Any]) -> Any:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError(f"it has more than {MAX_JSON_BYTES:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, kind):
            raise ValueError(f"it is no JSON {'list' if kind is list else 'object'}")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"Cannot read {path}: {error}. Get the folder again.") from None
    return found


def _refused(folder: Path, why: str) -> InputError:
    return InputError(
        f"{folder} cannot be imported: {why}. Retrievers are imported from folders of sentence-transformers with a BERT, "
        "pooling by mean or cls, and then Dense, LayerNorm or Normalize."
    )

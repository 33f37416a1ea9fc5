"""Read an encoder folder of another project as one tower: sentence-transformers, DPR, or a plain encoder such as Contriever's.

Of a sentence-transformers folder, only modules whose computation is known are accepted: Transformer, Pooling (mean or cls),
Dense, LayerNorm and Normalize. The names of classes in a folder are compared with these and never imported. Weights are
loaded strictly: every tensor is used, or known to be unused (the masked-language-model head, position numbers), or raises an
error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import torch
from torch import Tensor

from realmctl.errors import ConfigError, InputError
from realmctl.imports.model_folder import read_json
from realmctl.log import say
from realmctl.models.bert.files import IGNORED, read_config
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import FAMILIES, family, positions_of
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.head_steps import Activation, HeadStep, steps_of
from realmctl.models.towers.layout import BlockForm
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.models.weight_files import load_weights
from realmctl.models.weights import load_into
from realmctl.tokens.tokenizer_folder import stated_length

EncoderKind = Literal["sentence-transformers", "dpr", "plain"]
CONTRIEVER = ["Contriever"]
LENGTH_FILES = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet", "mpnet")
)
"""Where sentence-transformers writes the longest input of a model; other names than the first are of old versions."""
SIMILARITIES = ("cosine", "dot")
DPR_SIDES = ("question_encoder", "ctx_encoder")
DPR_PROJECTION = "encode_proj."
MODULES = "modules.json"
POOLINGS: Mapping[str, Pooling] = {"cls": "cls", "mean": "mean"}
OLD_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
ACTIVATIONS: Mapping[str, Activation] = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu"}
INPUT = "sentence_embedding"
QUERY_PROMPTS, BLOCK_PROMPTS = ("query",), ("document", "passage", "corpus")


@dataclass(frozen=True)
class EncoderFolder:
    """What a folder says about its encoder.

    folder: folder of its BERT and its tokenizer. steps, tensors: the head, and its weights by their names in `head_of`.
    max_length: longest input in tokens; None if the folder does not say. form: form of blocks that it was trained on.
    side: of DPR's two encoders, `question_encoder` or `ctx_encoder`; empty for other kinds.
    lowercase: whether text is put in lower case before the tokenizer. query_prompt, block_prompt: prefixes. other_prompts: those of other names, where the
    folder has no prefix by the names of ours. cosine: whether vectors are
    compared by their cosine. states_similarity: whether the folder says how they are compared. truncate: how many numbers of a vector are used; None for all.
    """

    folder: Path
    pooling: Pooling
    steps: tuple[HeadStep, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    max_length: int | None = None
    form: BlockForm = "joined"
    side: str = ""
    lowercase: bool = False
    query_prompt: str = ""
    block_prompt: str = ""
    other_prompts: Mapping[str, str] = field(default_factory=dict)
    cosine: bool = False
    states_similarity: bool = True
    truncate: int | None = None


@dataclass(frozen=True)
class OpenedEncoder:
    """An encoder as a tower, in evaluation mode, and what its folder says. max_length: longest input in tokens."""

    tower: SentenceTower
    said: EncoderFolder
    max_length: int


def encoder_kind(folder: Path) -> EncoderKind | None:
    """Return the kind of encoder that a folder holds, or None for anything else, such as a REALM checkpoint."""
    if (folder / MODULES).is_file():
        return "sentence-transformers"
    kind = _config(folder).get("model_type")
    return "dpr" if kind == "dpr" else "plain" if kind in FAMILIES.names() else None


def open_encoder(
    folder: Path, pooling: Pooling | None, normalize: bool | None, scale: float, truncate: int | None = None
) -> OpenedEncoder:
    """Open an encoder folder.

    Args:
        folder: a folder for which `encoder_kind` is not None.
        pooling: pooling of a plain encoder. None for folders that say it themselves.
        normalize: whether vectors get length 1; None follows the folder.
        scale: factor of the inner products.
        truncate: how many numbers of a vector are used; None follows the folder.

    Raises:
        ConfigError: `pooling` is missing or does not apply.
        InputError: the folder is damaged, or of a kind of model that is not accepted.
    """
    kind = encoder_kind(folder)
    if kind != "plain" and pooling is not None:
        why = "DPR pools by cls" if kind == "dpr" else "a sentence-transformers folder names its pooling itself"
        raise ConfigError(f"--pooling {pooling} does not apply to {folder}: {why}. Leave it out.")
    if kind == "dpr":
        bert, said = _read_dpr(folder)
    else:
        if kind == "plain":
            said = EncoderFolder(folder, pooling or _contrievers_pooling(folder))
        else:
            said = _read_sentence_folder(folder)
        bert = _filled(read_config(said.folder), load_weights(said.folder)[1], said.folder, said.pooling)
    steps, width = list(said.steps), int(bert.config.hidden_size)
    if kept := said.truncate if truncate is None else truncate:
        unit = said.cosine or bool(steps and steps[-1].kind == "normalize")
        steps.append(HeadStep("truncate", kept))
        normalize = unit if normalize is None else normalize
    elif normalize is None and said.cosine:
        normalize = True
        if not (said.states_similarity or (steps and steps[-1].kind == "normalize")):
            say(
                f"{folder} does not say how its vectors are compared. As in sentence-transformers, that is by cosine: they get length 1. "
                "An encoder that was trained with inner products needs --no-normalize."
            )
    if normalize is False and steps and steps[-1].kind == "normalize":
        steps.pop()
    elif normalize and not (steps and steps[-1].kind == "normalize"):
        steps.append(HeadStep("normalize", steps[-1].width if steps else width))
    try:
        checked = steps_of([vars(step) for step in steps], width)
    except ValueError as error:
        raise InputError(f"{said.folder}: {error}. The folder does not fit together; get it again.") from None
    tower = SentenceTower(bert, said.pooling, checked, scale)
    load_into(tower.head, said.tensors, said.folder)
    positions = positions_of(bert)
    return OpenedEncoder(tower.eval(), said, min(said.max_length or stated_length(said.folder) or positions, positions))


def require_sides(query: OpenedEncoder, block: OpenedEncoder | None) -> None:
    """Raise ConfigError unless DPR's encoders are both there and not exchanged, and make vectors in the same way."""
    sides = (query.said.side, block.said.side if block else "")
    if any(sides) and sides != DPR_SIDES:
        raise ConfigError(
            "DPR has two encoders: import its question encoder, and name its context encoder by --block-encoder. Here "
            f"they are {sides[0] or 'another encoder'} and {sides[1] or 'none'}."
        )
    if block and (block.tower.pooling, block.tower.steps) != (query.tower.pooling, query.tower.steps):
        raise ConfigError(
            f"The query encoder pools by {query.tower.pooling} into {query.tower.width} numbers, and --block-encoder by "
            f"{block.tower.pooling} into {block.tower.width}, or what follows differs. Name two encoders that were trained together."
        )


def _contrievers_pooling(folder: Path) -> Pooling:
    if _config(folder).get("architectures") != CONTRIEVER:
        raise ConfigError(
            f"{folder} is an encoder and does not say how its states become one vector. Say --pooling mean, cls or pooler, as "
            "it was trained. An encoder that was not trained to retrieve needs ict-init instead: pass it to --bert."
        )
    return "mean"


def _config(folder: Path) -> dict[str, Any]:
    """Return config.json, or nothing if it cannot be read; the loader of weights says why then."""
    try:
        return read_json(folder / "config.json")
    except InputError:
        return {}


def _read_sentence_folder(folder: Path) -> EncoderFolder:
    """Read the modules of a folder and the weights of its head. Raises InputError for anything that is not known."""
    listed = read_json(folder / MODULES, list)
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
    limits = next((read_json(bert / name) for name in LENGTH_FILES if (bert / name).is_file()), {})
    length = limits.get("max_seq_length")
    stated = _optional_json(folder / "config_sentence_transformers.json")
    prompts, similarity, truncate = (
        stated.get("prompts") or {},
        stated.get("similarity_fn_name"),
        stated.get("truncate_dim"),
    )
    if similarity is not None and similarity not in SIMILARITIES:
        raise _refused(
            folder,
            f"its similarity_fn_name is {str(similarity)[:40]!r}, and vectors are compared by cosine or dot here",
        )
    if truncate is not None and (type(truncate) is not int or truncate < 1):
        raise _refused(folder, f"its truncate_dim is {str(truncate)[:40]!r}")
    if not isinstance(prompts, dict):
        raise _refused(folder, "its prompts are not an object")
    # As encode_query and encode_document. The default prompt serves `encode`, which does not know queries from documents.
    query, block = (
        next((str(prompts[name]) for name in names if prompts.get(name)), "")
        for names in (QUERY_PROMPTS, BLOCK_PROMPTS)
    )
    others = {} if query or block else {str(name): str(text) for name, text in prompts.items() if text}
    return EncoderFolder(
        bert,
        pooling,
        tuple(steps),
        tensors,
        max_length=length if type(length) is int and length > 2 else None,
        lowercase=limits.get("do_lower_case") is True,
        query_prompt=query,
        block_prompt=block,
        other_prompts=others,
        cosine=similarity in ("cosine", None),  # sentence-transformers' own default
        states_similarity=similarity is not None,
        truncate=truncate,
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
    config = read_json(folder / "config.json")
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
    config = read_json(folder / "config.json")
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if type(width) is not int or width < 1:
        raise _refused(folder, f"the width of its embeddings is {str(width)[:40]}")
    return width


def _step(folder: Path, kind: str, path: Path, width: int) -> tuple[HeadStep, dict[str, Tensor]]:
    """Return a step of the head and its tensors, by their names in the step's module."""
    config = _optional_json(path / "config.json")
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


def _read_dpr(folder: Path) -> tuple[Encoder, EncoderFolder]:
    """Return the BERT of an encoder of DPR, and what follows. Raises InputError for a reader of DPR."""
    config, tensors = read_config(folder, "dpr"), load_weights(folder)[1]
    side = next((side for side in DPR_SIDES if any(name.startswith(f"{side}.") for name in tensors)), None)
    if side is None:
        raise InputError(
            f"{folder} is not an encoder of DPR: it has no tensor below {' or '.join(DPR_SIDES)}. DPR's reader is no "
            "retriever. Name DPR's question encoder, and its other encoder by --block-encoder."
        )
    below = {name.removeprefix(f"{side}."): tensor for name, tensor in tensors.items()}
    bert = {name.removeprefix("bert_model."): tensor for name, tensor in below.items()}
    projection = {
        name.removeprefix(DPR_PROJECTION): bert.pop(name) for name in below if name.startswith(DPR_PROJECTION)
    }
    steps = (HeadStep("dense", len(projection["weight"])),) if "weight" in projection else ()
    head = {f"0.0.{name}": tensor for name, tensor in projection.items()}
    return _filled(config, bert, folder, "cls"), EncoderFolder(folder, "cls", steps, head, form="separated", side=side)


def _filled(config: Any, tensors: Mapping[str, Tensor], folder: Path, pooling: Pooling) -> Encoder:
    """Return the base model with these tensors. Shapes are checked on a copy without memory first."""
    known, pooler = family(config.model_type), pooling == "pooler"
    if pooler and not known.has_pooler:
        raise ConfigError(
            f"--pooling pooler: {folder} is a {known.model_type} encoder, which has no pooler. Use cls or mean."
        )
    tensors = known.named(config, tensors)
    with torch.device("meta"):
        model = known.new_base(config, pooler)
    expected, prefix = model.state_dict(), f"{model.base_model_prefix}."
    given = {  # old TensorFlow exports have other names
        name.removeprefix(prefix)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in tensors.items()
        if not IGNORED.fullmatch(name) and not name.startswith(known.head)
    }
    if not pooler:
        given = {name: tensor for name, tensor in given.items() if not name.startswith("pooler.")}
    for name, tensor in expected.items():
        if name in given and not given[name].is_floating_point():
            raise InputError(
                f"The tensor '{name}' in {folder} holds {given[name].dtype}, not floating-point numbers of shape "
                f"{tuple(tensor.shape)}. Quantised weights cannot be imported; get the original ones."
            )
    model = known.new_base(config, pooler)
    load_into(model, {name: tensor.float() for name, tensor in given.items()}, folder)
    return model.eval()


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _refused(folder: Path, why: str) -> InputError:
    return InputError(
        f"{folder} cannot be imported: {why}. Retrievers are imported from folders of sentence-transformers with an encoder, "
        "pooling by mean or cls, and then Dense, LayerNorm or Normalize."
    )

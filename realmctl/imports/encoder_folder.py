"""Read an encoder folder of another project as one tower: sentence-transformers, DPR, or a plain encoder such as Contriever's.

Of a sentence-transformers folder, only modules whose computation is known are accepted: Transformer and Pooling, or what a room offers for them
(`SOURCES`), then Dense, LayerNorm and Normalize, and a Router between those of queries and those of documents. The names of classes in a folder
are compared with these and never imported. Weights are loaded strictly: every tensor is used, or known to be unused (heads, position numbers), or
raises an error that names it. They are computed in float32, whatever a folder says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import FunctionType
from typing import Any, Literal, get_args

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
from realmctl.models.towers.poolings import POOLINGS, poolings_of
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.models.weight_files import load_weights
from realmctl.models.weights import WithoutDraws, load_into
from realmctl.registry import Registry
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
OLD_POOLINGS = {
    f"pooling_mode_{name}{ending}": name
    for name, ending in (("cls", "_token"), ("max", "_tokens"), ("mean", "_tokens"), ("mean_sqrt_len_tokens", ""))
} | {"pooling_mode_weightedmean_tokens": "weightedmean", "pooling_mode_lasttoken": "lasttoken"}
"""{field that says whether a pooling is used: its name}, in the order in which sentence-transformers puts their vectors behind each other."""
ACTIVATIONS: Mapping[str, Activation] = {
    "Identity": "identity",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "SiLU": "silu",
    "Sigmoid": "sigmoid",
}
INPUT = "sentence_embedding"
QUERY_PROMPTS, BLOCK_PROMPTS = ("query",), ("document", "passage", "corpus")
ROUTERS = ("Router", "Asym")
Route = Literal["query", "document"]
OTHER_MODELS = {
    "SparseEncoder": "a SPLADE-like encoder, which gives a weight for each word of its vocabulary and no dense vector",
    "MultiVectorEncoder": "a late-interaction encoder as ColBERT, which gives a vector for each token and not one for a text. `late-embed`, of the lab, reads it",
    "CrossEncoder": "a cross-encoder, which reads a query and a text together and gives no vector",
}
"""{model_type of sentence-transformers: what it is}, of those that are no dense encoder."""
SAFE_ARGUMENTS = {"attn_implementation", "torch_dtype", "dtype", "padding_side", "model_max_length", "use_fast"}
"""Arguments in sentence_bert_config.json that change no vector, or that are read elsewhere."""
SOURCES = Registry("kind of encoder", group="realmctl.encoder_sources", core={})
"""Functions of a folder that return its `EncoderSource`, by what they read: a module of sentence-transformers that is none, a `model_type`, or a file."""


@dataclass(frozen=True)
class EncoderSource:
    """The weights of an encoder that is stored in another way than transformers does.

    config, tensors: as of a folder of transformers. pooling, normalize: for a folder that is no other module's. base: a folder that was read too.
    """

    config: Any
    tensors: Mapping[str, Tensor]
    pooling: Pooling | None = None
    normalize: bool | None = None
    base: Path | None = None


@dataclass(frozen=True)
class EncoderFolder:
    """What a folder says about its encoder.

    folder: folder of its BERT and its tokenizer. steps, tensors: the head, and its weights by their names in `head_of`.
    max_length: longest input in tokens; None if the folder does not say. form: form of blocks that it was trained on.
    side: of DPR's two encoders, `question_encoder` or `ctx_encoder`; empty for other kinds.
    lowercase: whether text is put in lower case before the tokenizer. query_prompt, block_prompt: prefixes. other_prompts: those of other names, where the
    folder has no prefix by the names of ours. cosine: whether vectors are
    compared by their cosine. states_similarity: whether the folder says how they are compared. truncate: how many numbers of a vector are used; None for all.
    pools_prompt: whether pooling reads the prompt. source: the module, the type or the file by which `SOURCES` reads its weights; empty for those
    of transformers. block_prompt_name: the prompt's name.
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
    pools_prompt: bool = True
    source: str = ""
    block_prompt_name: str = ""


@dataclass(frozen=True)
class OpenedEncoder:
    """An encoder as a tower, in evaluation mode, and what its folder says. max_length: longest input in tokens. base: a folder that was read too."""

    tower: SentenceTower
    said: EncoderFolder
    max_length: int
    base: Path | None = None


def encoder_kind(folder: Path) -> EncoderKind | None:
    """Return the kind of encoder that a folder holds, or None for anything else, such as a REALM checkpoint."""
    if (folder / MODULES).is_file():
        return "sentence-transformers"
    kind = _config(folder).get("model_type")
    if any((folder / name).is_file() for name in SOURCES.names()):
        return "plain"
    return "dpr" if kind == "dpr" else "plain" if kind in (*FAMILIES.names(), *SOURCES.names()) else None


def has_routes(folder: Path) -> bool:
    """Whether a folder of sentence-transformers has other modules for queries than for documents."""
    if not (folder / MODULES).is_file():
        return False
    routes = [list(_routed(folder, route)) for route in get_args(Route)]
    return routes[0] != routes[1]


def open_encoder(
    folder: Path,
    pooling: Pooling | None,
    normalize: bool | None,
    scale: float,
    truncate: int | None = None,
    route: Route = "query",
) -> OpenedEncoder:
    """Open an encoder folder.

    Args:
        folder: a folder for which `encoder_kind` is not None.
        pooling: pooling of a plain encoder. None for folders that say it themselves.
        normalize: whether vectors get length 1; None follows the folder.
        scale: factor of the inner products.
        truncate: how many numbers of a vector are used; None follows the folder.
        route: which modules of a Router are meant.

    Raises:
        ConfigError: `pooling` is missing or does not apply.
        InputError: the folder is damaged, or of a kind of model that is not accepted.
    """
    kind = encoder_kind(folder)
    if kind != "plain" and pooling is not None:
        why = "DPR pools by cls" if kind == "dpr" else "a sentence-transformers folder names its pooling itself"
        raise ConfigError(f"--pooling {pooling} does not apply to {folder}: {why}. Leave it out.")
    base = None
    if kind == "dpr":
        bert, said = _read_dpr(folder)
    else:
        said = EncoderFolder(folder, pooling or "") if kind == "plain" else _read_sentence_folder(folder, route)
        found = _source(said)
        base, stated = found.base, said.pooling or found.pooling or _contrievers_pooling(folder)
        said = replace(said, pooling=stated, cosine=said.cosine or bool(found.normalize))
        bert = _filled(found.config, found.tensors, said.folder, said.pooling)
    pooled = width = int(bert.config.hidden_size) * len(poolings_of(said.pooling))
    steps: list[HeadStep] = []
    for step in said.steps:
        width = step.width or width
        steps.append(replace(step, width=width))
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
        checked = steps_of([vars(step) for step in steps], pooled)
    except ValueError as error:
        raise InputError(f"{said.folder}: {error}. The folder does not fit together; get it again.") from None
    tower = SentenceTower(bert, said.pooling, checked, scale)
    load_into(tower.head, said.tensors, said.folder)
    positions = positions_of(bert)
    length = min(said.max_length or stated_length(said.folder) or positions, positions)
    return OpenedEncoder(tower.eval(), said, length, base)


def require_sides(query: OpenedEncoder, block: OpenedEncoder | None) -> None:
    """Raise ConfigError unless DPR's encoders are both there and not exchanged, and make vectors in the same way."""
    sides = (query.said.side, block.said.side if block else "")
    if any(sides) and sides != DPR_SIDES:
        raise ConfigError(
            "DPR has two encoders: import its question encoder, and name its context encoder by --block-encoder. Here "
            f"they are {sides[0] or 'another encoder'} and {sides[1] or 'none'}."
        )
    if block and block.tower.width != query.tower.width:
        raise ConfigError(
            f"The query encoder gives vectors of {query.tower.width} numbers, and the block encoder of {block.tower.width}. Name two encoders that "
            "were trained together."
        )
    if block and block.said.pools_prompt != query.said.pools_prompt:
        raise ConfigError(
            "One of the two encoders leaves its prompt out of pooling (include_prompt), and the other does not."
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


def _source(said: EncoderFolder) -> EncoderSource:
    """Return the configuration and the weights of a folder, as transformers has them or as a room reads them."""
    named = said.source or str(_config(said.folder).get("model_type"))
    files = (name for name in SOURCES.names() if (said.folder / name).is_file())
    if found := next(files, named if named in SOURCES.names() else ""):
        source: EncoderSource = SOURCES.instance(found, FunctionType, like=has_routes)(said.folder)
        return source
    config = read_config(said.folder)
    stored = _config(said.folder)
    if stored.get("quantization_config"):
        raise _refused(said.folder, "its weights are quantised (quantization_config); get the original ones")
    if (
        dtype := str(stored.get("dtype") or stored.get("torch_dtype") or "float32").removeprefix("torch.")
    ) != "float32":
        say(
            f"{said.folder} is saved in {dtype}, and its weights are computed in float32 here. sentence-transformers computes in {dtype}: "
            "its vectors differ in the third decimal."
        )
    if stored.get("auto_map"):
        say(
            f"{said.folder} names code of its own (auto_map), which is not run: vectors are those of transformers' {config.model_type}."
        )
    return EncoderSource(config, load_weights(said.folder)[1])


def _read_sentence_folder(folder: Path, route: Route) -> EncoderFolder:
    """Read the modules of a folder and the weights of its head. Raises InputError for anything that is not known."""
    stated = _optional_json(folder / "config_sentence_transformers.json")
    if other := OTHER_MODELS.get(str(stated.get("model_type"))):
        raise _refused(folder, f"it is {other}")
    modules = [each for each in _routed(folder, route) if each[0] != "Dropout"]
    kinds = [kind for kind, _ in modules]
    source, pooled = "", 2
    if kinds and kinds[0] in SOURCES.names():
        source, pooled, pooling, pools_prompt = kinds[0], 1, "", True
    elif kinds[:2] == ["Transformer", "Pooling"]:
        pooling, pools_prompt = _pooling(modules[1][1])
    else:
        raise _refused(
            folder, f"its modules are {', '.join(kinds) or 'none'}, and the first two must be Transformer and Pooling"
        )
    bert = modules[0][1]
    steps: list[HeadStep] = []
    tensors: dict[str, Tensor] = {}
    for number, (kind, path) in enumerate(modules[pooled:]):
        step, weights = _step(folder, kind, path)
        steps.append(step)
        tensors |= {f"{number}.{name}": tensor for name, tensor in weights.items()}
    limits = next((read_json(bert / name) for name in LENGTH_FILES if (bert / name).is_file()), {})
    _require_plain(bert, limits)
    length = limits.get("max_seq_length")
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
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise _refused(folder, "its prompts are not an object of texts")
    # As encode_query and encode_document say. The default prompt serves `encode`, which does not know queries from documents.
    query_name, block_name = (
        next((name for name in names if prompts.get(name)), "") for names in (QUERY_PROMPTS, BLOCK_PROMPTS)
    )
    return EncoderFolder(
        bert,
        pooling,
        tuple(steps),
        tensors,
        max_length=length if type(length) is int and length > 2 else None,
        lowercase=limits.get("do_lower_case") is True,
        query_prompt=prompts.get(query_name, ""),
        block_prompt=prompts.get(block_name, ""),
        other_prompts={
            str(name): str(text) for name, text in prompts.items() if text and name not in (query_name, block_name)
        },
        cosine=similarity in ("cosine", None),  # sentence-transformers' own default
        states_similarity=similarity is not None,
        truncate=truncate,
        pools_prompt=pools_prompt,
        source=source,
        block_prompt_name=block_name,
    )


def _require_plain(folder: Path, limits: Mapping[str, Any]) -> None:
    """Raise InputError for what sentence_bert_config.json asks of transformers and what would change vectors."""
    if (task := limits.get("transformer_task", "feature-extraction")) != "feature-extraction":
        raise _refused(folder, f"its transformer_task is {str(task)[:40]!r}, and only the states of tokens are read")
    if limits.get("processing_kwargs"):
        raise _refused(folder, f"its processing_kwargs ask for {str(limits['processing_kwargs'])[:60]}")
    for name in [name for name in limits if name.endswith(("_args", "_kwargs"))]:
        given = limits[name] if isinstance(limits[name], dict) else {str(limits[name]): None}
        if others := sorted(set(given) - SAFE_ARGUMENTS - {"trust_remote_code"} if limits[name] else ()):
            raise _refused(
                folder,
                f"its {name} set {others[0][:40]}. Write it into the file that it belongs to, such as config.json",
            )


def _routed(folder: Path, route: Route) -> Iterator[tuple[str, Path]]:
    """Yield the class names and the folders of the modules that a query, or a document, goes through. Raises InputError."""
    for entry in read_json(folder / MODULES, list):
        kind, path = _module(folder, entry)
        if kind not in ROUTERS:
            yield kind, path
            continue
        config = next(
            (read_json(path / name) for name in ("router_config.json", "config.json") if (path / name).is_file()), {}
        )
        structure, types = config.get("structure"), config.get("types")
        parameters = config.get("parameters") or {}
        if not isinstance(structure, dict) or not isinstance(types, dict) or parameters.get("route_mappings"):
            raise _refused(folder, f"its {kind} has no routes that are named by their tasks alone")
        chosen = structure.get(route, structure.get(str(parameters.get("default_route"))))
        if not isinstance(chosen, list):
            raise _refused(
                folder, f"its {kind} has the routes {', '.join(map(str, structure))[:80]}, and none for a {route}"
            )
        for name in chosen:
            yield _module(path, {"type": types.get(name), "path": str(name)})


def _module(folder: Path, entry: Any) -> tuple[str, Path]:
    """Return the class name and the folder of a module, which must lie in `folder`."""
    try:
        kind, place = str(entry["type"]).rpartition(".")[2], PurePosixPath(entry["path"])
    except (KeyError, TypeError) as error:
        raise _refused(folder, f"{MODULES} is malformed ({error!r})") from None
    if place.is_absolute() or ".." in place.parts or "\0" in str(place):
        raise _refused(folder, f"{MODULES} names {str(place)[:80]!r}, which is not a folder inside it")
    return ("Transformer" if kind == "BERT" else kind), folder / place


def _pooling(folder: Path) -> tuple[Pooling, bool]:
    """Return the pooling, and whether it reads the prompt."""
    config = read_json(folder / "config.json")
    modes = config.get("pooling_mode", [mode for name, mode in OLD_POOLINGS.items() if config.get(name)] or "mean")
    others = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    modes = [modes] if isinstance(modes, str) else modes
    unknown = [name for name in others if name not in OLD_POOLINGS]
    known = POOLINGS.names()
    if not isinstance(modes, list) or not modes or unknown or not all(mode in known for mode in modes):
        raise _refused(folder, f"its pooling is {str(unknown or modes)[:80]}; what can be used is {', '.join(known)}")
    if type(asked := config.get("include_prompt", True)) is not bool:
        raise _refused(folder, f"its include_prompt is {str(asked)[:40]!r}, and it must be true or false")
    return "+".join(modes), asked


def _step(folder: Path, kind: str, path: Path) -> tuple[HeadStep, dict[str, Tensor]]:
    """Return a step of the head and its tensors, by their names in the step's module. A step that leaves the width as it is has the width 0."""
    config = _optional_json(path / "config.json")
    for name in ("module_input_name", "module_output_name"):
        if config.get(name) not in (None, INPUT):
            raise _refused(path, f"it reads or writes {str(config[name])[:40]!r}, and only {INPUT} can be used")
    if kind == "Normalize":
        return HeadStep("normalize", 0), {}
    if kind == "LayerNorm":
        tensors = load_weights(path)[1]
        return HeadStep("layer-norm", 0), {name.removeprefix("norm."): tensor for name, tensor in tensors.items()}
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
    for name, tensor in tensors.items():
        if not tensor.is_floating_point() and not IGNORED.fullmatch(name) and not name.startswith(known.head):
            raise InputError(
                f"The tensor '{name}' in {folder} holds {tensor.dtype}, not floating-point numbers. Quantised weights cannot be imported; get "
                "the original ones."
            )
    tensors = known.named(config, tensors)
    with torch.device("meta"), WithoutDraws():
        prefix = f"{known.new_base(config, pooler).base_model_prefix}."
    given = {  # old TensorFlow exports have other names
        name.removeprefix(prefix)
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in tensors.items()
        if not IGNORED.fullmatch(name) and not name.startswith(known.head)
    }
    if not pooler:
        given = {name: tensor for name, tensor in given.items() if not name.startswith("pooler.")}
    with WithoutDraws():
        model = known.new_base(config, pooler)
    load_into(model, {name: tensor.float() for name, tensor in given.items()}, folder)
    return model.eval()


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _refused(folder: Path, why: str) -> InputError:
    return InputError(
        f"{folder} cannot be imported: {why}. Retrievers are imported from folders of sentence-transformers with an encoder, "
        "its pooling, and then Dense, LayerNorm or Normalize."
    )

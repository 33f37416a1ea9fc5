"""Load the tensors of transformers' REALM classes into our towers, encoder and span reader.

Loading is strict. Every tensor is used, or known to be unused (the vocabulary decoder of retrievers and readers, the
position numbers), or raises an error that names it. Two faults of the published configurations are corrected: [PAD] is 0,
and the decoder is tied. Names and shapes: transformers 4.57.6, modeling_realm.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from realmctl.errors import InputError
from realmctl.extras.hub.imports.checkpoint import BLOCK_EMBEDDINGS, Checkpoint
from realmctl.models.bert.activations import ACTIVATIONS
from realmctl.models.bert.config import BertConfig
from realmctl.models.bert.limits import check_kind
from realmctl.models.bert.modules import BertForMaskedLM, BertModel, BertPooler
from realmctl.models.retriever import Retriever, Tower
from realmctl.models.span_head import SpanReader
from realmctl.models.weights import WithoutDraws, require_finite

Model = TypeVar("Model", bound=nn.Module)
QUERY_LENGTH, BLOCK_LENGTH = 64, 288
SPAN_HIDDEN, SPAN_EPS, EPS = 256, 1e-3, 1e-12
SIZES = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "retriever_proj_size": 128,
}
LARGEST_SIZE, MOST_LAYERS = 2**20, 512
POSITION_IDS = "realm.embeddings.position_ids"
BERT_TO_REALM = {"bert.": "realm."}
TOWER_TO_REALM = {**BERT_TO_REALM, "projection.": "cls.dense.", "norm.": "cls.LayerNorm."}
READER_TO_REALM = {
    **BERT_TO_REALM,
    "head.dense.": "qa_outputs.dense_intermediate.",
    "head.norm.": "qa_outputs.layer_normalization.",
    "head.output.": "qa_outputs.dense_output.",
}
TIED = {
    "cls.predictions.decoder.weight": "realm.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
SECOND_NAMES = {name: second for second, name in TIED.items()}
"""The other name of tensors that the encoder has twice. A file may hold them under either, and
`safetensors.torch.save_model` keeps only the first in the alphabet."""
SECOND_BIAS = {"cls.predictions.bias": "cls.predictions.decoder.bias"}
"""The same for models whose unused decoder is not tied to the word embeddings."""


def retriever_of(checkpoint: Checkpoint) -> Retriever:
    """Return the retriever of an embedder or a scorer. Towers are shared unless a scorer has two different ones."""
    if checkpoint.kind == "embedder":
        tower = _tower(checkpoint, "")
        return _retriever(tower, tower)
    sides = [side for side in ("query_embedder.", "embedder.") if _below(checkpoint.tensors, side)]
    _only(checkpoint, *sides)
    towers = [_tower(checkpoint, side) for side in sides]
    return _retriever(towers[0], towers[0] if _equal(towers) else towers[-1])


def query_side_of(checkpoint: Checkpoint, block_encoder: str) -> Retriever:
    """Return the query-only retriever of an open-QA checkpoint. Its index was made by the pre-trained embedder."""
    _only(checkpoint, "embedder.", "reader.")
    return _retriever(_tower(checkpoint, "embedder."), None, block_encoder)


def encoder_of(checkpoint: Checkpoint) -> BertForMaskedLM:
    """Return the knowledge-augmented encoder with its decoder tied to the word embeddings, and with its pooler."""
    config = bert_config(checkpoint)

    def make() -> BertForMaskedLM:
        model = BertForMaskedLM(config)
        model.bert.pooler = BertPooler(config).requires_grad_(False)
        return model

    return _filled(make, checkpoint, "", lambda name: TIED.get(name, _renamed(name, BERT_TO_REALM)), SECOND_NAMES)


def span_reader_of(checkpoint: Checkpoint) -> SpanReader:
    """Return the span reader of a reader or open-QA checkpoint."""
    span_hidden = checkpoint.config.get("span_hidden_size", SPAN_HIDDEN)
    eps = checkpoint.config.get("reader_layer_norm_eps", SPAN_EPS)
    if (span_hidden, eps) != (SPAN_HIDDEN, SPAN_EPS):
        raise InputError(
            f"{checkpoint.folder} has a span head of {span_hidden} with layer-norm epsilon {eps}; REALM's readers "
            f"have {SPAN_HIDDEN} and {SPAN_EPS}, and only these can be imported."
        )
    config, prefix = bert_config(checkpoint), "reader." if checkpoint.kind == "openqa" else ""

    def make() -> SpanReader:
        return SpanReader(BertModel(config, add_pooling_layer=False))

    return _filled(make, checkpoint, prefix, lambda name: _renamed(name, READER_TO_REALM))


def block_embeddings_of(checkpoint: Checkpoint) -> Tensor:
    """Return the index's vectors, float16 or float32 [n, D], memory-mapped.

    Raises InputError when the tensor has another shape or type.
    """
    rows = checkpoint.tensors.get(BLOCK_EMBEDDINGS)
    width, said = _size(checkpoint, "retriever_proj_size"), checkpoint.config.get("num_block_records")
    if rows is None or rows.dtype not in (torch.float16, torch.float32) or rows.ndim != 2 or 0 in rows.shape:
        what = "no such tensor" if rows is None else f"{rows.dtype} of shape {tuple(rows.shape)}"
        raise InputError(
            f"The index '{BLOCK_EMBEDDINGS}' in {checkpoint.folder} should be float32 [blocks, {width}]; there is {what}."
        )
    if rows.shape[1] != width or said not in (None, len(rows)):
        raise InputError(
            f"The tensor '{BLOCK_EMBEDDINGS}' in {checkpoint.folder} has shape {tuple(rows.shape)}, but its config.json "
            f"asks for ({said}, {width}). Use the config.json that the weights were saved with."
        )
    return rows


def span_head_is_fresh(reader: SpanReader) -> bool:
    """Return whether the span head is untrained: its layer norm is the identity, as in the pre-trained open-QA checkpoint."""
    norm = reader.head.norm
    return bool((norm.weight == 1).all() and (norm.bias == 0).all())


def bert_config(checkpoint: Checkpoint) -> BertConfig:
    """Return the configuration of the checkpoint's BERT.

    The activation is `gelu_new` unless config.json names another. [PAD] is always 0.
    """
    fields = checkpoint.config
    try:
        check_kind(fields)
    except ValueError as error:
        raise InputError(f"{checkpoint.folder / 'config.json'}: {error}. Use another checkpoint.") from None
    activation = fields.get("hidden_act", "gelu_new")
    if fields.get("layer_norm_eps", EPS) != EPS or not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise InputError(
            f"{checkpoint.folder / 'config.json'}: layer_norm_eps {fields.get('layer_norm_eps', EPS)} and hidden_act "
            f"{activation!r}; REALM's models have {EPS} and gelu_new. Use the config.json of the checkpoint."
        )
    sizes = {name: _size(checkpoint, name) for name in SIZES if name != "retriever_proj_size"}
    if sizes["hidden_size"] % sizes["num_attention_heads"]:
        raise InputError(f"{checkpoint.folder / 'config.json'}: the attention heads do not divide hidden_size.")
    return BertConfig(
        **sizes,
        hidden_act=activation,
        hidden_dropout_prob=_rate(checkpoint, "hidden_dropout_prob"),
        attention_probs_dropout_prob=_rate(checkpoint, "attention_probs_dropout_prob"),
        layer_norm_eps=EPS,
        pad_token_id=0,
    )


def _size(checkpoint: Checkpoint, name: str) -> int:
    value = checkpoint.config.get(name, SIZES[name])
    if type(value) is not int or not 1 <= value <= (MOST_LAYERS if name == "num_hidden_layers" else LARGEST_SIZE):
        raise InputError(f"{checkpoint.folder / 'config.json'}: {name} is {value!r}, not a size. Download it again.")
    return value


def _rate(checkpoint: Checkpoint, name: str) -> float:
    value = checkpoint.config.get(name, 0.1)
    if type(value) not in (int, float) or not 0 <= value < 1:
        raise InputError(
            f"{checkpoint.folder / 'config.json'}: {name} is {value!r}, not at least 0 and below 1. Download it again."
        )
    return float(value)


def _tower(checkpoint: Checkpoint, prefix: str) -> Tower:
    config, width = bert_config(checkpoint), _size(checkpoint, "retriever_proj_size")

    def make() -> Tower:
        return Tower(BertModel(config), width, "pooler")

    return _filled(make, checkpoint, prefix, lambda name: _renamed(name, TOWER_TO_REALM))


def _retriever(query: Tower, block: Tower | None, block_encoder: str = "") -> Retriever:
    length = min(BLOCK_LENGTH, query.bert.config.max_position_embeddings)
    return Retriever(
        query,
        block,
        query_length=min(QUERY_LENGTH, length),
        block_length=length,
        pooling="pooler",
        block_encoder=block_encoder,
    ).eval()


def _equal(towers: list[Tower]) -> bool:
    first, last = towers[0].state_dict(), towers[-1].state_dict()
    return all(torch.equal(tensor, last[name]) for name, tensor in first.items())


def _renamed(name: str, renames: Mapping[str, str]) -> str:
    old = next((old for old in renames if name.startswith(old)), "")
    return renames.get(old, "") + name.removeprefix(old)


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _only(checkpoint: Checkpoint, *prefixes: str) -> None:
    """Raise InputError for a tensor whose name begins with none of the prefixes."""
    foreign = sorted(name for name in set(checkpoint.tensors) - {BLOCK_EMBEDDINGS} if not name.startswith(prefixes))
    if foreign:
        raise _extra(checkpoint.folder, foreign)


def _filled(
    make: Callable[[], Model],
    checkpoint: Checkpoint,
    prefix: str,
    name_there: Callable[[str], str],
    second_names: Mapping[str, str] = SECOND_BIAS,
) -> Model:
    """Return the module with the tensors below `prefix`. Raises InputError that names a tensor which does not fit.

    second_names: Names under which a file may hold some tensors instead.

    Shapes are checked on a copy without memory first, so that a wrong config.json cannot use up memory.
    """
    with torch.device("meta"), WithoutDraws():
        state = make().state_dict()
    folder, tensors = checkpoint.folder, _below(checkpoint.tensors, prefix)
    for name, second in second_names.items():
        if second in tensors:
            tensors.setdefault(name, tensors[second])
    places = {name: name_there(name) for name in state}
    shapes = {places[name]: tuple(tensor.shape) for name, tensor in state.items()}
    unused = {name: shape for name, shape in _unused(checkpoint).items() if name not in shapes}
    for name, shape in {**shapes, **unused}.items():
        if name not in tensors and name in shapes:
            raise InputError(
                f"The weights in {folder} lack the tensor '{prefix}{name}' of shape {shape}. They are incomplete, or their "
                "config.json does not describe them."
            )
        if name in tensors and (tuple(tensors[name].shape) != shape or not tensors[name].is_floating_point()):
            raise _misshapen(folder, prefix + name, tensors[name], shape)
    if extra := sorted(set(tensors) - set(shapes) - set(unused) - {POSITION_IDS}):
        raise _extra(folder, [prefix + name for name in extra])
    module = make()
    module.load_state_dict({name: tensors[place].float() for name, place in places.items()})
    require_finite({prefix + places[name]: tensor for name, tensor in module.state_dict().items()}, folder)
    return module.eval()


def _unused(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors that a checkpoint may hold unused: vocabulary head, decoder, pooler."""
    words, hidden = _size(checkpoint, "vocab_size"), _size(checkpoint, "hidden_size")
    head, square = "cls.predictions.", (hidden, hidden)
    return {
        head + "bias": (words,),
        head + "decoder.bias": (words,),
        head + "decoder.weight": (words, hidden),
        head + "transform.dense.weight": square,
        head + "transform.dense.bias": (hidden,),
        head + "transform.LayerNorm.weight": (hidden,),
        head + "transform.LayerNorm.bias": (hidden,),
        "realm.pooler.dense.weight": square,
        "realm.pooler.dense.bias": (hidden,),
    }


def _misshapen(folder: Path, name: str, tensor: Tensor, shape: tuple[Any, ...]) -> InputError:
    return InputError(
        f"The tensor '{name}' in {folder} is {tensor.dtype} of shape {tuple(tensor.shape)}, but its config.json asks "
        f"for numbers of shape {shape}. Use the config.json that the weights were saved with."
    )


def _extra(folder: Path, names: list[str]) -> InputError:
    return InputError(
        f"The weights in {folder} hold {len(names)} tensor(s) that this model does not have. The first is "
        f"'{names[0]}'. They belong to another kind of model."
    )

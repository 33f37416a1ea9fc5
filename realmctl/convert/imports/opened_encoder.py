"""Open an encoder folder of any accepted kind as one tower, with what the folder says about its inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from realmctl.convert.imports.bert_weights import DPR_SIDES, load_bert_encoder, load_dpr_encoder
from realmctl.convert.imports.sentence_folder import SentenceFolder, is_sentence_folder, read_sentence_folder
from realmctl.errors import ConfigError, InputError
from realmctl.models.bert.files import MAX_CONFIG_BYTES
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.head_steps import HeadStep, steps_of
from realmctl.models.towers.layout import BlockForm
from realmctl.models.towers.sentence_tower import SentenceTower
from realmctl.models.weights import load_into

EncoderKind = Literal["sentence-transformers", "dpr", "bert"]
CONTRIEVER = ["Contriever"]


@dataclass(frozen=True)
class OpenedEncoder:
    """An encoder as a tower, in evaluation mode.

    folder: folder of its BERT and its tokenizer. side: of DPR's two encoders, `question_encoder` or `ctx_encoder`; empty for other kinds.
    max_length: longest input in tokens. form: form of blocks that it was trained on.
    lowercase: whether text is put in lower case before the tokenizer. query_prompt, block_prompt: prefixes that the
    folder names.
    """

    tower: SentenceTower
    folder: Path
    max_length: int
    form: BlockForm = "joined"
    side: str = ""
    lowercase: bool = False
    query_prompt: str = ""
    block_prompt: str = ""


def encoder_kind(folder: Path) -> EncoderKind | None:
    """Return the kind of encoder that a folder holds, or None for anything else, such as a REALM checkpoint."""
    if is_sentence_folder(folder):
        return "sentence-transformers"
    kind = _fields(folder).get("model_type")
    return kind if kind in ("dpr", "bert") else None


def open_encoder(folder: Path, pooling: Pooling | None, normalize: bool | None, scale: float) -> OpenedEncoder:
    """Open an encoder folder.

    Args:
        folder: a folder for which `encoder_kind` is not None.
        pooling: pooling of a plain BERT. None for folders that say it themselves.
        normalize: whether vectors get length 1; None follows the folder.
        scale: factor of the inner products.

    Raises:
        ConfigError: `pooling` is missing or does not apply.
        InputError: the folder is damaged, or of a kind of model that is not accepted.
    """
    kind = encoder_kind(folder)
    if kind == "dpr":
        _refuse_pooling(folder, pooling, "DPR pools by cls")
        return _of_dpr(folder, normalize, scale)
    if kind == "sentence-transformers":
        _refuse_pooling(folder, pooling, "a sentence-transformers folder names its pooling itself")
        described = read_sentence_folder(folder)
    else:
        described = SentenceFolder(folder, _pooling_of_bert(folder, pooling), ())
    tower = _tower(load_bert_encoder(described.bert, described.pooling), described, normalize, scale)
    return OpenedEncoder(
        tower,
        described.bert,
        _max_length(tower, described),
        lowercase=described.lowercase,
        query_prompt=described.query_prompt,
        block_prompt=described.block_prompt,
    )


def _of_dpr(folder: Path, normalize: bool | None, scale: float) -> OpenedEncoder:
    encoder = load_dpr_encoder(folder)
    weight = encoder.projection.get("weight")
    steps = () if weight is None else (HeadStep("dense", len(weight)),)
    tensors = {f"0.0.{name}": tensor for name, tensor in encoder.projection.items()}
    described = SentenceFolder(folder, "cls", steps, tensors)
    tower = _tower(encoder.bert, described, normalize, scale)
    return OpenedEncoder(tower, folder, _max_length(tower, described), "separated", encoder.side)


def _tower(bert: Any, described: SentenceFolder, normalize: bool | None, scale: float) -> SentenceTower:
    steps, width = list(described.steps), int(bert.config.hidden_size)
    if normalize is False and steps and steps[-1].kind == "normalize":
        steps.pop()
    elif normalize and not (steps and steps[-1].kind == "normalize"):
        steps.append(HeadStep("normalize", steps[-1].width if steps else width))
    try:
        checked = steps_of([vars(step) for step in steps], width)
    except ValueError as error:
        raise InputError(f"{described.bert}: {error}. The folder does not fit together; get it again.") from None
    tower = SentenceTower(bert, described.pooling, checked, scale)
    load_into(tower.head, described.tensors, described.bert)
    return tower.eval()


def _pooling_of_bert(folder: Path, pooling: Pooling | None) -> Pooling:
    if pooling is None and _fields(folder).get("architectures") == CONTRIEVER:
        return "mean"
    if pooling is None:
        raise ConfigError(
            f"{folder} is a BERT and does not say how its states become one vector. Say --pooling mean, cls or pooler, as "
            "the encoder was trained. A BERT that was not trained to retrieve needs ict-init instead: pass it to --bert."
        )
    return pooling


def _refuse_pooling(folder: Path, pooling: Pooling | None, why: str) -> None:
    if pooling is not None:
        raise ConfigError(f"--pooling {pooling} does not apply to {folder}: {why}. Leave it out.")


def _max_length(tower: SentenceTower, described: SentenceFolder) -> int:
    positions = int(tower.bert.config.max_position_embeddings)
    return min(described.max_length or positions, positions)


def _fields(folder: Path) -> dict[str, Any]:
    """Return config.json, or nothing if it cannot be read; the loader of weights says why then."""
    path = folder / "config.json"
    try:
        fields = json.loads(path.read_text(encoding="utf-8")) if path.stat().st_size <= MAX_CONFIG_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def require_sides(query: OpenedEncoder, block: OpenedEncoder | None) -> None:
    """Raise ConfigError unless DPR's encoders are both there and not exchanged, and make vectors in the same way."""
    sides = (query.side, block.side if block else "")
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

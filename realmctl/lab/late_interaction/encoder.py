"""A multi-vector encoder of sentence-transformers 6 as a module: texts in, a vector for each token out.

Its modules are Transformer, Dense layers over tokens, MultiVectorMask and Normalize. transformers runs the encoder, and no code of the folder is executed.
Legend: B texts, L tokens, H hidden, D width.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AutoModel

from realmctl.artifacts.disk import share_as_folder
from realmctl.artifacts.folder import MANIFEST
from realmctl.artifacts.typed_json import read_as
from realmctl.errors import InputError
from realmctl.imports.model_folder import read_json
from realmctl.models.foreign_model import open_foreign, save_tokenizer
from realmctl.models.precision import to_device
from realmctl.models.weight_files import load_weights
from realmctl.models.weights import load_into, load_tensors, require_sound, save_tensors
from realmctl.pipeline.sources import HUB_FILES, localise

Side = Literal["query", "document"]
SETTINGS, HEAD, FOLDER = "late.json", "projection.safetensors", "encoder"
TOKENS, KIND = "token_embeddings", "MultiVectorEncoder"
KEPT = (".json", ".txt", ".model", ".jinja")
"""Endings of the files of a folder that are no weights."""
IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass(frozen=True)
class LateSettings:
    """How texts are read.

    widths: outputs of the layers over tokens. normalize: whether vectors get length 1. query_length, document_length: longest input in tokens.
    expansion: tokens to which a query is filled up with masks, which count; 0 for none. attends: whether the encoder sees them.
    expansion_token, skipped: ids. skips_queries: whether `skipped` do not count in queries either. query_prompt, document_prompt: text before.
    """

    widths: list[int]
    normalize: bool
    query_length: int
    document_length: int
    expansion: int
    attends: bool
    expansion_token: int
    skipped: list[int]
    skips_queries: bool
    skips_documents: bool
    query_prompt: str
    document_prompt: str


class LateEncoder(nn.Module):
    """An encoder, layers over its tokens, and what counts in MaxSim.

    Args:
        tokenizer, bert: as `open_foreign` returns them.
        settings: how texts are read.
    """

    def __init__(self, tokenizer: Any, bert: Any, settings: LateSettings) -> None:
        super().__init__()
        self.tokenizer, self.bert, self.settings = tokenizer, bert, settings
        widths = [int(bert.config.hidden_size), *settings.widths]
        self.head = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths))

    @property
    def width(self) -> int:
        """Width D of the vectors."""
        return int(self.settings.widths[-1] if self.settings.widths else self.bert.config.hidden_size)

    def forward(self, texts: Sequence[str], side: Side) -> tuple[Tensor, Tensor]:
        """Return the vectors of the tokens of texts, float32 [B, L, D], and which of them count, bool [B, L]."""
        given, query = self.settings, side == "query"
        prompt = given.query_prompt if query else given.document_prompt
        length = given.query_length if query else given.document_length
        fixed = given.expansion if query else 0
        batch = self.tokenizer(
            [f"{prompt}{text}" for text in texts],
            padding="max_length" if fixed else True,
            truncation=True,
            max_length=max(fixed, 0) or length,
            return_tensors="pt",
        )
        device = next(self.parameters()).device
        ids_BL, real_BL = to_device(batch["input_ids"], device), to_device(batch["attention_mask"], device).bool()
        counts_BL, seen_BL = real_BL, real_BL
        if fixed:
            ids_BL = torch.where(real_BL, ids_BL, given.expansion_token)
            counts_BL = torch.ones_like(real_BL)
            seen_BL = counts_BL if given.attends else real_BL
        inputs = {"input_ids": ids_BL, "attention_mask": seen_BL.long()}
        if "token_type_ids" in batch:
            inputs["token_type_ids"] = to_device(batch["token_type_ids"], device)
        state: Tensor = self.bert(**inputs).last_hidden_state
        for layer in self.head:
            state = layer(state)
        if given.normalize:
            state = F.normalize(state, dim=-1)
        if given.skipped and (given.skips_queries if query else given.skips_documents):
            counts_BL = counts_BL & ~torch.isin(ids_BL, to_device(torch.tensor(given.skipped), device))
        return state, counts_BL

    def save(self, folder: Path) -> None:
        """Write the encoder with its tokenizer, the layers, and how texts are read."""
        self.bert.save_pretrained(folder / FOLDER)
        save_tokenizer(self.tokenizer, folder / FOLDER)
        if self.settings.widths:
            save_tensors(self.head.state_dict(), folder / HEAD)
        (folder / SETTINGS).write_text(json.dumps(asdict(self.settings), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> LateEncoder:
        """Read what `save` wrote. Raises InputError for a missing or altered file."""
        settings = read_as(
            folder / SETTINGS, LateSettings, "a late-interaction encoder", "Make the artifact again.", whole=True
        )
        tokenizer, bert, _ = open_foreign(folder / FOLDER, AutoModel, "encoder", str(folder))
        made = cls(tokenizer, bert, settings)
        if settings.widths:
            load_into(made.head, load_tensors(folder / HEAD), folder)
        return made.eval()


def late_folder(named: str, flag: str) -> Path:
    """Return the folder of an encoder: of a path, a hub id, or the newest version of an artifact."""
    return Path(localise(named, (), True, flag, files=HUB_FILES))


def save_as_started(encoder: LateEncoder, start: Path, out: Path) -> None:
    """Write a multi-vector folder of sentence-transformers: that of the start, which `open_late` has checked, with the encoder's weights."""
    modules = _modules(start)
    for place in {"", *(name for _, name in modules)}:
        (out / place).mkdir(parents=True, exist_ok=True)
        for path in (start / place).iterdir() if (start / place).is_dir() else ():
            if path.suffix in KEPT and path.name != MANIFEST and not path.name.endswith(".index.json"):
                shutil.copyfile(path, out / place / path.name)
    require_sound(encoder.state_dict(), out)
    encoder.bert.save_pretrained(out / modules[0][1])
    layers = [name for kind, name in modules if kind == "Dense"]
    for name, weight in zip(layers, encoder.head.parameters(), strict=True):
        save_tensors({"linear.weight": weight}, out / name / "model.safetensors")
    for path in out.rglob("*.safetensors"):
        share_as_folder(path)


def open_late(named: str, flag: str = "--encoder") -> LateEncoder:
    """Open a multi-vector folder of sentence-transformers 6, on this machine or on the hub, or an artifact of `late-finetune`, which is one.

    Raises InputError for another kind of folder, for modules that are not known, and where its parts do not fit.
    """
    folder = late_folder(named, flag)
    stated_at = folder / "config_sentence_transformers.json"
    stated = read_json(stated_at) if stated_at.is_file() else {}
    if stated.get("model_type") != KIND:
        raise _refused(
            folder,
            f"its model_type is {str(stated.get('model_type'))[:40]!r}, and {KIND} is read here. `realmctl import` reads dense encoders",
        )
    modules = _modules(folder)
    if not modules or modules[0][0] != "Transformer" or modules[0][1] not in ("", "0_Transformer"):
        raise _refused(folder, "its first module is no Transformer")
    place = folder / modules[0][1]
    widths, weights, masks, normalize = _head(folder, modules[1:])
    limits_at = place / "sentence_bert_config.json"
    limits = read_json(limits_at) if limits_at.is_file() else {}
    if limits.get("processing_kwargs") or limits.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise _refused(folder, "its sentence_bert_config.json asks for another task, or for settings of a processor")
    tokenizer, bert, most = open_foreign(place, AutoModel, "encoder", flag)
    settings = _settings(
        folder,
        stated,
        limits,
        masks,
        tokenizer,
        widths,
        normalize,
        min(most, int(limits.get("max_seq_length") or most)),
    )
    made = LateEncoder(tokenizer, bert, settings)
    load_into(made.head, weights, folder)
    return made.eval()


def _modules(folder: Path) -> list[tuple[str, str]]:
    """The class and the folder of each module."""
    return [
        (str(each.get("type")).rpartition(".")[2], str(each.get("path")))
        for each in read_json(folder / "modules.json", list)
        if isinstance(each, dict)
    ]


def _head(
    folder: Path, modules: Sequence[tuple[str, str]]
) -> tuple[list[int], dict[str, Tensor], Mapping[str, Any], bool]:
    """Return the widths and weights of the layers over tokens, what the mask says, and whether vectors get length 1."""
    widths: list[int] = []
    weights: dict[str, Tensor] = {}
    masks: Mapping[str, Any] | None = None
    normalize = False
    for kind, name in modules:
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise _refused(folder, f"modules.json names {name[:80]!r}, which is not a folder inside it")
        config = read_json(path / "config.json") if (path / "config.json").is_file() else {}
        if kind == "Dense":
            plain = (
                config.get("activation_function", IDENTITY) == IDENTITY
                and not config.get("bias", True)
                and not config.get("use_residual")
            )
            if (
                config.get("module_input_name") != TOKENS
                or config.get("module_output_name") not in (None, TOKENS)
                or not plain
                or normalize
            ):
                raise _refused(folder, f"its module {name} is no linear layer over tokens without a bias")
            tensors = load_weights(path)[1]
            weight = tensors.get("linear.weight")
            if weight is None or len(tensors) != 1 or weight.dim() != 2:
                raise _refused(folder, f"its module {name} has other weights than linear.weight")
            weights[f"{len(widths)}.weight"] = weight.float()
            widths.append(len(weight))
        elif kind == "MultiVectorMask":
            masks = config
        elif kind == "Normalize" and config.get("module_input_name") == TOKENS:
            normalize = True
        else:
            raise _refused(folder, f"its module {kind[:40]} is not known")
    if masks is None:
        raise _refused(folder, "it has no MultiVectorMask")
    return widths, weights, masks, normalize


def _settings(
    folder: Path,
    stated: Mapping[str, Any],
    limits: Mapping[str, Any],
    masks: Mapping[str, Any],
    tokenizer: Any,
    widths: list[int],
    normalize: bool,
    most: int,
) -> LateSettings:
    if masks.get("keep_only_token_ids"):
        raise _refused(folder, "its mask keeps the tokens of images alone")
    expansion = limits.get("query_expansion") or {}
    if expansion and (
        expansion.get("strategy") != "fixed"
        or type(expansion.get("length")) is not int
        or not 1 <= expansion["length"] <= most
    ):
        raise _refused(folder, f"its query_expansion is {str(expansion)[:80]}")
    token = expansion.get("token")
    filler = tokenizer.convert_tokens_to_ids(token) if token else tokenizer.mask_token_id or tokenizer.eos_token_id
    if expansion and filler is None:
        raise _refused(folder, "its tokenizer has no token to expand queries with")
    unknown = tokenizer.unk_token_id
    words, prompts = masks.get("skiplist_words") or [], stated.get("prompts") or {}
    if not (isinstance(words, list) and all(isinstance(word, str) for word in words) and isinstance(prompts, dict)):
        raise _refused(folder, "its skiplist_words are no list of words, or its prompts are no object")
    ids = [tokenizer.convert_tokens_to_ids(word) for word in words]
    tasks = masks.get("skiplist_tasks") or ["document"]
    lengths = [limits.get(name) or most for name in ("query_length", "document_length")]
    if not all(type(length) is int and 2 < length <= most for length in lengths):
        raise _refused(folder, f"its longest inputs are {lengths} tokens, and the encoder has {most} positions")
    return LateSettings(
        widths=widths,
        normalize=normalize,
        query_length=lengths[0],
        document_length=lengths[1],
        expansion=expansion.get("length", 0),
        attends=bool(expansion.get("attend", False)),
        expansion_token=int(filler or 0),
        skipped=[
            number
            for number, word in zip(ids, words, strict=True)
            if number is not None and (number != unknown or word == tokenizer.unk_token)
        ],
        skips_queries="query" in tasks,
        skips_documents="document" in tasks,
        query_prompt=str(prompts.get("query") or ""),
        document_prompt=str(prompts.get("document") or ""),
    )


def _refused(folder: Path, why: str) -> InputError:
    return InputError(f"{folder} cannot be used for late interaction: {why}.")

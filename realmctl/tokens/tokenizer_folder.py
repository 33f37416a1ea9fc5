"""Read the tokenizer of a folder, with the settings that the folder states.

transformers heeds tokenizer_config.json before tokenizer.json where the class of the tokenizer is BERT's or RoBERTa's, so the
settings are applied here in the same way. A class that is not listed may do more than tokenizer.json says, and is refused by name.
No code of a folder is run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as LibraryTokenizer

from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.tokens.library_file import MAX_TOKENIZER_BYTES, open_tokenizer, readable
from realmctl.tokens.names import UNREAD_VOCABULARIES

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""BERT's special tokens, in the order of the fields of `Specials`."""
ROBERTA_SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
LIKE_BERT = "Bert DistilBert Electra MobileBert SqueezeBert Realm RetriBert MPNet DPRQuestionEncoder DPRContextEncoder DPRReader ConvBert Lxmert Funnel LayoutLM"
WORDPIECE_CLASSES = frozenset(f"{name}Tokenizer{ending}" for name in LIKE_BERT.split() for ending in ("", "Fast"))
"""Classes that put BERT's normalizer in place, whose settings stand in tokenizer_config.json."""
UNCHANGED_CLASSES = frozenset({"PreTrainedTokenizerFast", "TokenizersBackend"})
"""Classes that do what tokenizer.json says, and no more."""
AS_STATED = "Roberta XLMRoberta Camembert ModernBert Gemma Llama Qwen2 T5 Albert"
PLAIN_CLASSES = frozenset(f"{name}Tokenizer{end}" for name in AS_STATED.split() for end in ("", "Fast")) | {
    *("PreTrainedTokenizerFast", "TokenizersBackend", "PreTrainedTokenizer")
}
"""Classes for which tokenizer.json says everything, apart from RoBERTa's `add_prefix_space`."""
NO_LENGTH = 10**6
"""A model_max_length of this or more is none: transformers writes 10^30 for a tokenizer without a limit."""


def stated_length(folder: Path) -> int | None:
    """Return the longest input in tokens that the tokenizer of a folder allows (`model_max_length`); None without a limit."""
    stated = _json(folder / "tokenizer_config.json").get("model_max_length")
    return int(stated) if isinstance(stated, int | float) and 2 < stated < NO_LENGTH else None


def cuts_the_beginning(folder: Path) -> bool:
    """Return whether the tokenizer of a folder cuts a text that is too long at its beginning, and not at its end (`truncation_side`)."""
    truncation = _json(folder / "tokenizer.json").get("truncation")
    direction = truncation.get("direction") if isinstance(truncation, Mapping) else None
    stated = _json(folder / "tokenizer_config.json").get("truncation_side", direction)
    return str(stated).lower() == "left"


def read_tokenizer(folder: Path) -> tuple[LibraryTokenizer, tuple[str, ...]]:
    """Return the tokenizer of a folder with tokenizer.json or BERT's vocab.txt, and its special tokens in the order of `ROLES`.

    Raises:
        InputError: there is no tokenizer, it cannot be read, its class is unknown, or a setting is not obeyed here.
    """
    config = _json(folder / "tokenizer_config.json")
    _require_known(folder, config)
    with readable(folder):
        if (folder / "tokenizer.json").is_file():
            tokenizer = open_tokenizer(folder / "tokenizer.json")
            _apply(config, tokenizer)
        elif (folder / "vocab.txt").is_file():
            vocabulary = _vocabulary(folder / "vocab.txt")
            unknown = _name(config, "unk_token") or ("[UNK]" if "[UNK]" in vocabulary else "<unk>")
            names = _names(config, {}, vocabulary)
            tokenizer = bert_tokenizer(
                models.WordPiece(vocabulary, unk_token=unknown), names=names, **_bert_settings(config)
            )
            _add_tokens(tokenizer, config, _json(folder / "added_tokens.json"))
        else:
            raise InputError(_nothing(folder))
        mapped = _json(folder / "special_tokens_map.json")
        return tokenizer, _names(config, mapped, tokenizer.get_vocab(with_added_tokens=True))


def bert_tokenizer(
    model: models.WordPiece,
    lowercase: bool,
    strip_accents: bool | None = None,
    chinese: bool = True,
    names: tuple[str, ...] = SPECIALS,
) -> LibraryTokenizer:
    """Return a tokenizer with BERT's normalizer, pre-tokenizer and special tokens around a WordPiece model."""
    tokenizer = LibraryTokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    known = [token for token in names if tokenizer.token_to_id(token) is not None]
    tokenizer.add_special_tokens(known)
    _, _, cls, sep, _ = names
    if {cls, sep} <= set(known):
        ids = tokenizer.get_vocab()
        kind = processors.BertProcessing if cls == "[CLS]" else processors.RobertaProcessing
        tokenizer.post_processor = kind((sep, ids[sep]), (cls, ids[cls]))
    return tokenizer


def rebuilt_parts(folder: Path) -> list[str]:
    """Return the parts of a folder's tokenizer.json that transformers 5 replaces by BERT's, since tokenizer_config.json names BERT's class. Here they are obeyed."""
    named, held = _json(folder / "tokenizer_config.json").get("tokenizer_class"), _json(folder / "tokenizer.json")
    if named not in REBUILT_CLASSES or not held:
        return []
    bert = {"normalizer": ("BertNormalizer",), "pre_tokenizer": ("BertPreTokenizer",), "post_processor": BERT_FRAMES}
    return [part for part, kinds in bert.items() if (held.get(part) or {}).get("type") not in kinds]


def _require_known(folder: Path, config: Mapping[str, Any]) -> None:
    named = config.get("tokenizer_class")
    if named is not None and not (isinstance(named, str) and named in WORDPIECE_CLASSES | PLAIN_CLASSES):
        raise InputError(
            f"{folder}: its tokenizer is a {str(named)[:60]}, and what that class does is not done here. Use a model whose tokenizer "
            "is BERT's, RoBERTa's, XLM-R's, CamemBERT's, MPNet's, ModernBERT's, Gemma's, Llama's, Qwen's, T5's or ALBERT's, or save it as one "
            "tokenizer.json."
        )
    for name, obeyed in (
        ("do_basic_tokenize", (None, True)),
        ("never_split", (None, [])),
        ("split_special_tokens", (None, False)),
    ):
        if config.get(name) not in obeyed:
            raise InputError(
                f"{folder}: tokenizer_config.json sets {name} to {str(config[name])[:60]}, which is not obeyed here. Save the "
                "tokenizer without it, as tokenizer.json."
            )
    if named in WORDPIECE_CLASSES:
        for name, kinds in (
            ("do_lower_case", (bool,)),
            ("strip_accents", (bool, type(None))),
            ("tokenize_chinese_chars", (bool,)),
        ):
            if name in config and not isinstance(config[name], kinds):
                raise InputError(
                    f"{folder}: tokenizer_config.json sets {name} to {str(config[name])[:60]}. It must be true or false."
                )


def _bert_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "lowercase": bool(config.get("do_lower_case", True)),
        "strip_accents": config.get("strip_accents"),
        "chinese": bool(config.get("tokenize_chinese_chars", True)),
    }


NO_FRAME = processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
REBUILT_CLASSES = frozenset({"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast"})
BERT_FRAMES = ("BertProcessing", "TemplateProcessing")


def _apply(config: Mapping[str, Any], tokenizer: LibraryTokenizer) -> None:
    """Set what the class of the tokenizer takes from tokenizer_config.json, as transformers does."""
    named = config.get("tokenizer_class")
    found = json.loads(tokenizer.to_str())
    if tokenizer.post_processor is None and named in UNCHANGED_CLASSES:
        tokenizer.post_processor = NO_FRAME
    if named in WORDPIECE_CLASSES and (found["normalizer"] or {}).get("type") == "BertNormalizer":
        wanted = _bert_settings(config)
        tokenizer.normalizer = normalizers.BertNormalizer(
            clean_text=found["normalizer"]["clean_text"],
            handle_chinese_chars=wanted["chinese"],
            strip_accents=wanted["strip_accents"],
            lowercase=wanted["lowercase"],
        )
    elif str(named).startswith("Roberta") and (found["pre_tokenizer"] or {}).get("type") == "ByteLevel":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
            add_prefix_space=bool(config.get("add_prefix_space", False)),
            use_regex=found["pre_tokenizer"].get("use_regex", True),
        )


def _add_tokens(tokenizer: LibraryTokenizer, config: Mapping[str, Any], added: Mapping[str, Any]) -> None:
    """Add the tokens that a folder without tokenizer.json adds to vocab.txt, in the order of their ids."""
    decoder = config.get("added_tokens_decoder") or {}
    tokens = {int(number): token for token, number in added.items()} | {
        int(number): token for number, token in decoder.items()
    }
    for number, token in sorted(tokens.items()):
        fields = {"content": token} if isinstance(token, str) else {name: token[name] for name in token if name != "id"}
        special = bool(fields.pop("special", False))
        fields.pop("__type", None)
        made = AddedToken(**fields, special=special)
        tokenizer.add_special_tokens([made]) if special else tokenizer.add_tokens([made])
        if tokenizer.token_to_id(made.content) != number:
            raise ValueError(
                f"the added token {made.content!r} is number {number}, which does not follow the vocabulary"
            )


def _names(config: Mapping[str, Any], mapped: Mapping[str, Any], vocabulary: Mapping[str, int]) -> tuple[str, ...]:
    """Return the special tokens in the order of `ROLES`: as the folder names them, else BERT's or RoBERTa's."""
    usual = SPECIALS if "[CLS]" in vocabulary or "<s>" not in vocabulary else ROBERTA_SPECIALS
    return tuple(
        _name(config, role) or _name(mapped, role) or default for role, default in zip(ROLES, usual, strict=True)
    )


def _name(config: Mapping[str, Any], role: str) -> str | None:
    token = config.get(role)
    found = token.get("content") if isinstance(token, dict) else token
    return found if isinstance(found, str) and found else None


def _vocabulary(path: Path) -> dict[str, int]:
    if path.stat().st_size > MAX_TOKENIZER_BYTES:
        raise ValueError(f"{path.name} has more than {MAX_TOKENIZER_BYTES // 2**20} MiB")
    tokens = path.read_text(encoding="utf-8").split("\n")
    return {token.removesuffix("\r"): number for number, token in enumerate(tokens) if token.strip()}


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a file, or nothing where there is no such file. Raises InputError for a damaged one."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, path) or InputError(
            f"{path} cannot be read ({one_line(error)}). Get the folder again."
        ) from None
    return found


def _nothing(folder: Path) -> str:
    other = [name for name in UNREAD_VOCABULARIES if (folder / name).is_file()]
    if other:
        return (
            f"{folder} holds its tokenizer as {other[0]}, and only tokenizer.json and BERT's vocab.txt are read. Write it with "
            f"transformers: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
    return f"{folder} holds no tokenizer: neither tokenizer.json nor vocab.txt. Name a BERT folder, or train one (train:30522)."

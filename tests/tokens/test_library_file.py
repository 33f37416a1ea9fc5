"""A tokenizer.json that the library would trust is checked before the library sees it."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as LibraryTokenizer

from realmctl.errors import InputError, as_realmctl_error
from realmctl.execution.shards import map_units
from realmctl.tokens import library_file
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.training import train
from tests.faults.counting import count

KINDS = ("wordpiece", "bpe", "unigram")
Setup = dict[str, Any]


@cache
def setup_of(kind: str) -> Setup:
    text = ["Ada Lorn was born in Velford. She worked in Rome as a painter in 1815."] * 50
    found: Setup = json.loads(train(text, TokenizerRecipe(kind, 300, True)).tokenizer.to_str())
    return found


def written(folder: Path, kind: str, change: Callable[[Setup], object] = lambda setup: None) -> Path:
    setup = copy.deepcopy(setup_of(kind))
    change(setup)
    (folder / "tokenizer.json").write_text(json.dumps(setup))
    return folder


def of_model(**fields: object) -> Callable[[Setup], object]:
    return lambda setup: setup["model"].update(fields)


def part(name: str, kind: str, **fields: object) -> Callable[[Setup], object]:
    return lambda setup: setup.update({name: {"type": kind, **fields}})


def added(**fields: object) -> Callable[[Setup], object]:
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return lambda setup: setup["added_tokens"].append({**token, "id": 5, **fields})


def charsmap(size: int, rest: bytes) -> str:
    return base64.b64encode(size.to_bytes(4, "little") + rest).decode()


TEMPLATE = {"single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}], "pair": [], "special_tokens": {}}
DAMAGES: dict[str, tuple[str, Callable[[Setup], object], str]] = {
    "an empty vocabulary": ("wordpiece", of_model(vocab={}), "UNK"),
    "an empty vocabulary of Unigram": ("unigram", of_model(vocab=[]), "EmptyVocabulary"),
    "an unknown token that it lacks": ("wordpiece", of_model(unk_token="<nowhere>"), "UNK"),
    "no unknown token": ("unigram", of_model(unk_id=None), "unk_id"),
    "a merge of a piece that it lacks": (
        "bpe",
        of_model(merges=[["a", "zzz"]]),
        "lacks a piece of the merge 'a' 'zzz'",
    ),
    "a merge of one piece": ("bpe", of_model(merges=["a"]), "no pair of pieces"),
    "a merge of nothing": ("bpe", of_model(merges=[["", ""]]), "no pair of pieces"),
    "a prefix that no merge has": ("bpe", of_model(continuing_subword_prefix="@@"), "lacks a piece of the merge"),
    "an id beyond the limit": ("bpe", added(content="new", id=2**22), "an id is 4194304"),
    "an id below 0": ("bpe", lambda setup: setup["model"]["vocab"].update(new=-1), "an id is -1"),
    "an id that is true": ("bpe", lambda setup: setup["model"]["vocab"].update(new=True), "an id is True"),
    "a score that is no number": ("unigram", lambda setup: setup["model"]["vocab"].append(["x", None]), "finite score"),
    "a blank that takes blanks": ("bpe", added(content=" ", lstrip=True), "blanks beside it"),
    "a pattern of nothing": ("bpe", part("normalizer", "Replace", pattern={"String": ""}, content="x"), "is empty"),
    "pieces of no length": ("bpe", part("pre_tokenizer", "FixedLength", length=0), "no length"),
    "a short table": ("unigram", part("normalizer", "Precompiled", precompiled_charsmap="AAAA"), "is damaged"),
    "a table longer than it is": (
        "unigram",
        part("normalizer", "Precompiled", precompiled_charsmap=charsmap(400, bytes(8))),
        "is damaged",
    ),
    "a table that makes much of little": (
        "unigram",
        part("normalizer", "Precompiled", precompiled_charsmap=charsmap(4, bytes(4) + b"x" * 129 + b"\0")),
        "129 bytes",
    ),
    "a template with an unknown token": ("wordpiece", part("post_processor", "TemplateProcessing", **TEMPLATE), "[X]"),
    "a decoder that strips much": ("bpe", part("decoder", "Strip", content="a", start=9, stop=0), "strips"),
    "no vocabulary": ("bpe", of_model(vocab=3), "no vocabulary"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_the_library_would_trust_is_refused(tmp_path, damage):
    kind, change, told = DAMAGES[damage]
    with pytest.raises(InputError) as error:
        Tokenizer.load(written(tmp_path, kind, change))
    assert told in str(error.value) and str(tmp_path) in str(error.value) and "\n" not in str(error.value)
    count("damaged tokenizers refused", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_one_is_what_the_library_opens(tmp_path, kind):
    found = library_file.open_tokenizer(written(tmp_path, kind) / "tokenizer.json")
    assert json.loads(found.to_str()) == setup_of(kind)


@pytest.mark.parametrize(
    ("normalizer", "growth"),
    [
        ({"type": "Prepend", "prepend": "ab"}, 3),
        ({"type": "Replace", "pattern": {"String": "a"}, "content": "aaa"}, 3),
        ({"type": "Replace", "pattern": {"String": "ab"}, "content": "aaaaaa"}, 3),
        ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "aaa"}, 3),
        (
            {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 2},
            4,
        ),
    ],
)
def test_a_normalizer_lengthens_no_text_beyond_the_limit(tmp_path, monkeypatch, normalizer, growth):
    folder = written(tmp_path, "bpe", lambda setup: setup.update(normalizer=normalizer))
    monkeypatch.setattr(library_file, "MAX_GROWTH", growth)
    found = library_file.open_tokenizer(folder / "tokenizer.json")
    assert len(found.normalizer.normalize_str("ab" * 50)) <= growth * 100
    monkeypatch.setattr(library_file, "MAX_GROWTH", growth - 1)
    with pytest.raises(InputError, match=f"up to {growth} characters of one"):
        library_file.open_tokenizer(folder / "tokenizer.json")


def test_a_file_beyond_the_limit_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(library_file, "MAX_TOKENIZER_BYTES", 2**20)
    folder = written(tmp_path, "bpe", lambda setup: setup.update(more="x" * 2**20))
    with pytest.raises(InputError, match="more than 1 MiB"):
        Tokenizer.load(folder)


class PanicException(BaseException):
    """As the binding of Rust to Python calls it. It is no Exception."""


def panic(*_: object) -> None:
    raise PanicException("index out of bounds")


def test_a_panic_of_the_library_is_one_clear_error(tmp_path, monkeypatch):
    folder = written(tmp_path, "bpe")
    monkeypatch.setattr(LibraryTokenizer, "from_file", panic)
    with pytest.raises(InputError, match=r"cannot be read \(index out of bounds\)"):
        Tokenizer.load(folder)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_panic_in_a_worker_reaches_the_command(workers):
    with pytest.raises((InputError, PanicException)) as error:
        list(map_units(panic, [1, 2], workers))
    known = as_realmctl_error(error.value)
    assert isinstance(known, InputError) and "index out of bounds" in str(known)


def test_a_panic_of_any_library_is_no_traceback(realmctl, monkeypatch):
    monkeypatch.setattr("realmctl.cli.commands.ls.Ls.run", panic)
    code, _, err = realmctl("ls")
    assert code == 3 and "index out of bounds" in err

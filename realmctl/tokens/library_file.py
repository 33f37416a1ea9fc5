"""Open a tokenizer.json of an unknown author.

The library is written in Rust. At some files it panics, which no handler of exceptions meets, or takes all memory and ends the process. So what it
trusts is checked before, and so is how much longer than a text its pieces can be.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as LibraryTokenizer

from realmctl.errors import InputError, RealmctlError, as_realmctl_error, is_panic, one_line

MAX_TOKENIZER_BYTES = 2**28
MAX_TOKEN_ID = 2**22
"""Below it all ids must lie: the library takes memory for each id up to the greatest."""
MAX_GROWTH = 32
"""How many characters a character of a text may become before it is cut into pieces. Unicode's own forms (NFKC) make 18 of one at most."""
TRIED = "A word, \u00e9 \u4e2d \ue123\U000effff1."
"""A text with characters that no vocabulary has, so that the token of unknown ones is needed."""


def open_tokenizer(path: Path) -> LibraryTokenizer:
    """Return the tokenizer of a tokenizer.json, which neither cuts nor pads.

    Raises:
        InputError: It is damaged or too large, its parts do not fit together, or it lengthens a text beyond MAX_GROWTH.
    """
    with readable(path):
        if path.stat().st_size > MAX_TOKENIZER_BYTES:
            raise ValueError(f"it has more than {MAX_TOKENIZER_BYTES // 2**20} MiB")
        _check(json.loads(path.read_bytes()))
        tokenizer = LibraryTokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.decode(tokenizer.encode(TRIED).ids)
        return tokenizer


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise InputError for whatever the library raises while it opens or tries a tokenizer: bare exceptions, and panics, which are none."""
    try:
        yield
    except RealmctlError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        known = None if is_panic(error) else as_realmctl_error(error, path)
        raise known or InputError(
            f"{path}: its tokenizer cannot be read ({one_line(error)}). Get the folder again."
        ) from None


def _check(setup: Any) -> None:
    """Raise ValueError for what the library would trust. Its own checks find the rest."""
    if not isinstance(setup, dict) or not isinstance(model := setup.get("model"), dict):
        raise ValueError("it is no JSON object with a model")
    vocabulary = _vocabulary(model.get("vocab"))
    added = setup.get("added_tokens") or []
    ids = [token.get("id") for token in added if isinstance(token, dict)]
    if beyond := next((each for each in [*vocabulary.values(), *ids] if not _is_id(each)), None):
        raise ValueError(f"an id is {str(beyond)[:40]}; ids go from 0 to {MAX_TOKEN_ID - 1:,}")
    if isinstance(model.get("merges"), list):
        _check_merges(model["merges"], model.get("continuing_subword_prefix") or "", vocabulary)
    for token in added:
        if (
            isinstance(token, dict)
            and not str(token.get("content", "")).strip()
            and (token.get("lstrip") or token.get("rstrip"))
        ):
            raise ValueError("an added token is blank and takes the blanks beside it")
    growth = 1.0
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        for part in _parts(setup.get(name)):
            growth *= _growth(part) if name == "normalizer" else 1
            _check_part(part)
    if growth > MAX_GROWTH:
        raise ValueError(f"its normalizer makes up to {growth:,.0f} characters of one, and {MAX_GROWTH} are allowed")


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_TOKEN_ID


def _vocabulary(given: object) -> dict[str, object]:
    if isinstance(given, dict):
        return given
    if isinstance(given, list):  # Unigram's, with a score for each piece
        if not all(isinstance(entry, list) and len(entry) == 2 and _is_score(entry[1]) for entry in given):
            raise ValueError("an entry of its vocabulary is no pair of a piece and a finite score")
        return {str(piece): number for number, (piece, _) in enumerate(given)}
    raise ValueError("it has no vocabulary")


def _is_score(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _check_merges(merges: Sequence[object], prefix: str, vocabulary: Mapping[str, object]) -> None:
    for merge in merges:
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) and part for part in pair)):
            raise ValueError(f"the merge {str(merge)[:40]!r} is no pair of pieces")
        left, right = pair
        if not right.startswith(prefix) or not {left, right, left + right[len(prefix) :]} <= vocabulary.keys():
            raise ValueError(f"its vocabulary lacks a piece of the merge {left[:40]!r} {right[:40]!r}")


def _parts(part: object) -> Iterator[Mapping[str, Any]]:
    """Yield a part of the pipeline, or those of a sequence, one after the other."""
    waiting = [part]
    while waiting:
        if isinstance(one := waiting.pop(0), dict):
            inner = [one.get(name) for name in ("normalizers", "pretokenizers", "processors", "decoders")]
            waiting = [each for several in inner if isinstance(several, list) for each in several] + waiting
            yield one


def _growth(part: Mapping[str, Any]) -> float:
    """How many characters a part of a normalizer makes of one, at most."""
    if part.get("type") == "Replace":
        pattern = part.get("pattern")
        least = len(str(pattern["String"])) if isinstance(pattern, dict) and "String" in pattern else 1
        return max(1.0, len(str(part.get("content", ""))) / max(1, least))
    if part.get("type") == "Prepend":
        return 1.0 + len(str(part.get("prepend", "")))
    return 1.0


def _check_part(part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if kind in ("Replace", "Split") and part.get("pattern") == {"String": ""}:
        raise ValueError(f"the pattern of a {kind} is empty")
    if kind == "FixedLength" and part.get("length") == 0:
        raise ValueError("it cuts words into pieces of no length")
    if kind == "Precompiled":
        _check_charsmap(part.get("precompiled_charsmap"))
    if kind == "TemplateProcessing":
        known = part.get("special_tokens") or {}
        used = [
            piece["SpecialToken"]["id"]
            for name in ("single", "pair")
            for piece in part.get(name) or []
            if "SpecialToken" in piece
        ]
        if missing := [name for name in used if name not in known]:
            raise ValueError(f"its template puts {str(missing[0])[:40]!r} into inputs and does not say what it is")
    if kind == "Strip" and any(
        type(part.get(name, 0)) is not int or not 0 <= part.get(name, 0) <= 1 for name in ("start", "stop")
    ):
        raise ValueError("its decoder strips more than one character")


def _check_charsmap(text: object) -> None:
    """Check SentencePiece's table of normal forms: the number of bytes of a trie, the trie, and texts that end in a zero byte."""
    table = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    size = int.from_bytes(table[:4], "little")
    if len(table) < 8 or size % 4 or not 4 <= size <= len(table) - 4:
        raise ValueError("its table of normal forms is damaged")
    if (longest := max(map(len, table[4 + size :].split(b"\0")))) > 4 * MAX_GROWTH:  # in UTF-8
        raise ValueError(f"its table of normal forms makes {longest} bytes of a character")

"""BERT's WordPiece: load, train and save tokenizers, and encode a corpus faster than the library does.

Hugging Face `tokenizers` defines the ids. Each word between two spaces is encoded once and remembered
(wordpiece_cache.py), because BERT's normalizer and pre-tokenizer look at nothing across a space.

Corpus text contains no special tokens: a literal "[SEP]" in it is three ordinary wordpieces.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from realmctl.errors import InputError, as_realmctl_error
from realmctl.tokens.text_pieces import pieces
from realmctl.tokens.wordpiece_cache import GreedyRule, PackedWords, is_bert_pipeline

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
Encoding = tuple[NDArray[np.int32], NDArray[np.int32]]


class WordPiece:
    """A BERT tokenizer with a fast path for corpora. `dtype` is the type of stored ids: uint16 below 65,536 entries."""

    def __init__(self, tokenizer: Tokenizer, where: str = "tokenizer") -> None:
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        if missing := [token for token in SPECIALS if token not in vocabulary]:
            raise InputError(
                f"{where}: the vocabulary has no {', '.join(missing)}, but REALM needs it. Use a BERT "
                f"tokenizer, or train one (train:30522)."
            )
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.vocabulary: dict[str, int] = vocabulary
        self.pad, self.unk, self.cls, self.sep, self.mask = (vocabulary[token] for token in SPECIALS)
        self.specials = [self.pad, self.unk, self.cls, self.sep, self.mask]
        self.dtype = np.dtype(np.uint16 if max(vocabulary.values()) < 2**16 else np.uint32)
        self.itemsize = self.dtype.itemsize
        self._plain, setup = _without_specials(tokenizer)
        self.lowercase = bool((setup.get("normalizer") or {}).get("lowercase", True))
        rule = GreedyRule(setup, self.dtype) if is_bert_pipeline(setup) else None
        self._cache = PackedWords(self._plain, rule, self.dtype)

    def __len__(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def continues(self) -> NDArray[np.bool_]:
        """Whether each wordpiece continues a word ("##..."), bool [V]."""
        found = np.zeros(len(self), dtype=bool)
        found[[number for piece, number in self.vocabulary.items() if piece.startswith("##")]] = True
        return found

    def ids(self, text: str) -> NDArray[Any]:
        """Return the wordpiece ids of `text` as `dtype` [n]. Special tokens are neither added nor recognised."""
        return np.frombuffer(self.packed(text), self.dtype)

    def packed(self, text: str) -> bytes:
        """Return the same ids as bytes, in the form in which they are written to a file."""
        return self._cache.packed(text)

    def clear_cache(self) -> None:
        """Empty the cache of the fast path, except for words that are one wordpiece."""
        self._cache.clear_cache()

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Return (ids int32 [n], character offsets int32 [n, 2]) of each text. Special tokens are neither added nor
        recognised.
        """
        found = self._plain.encode_batch(list(texts), add_special_tokens=False)
        return [(np.array(e.ids, np.int32), np.array(e.offsets, np.int32).reshape(-1, 2)) for e in found]

    def tokens(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of each text as a model reads them, int64 [n]. A literal [MASK] or [SEP] is ordinary text."""
        return [ids.astype(np.int64) for ids, _ in self.encode_batch(texts)]

    def words(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start character, number of wordpieces) of each word that the pre-tokenizer finds in `text`."""
        for offset, piece in pieces(text, self._cache.border):
            encoding = self._plain.encode(piece, add_special_tokens=False)
            tokens = zip(encoding.word_ids, encoding.offsets, strict=True)
            for _, word in groupby(tokens, key=lambda token: token[0]):
                (_, (start, _)), *others = word
                yield offset + start, 1 + len(others)

    def joined_words(self, text: str) -> str:
        """Return the words of `text` as the tokenizer sees them, normalised, with one space between them."""
        normalizer, pre_tokenizer = self._plain.normalizer, self._plain.pre_tokenizer
        plain = normalizer.normalize_str(text) if normalizer else text
        return " ".join(word for word, _ in pre_tokenizer.pre_tokenize_str(plain)) if pre_tokenizer else plain

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """Return the wordpieces of `ids` as text; one that continues a word begins with `##`."""
        return [str(self.tokenizer.id_to_token(int(number))) for number in ids]

    def aligns(self, text: str, ids: Iterable[int]) -> bool:
        """Return whether the official featuriser can align these wordpieces with `text` (google-research/language,
        realm/featurization.py).

        It can if the text keeps its length without accents and in lower case, and if each wordpiece is found in it after
        the one before. [UNK] is not, and neither is a wordpiece with an invisible character in it, such as U+200B.
        """
        decomposed = unicodedata.normalize("NFD", text)
        plain = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
        plain = plain.lower() if self.lowercase else plain
        at = 0 if len(plain) == len(text) else -1
        for piece in map(_bare, self.tokens_of(ids)):
            place = plain.find(piece, at) if at >= 0 else -1
            at = place + len(piece) if place >= 0 else -1
        return at >= 0

    def save(self, folder: Path) -> None:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json. Transformers' AutoTokenizer loads the folder as
        BERT's.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
        ordered = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ordered), encoding="utf-8")
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS, strict=True))
        config = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            "model_max_length": 512,
            **names,
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


def _without_specials(tokenizer: Tokenizer) -> tuple[Tokenizer, dict[str, Any]]:
    """Return the tokenizer without special tokens, truncation and padding, and its description as JSON."""
    setup = json.loads(tokenizer.to_str())
    setup.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return Tokenizer.from_str(json.dumps(setup)), setup


def _bare(piece: str) -> str:
    return piece.removeprefix("##")


def load(folder: Path) -> WordPiece:
    """Return the tokenizer of a folder with tokenizer.json or BERT's vocab.txt, or of a blocks artifact.

    Raises:
        InputError: there is no tokenizer, it is not WordPiece, or it lacks [PAD], [UNK], [CLS], [SEP] or [MASK].
    """
    folder = folder / "tokenizer" if (folder / "tokenizer").is_dir() else folder
    try:
        if (folder / "tokenizer.json").is_file():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        elif (folder / "vocab.txt").is_file():
            tokenizer = bert_tokenizer(
                models.WordPiece(_vocabulary(folder / "vocab.txt"), unk_token="[UNK]"), _lowercase(folder)
            )
        else:
            raise InputError(
                f"{folder} holds no tokenizer: neither tokenizer.json nor vocab.txt. Name a BERT folder, or "
                f"train one (train:30522)."
            )
    except InputError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise as_realmctl_error(error, folder) or InputError(
            f"{folder}: its tokenizer cannot be read ({error}). Get the folder again."
        ) from None
    if not isinstance(tokenizer.model, models.WordPiece):
        kind = type(tokenizer.model).__name__
        raise InputError(
            f"{folder}: a {kind} tokenizer, but REALM needs BERT's WordPiece. Name a BERT folder, or "
            f"train one (train:30522)."
        )
    return WordPiece(tokenizer, str(folder))


def _vocabulary(path: Path) -> dict[str, int]:
    tokens = path.read_text(encoding="utf-8").split("\n")
    return {token.removesuffix("\r"): number for number, token in enumerate(tokens) if token.strip()}


def _lowercase(folder: Path) -> bool:
    config = folder / "tokenizer_config.json"
    return bool(json.loads(config.read_text()).get("do_lower_case", True)) if config.is_file() else True


def bert_tokenizer(model: models.WordPiece, lowercase: bool) -> Tokenizer:
    """Return a tokenizer with BERT's normalizer, pre-tokenizer and special tokens around a WordPiece model."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    known = [token for token in SPECIALS if tokenizer.token_to_id(token) is not None]
    tokenizer.add_special_tokens(known)
    if {"[CLS]", "[SEP]"} <= set(known):
        _frame(tokenizer)
    return tokenizer


def _frame(tokenizer: Tokenizer) -> None:
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))

"""BERT WordPiece: load, train and save tokenizers, and encode a corpus faster than the library does.

Tokenization is Hugging Face `tokenizers`'. The fast path rests on one fact about BERT's normalizer and pre-tokenizer:
nothing reaches across a space. So each chunk between two spaces is encoded once and remembered. Chunks of plain ASCII
are cut by WordPiece's greedy rule right here; anything else goes to the library. Ids are the library's, always.

Corpus text holds no special tokens: a literal "[SEP]" in it is three ordinary wordpieces.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from realmctl.errors import InputError

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CACHED = 2**20
MAX_WORD_CHARS = 100
ALPHABET = 1000
SIMPLE = re.compile(r"[ -~–—‘’“”…]*+")  # text in which BERT's normalizer changes nothing but the case
SIMPLE_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~–—‘’“”…]")
Encoding = tuple[NDArray[np.int32], NDArray[np.int32]]


class WordPiece:
    """A BERT tokenizer with the corpus fast path. `dtype` is what its ids are stored in: uint16 below 65,536 entries."""

    def __init__(self, tokenizer: Tokenizer, where: str = "tokenizer") -> None:
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        if missing := [token for token in SPECIALS if token not in vocabulary]:
            raise InputError(
                f"{where}: its vocabulary has no {', '.join(missing)}, which REALM needs. Use a BERT tokenizer, or train one (train:30522)."
            )
        self.tokenizer = tokenizer
        self.vocabulary: dict[str, int] = vocabulary
        self.pad, self.unk, self.cls, self.sep, self.mask = (vocabulary[token] for token in SPECIALS)
        self.dtype = np.dtype(np.uint16 if max(vocabulary.values()) < 2**16 else np.uint32)
        self._plain, setup = _without_specials(tokenizer)
        self._words = _Words(setup, self.dtype) if _is_berts(setup) else None
        self._chunks = _Chunks(self._plain, self._words, self.dtype)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def ids(self, text: str) -> NDArray[Any]:
        """Wordpiece ids of `text`, no specials added or recognised; `self.dtype` [n]."""
        return np.frombuffer(self.packed(text), self.dtype)

    def packed(self, text: str) -> bytes:
        """The same ids as bytes of `self.dtype`: what goes to a file as it is."""
        return b"".join(map(self._chunks.__getitem__, text.split(" ")))

    def forget(self) -> None:
        """Empty the caches of the fast path."""
        self._chunks.clear()
        if self._words is not None:
            self._words.clear()

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """(ids int32 [n], character offsets int32 [n, 2]) of every text, no specials added or recognised."""
        found = self._plain.encode_batch(list(texts), add_special_tokens=False)
        return [(np.array(e.ids, np.int32), np.array(e.offsets, np.int32).reshape(-1, 2)) for e in found]

    def words(self, text: str) -> list[tuple[int, int]]:
        """(start, wordpieces) of each word of `text` as the pre-tokenizer finds them."""
        encoding = self._plain.encode(text, add_special_tokens=False)
        found, last = list[tuple[int, int]](), None
        for word, (start, _) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if found and word == last:
                found[-1] = (found[-1][0], found[-1][1] + 1)
            else:
                found.append((start, 1))
            last = word
        return found

    def save(self, folder: Path) -> None:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json: transformers' AutoTokenizer takes the folder for BERT's."""
        folder.mkdir(parents=True, exist_ok=True)
        content = json.loads(self.tokenizer.to_str())
        (folder / "tokenizer.json").write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
        ordered = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ordered), encoding="utf-8")
        lowercase = bool((content.get("normalizer") or {}).get("lowercase", True))
        names = dict(
            zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS, strict=True)
        )
        config = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": lowercase,
            "model_max_length": 512,
            **names,
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


class _Remembered(dict[str, bytes]):
    """String -> ids as bytes: worked out when first asked for, all forgotten when there are too many."""

    def work_out(self, key: str) -> bytes:
        raise NotImplementedError

    def __missing__(self, key: str) -> bytes:
        packed = self.work_out(key)
        if len(key) <= MAX_WORD_CHARS:
            if len(self) >= CACHED:
                self.clear()
            self[key] = packed
        return packed


class _Chunks(_Remembered):
    """What stands between two spaces, as the library cuts it."""

    def __init__(self, library: Tokenizer, words: _Words | None, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._library, self._words, self._dtype = library, words, dtype
        self._lowercase = words is not None and words.lowercase

    def work_out(self, chunk: str) -> bytes:
        if self._words is not None:
            if chunk.isascii() and chunk.isalnum():
                return self._words[chunk.lower() if self._lowercase else chunk]
            if SIMPLE.fullmatch(chunk):
                return b"".join(
                    map(
                        self._words.__getitem__,
                        SIMPLE_WORD.findall(chunk.lower() if self._lowercase else chunk),
                    )
                )
        return np.array(self._library.encode(chunk, add_special_tokens=False).ids, self._dtype).tobytes()


def _is_berts(setup: dict[str, Any]) -> bool:
    """Whether BERT's own normalizer, pre-tokenizer and greedy rule are at work, so that their sense for ASCII is known."""
    model = setup["model"]
    greedy = (model["type"], model["continuing_subword_prefix"], model["max_input_chars_per_word"])
    return (
        (setup["normalizer"] or {}).get("type") == "BertNormalizer"
        and setup["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and greedy == ("WordPiece", "##", MAX_WORD_CHARS)
    )


class _Words(_Remembered):
    """WordPiece's longest-match-first rule for one word of ASCII letters and digits, or one punctuation mark."""

    def __init__(self, setup: dict[str, Any], dtype: np.dtype[Any]) -> None:
        super().__init__()
        vocabulary = setup["model"]["vocab"]
        self._pieces = {
            piece: number.to_bytes(dtype.itemsize, sys.byteorder) for piece, number in vocabulary.items()
        }
        self._unknown = self._pieces[setup["model"]["unk_token"]]
        self._longest = max(map(len, vocabulary))
        self.lowercase: bool = setup["normalizer"]["lowercase"]

    def work_out(self, word: str) -> bytes:
        found, start, prefix, pieces = b"", 0, "", self._pieces
        if len(word) > MAX_WORD_CHARS:
            return self._unknown
        while start < len(word):
            end = min(len(word), start + self._longest)
            while (piece := pieces.get(prefix + word[start:end])) is None:
                end -= 1
                if end == start:
                    return self._unknown
            found += piece
            start, prefix = end, "##"
        return found


def _without_specials(tokenizer: Tokenizer) -> tuple[Tokenizer, dict[str, Any]]:
    """The same tokenizer, blind to special tokens in its input; it adds, cuts and pads nothing. And its setup."""
    setup = json.loads(tokenizer.to_str())
    setup.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return Tokenizer.from_str(json.dumps(setup)), setup


def load(folder: Path) -> WordPiece:
    """The tokenizer of a folder: tokenizer.json, or a BERT vocab.txt; a blocks artifact's own `tokenizer/` too.

    Raises InputError when there is none, when it is not WordPiece, or when [PAD], [UNK], [CLS], [SEP] or [MASK] is missing.
    """
    folder = folder / "tokenizer" if (folder / "tokenizer").is_dir() else folder
    try:
        if (folder / "tokenizer.json").is_file():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        elif (folder / "vocab.txt").is_file():
            tokenizer = _bert(
                models.WordPiece(_vocabulary(folder / "vocab.txt"), unk_token="[UNK]"), _lowercase(folder)
            )
        else:
            raise InputError(
                f"{folder} holds no tokenizer: neither tokenizer.json nor vocab.txt. Name a BERT folder, or train one (train:30522)."
            )
    except InputError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise InputError(f"{folder}: its tokenizer cannot be read ({error}). Get the folder again.") from None
    if not isinstance(tokenizer.model, models.WordPiece):
        kind = type(tokenizer.model).__name__
        raise InputError(
            f"{folder}: a {kind} tokenizer, where REALM needs BERT's WordPiece. Name a BERT folder, or train one (train:30522)."
        )
    return WordPiece(tokenizer, str(folder))


def _vocabulary(path: Path) -> dict[str, int]:
    tokens = path.read_text(encoding="utf-8").split("\n")
    return {token.removesuffix("\r"): number for number, token in enumerate(tokens) if token.strip()}


def _lowercase(folder: Path) -> bool:
    config = folder / "tokenizer_config.json"
    return bool(json.loads(config.read_text()).get("do_lower_case", True)) if config.is_file() else True


def _bert(model: models.WordPiece, lowercase: bool) -> Tokenizer:
    """BERT's normalizer, pre-tokenizer and specials around a WordPiece model."""
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
    cls, sep = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", sep), ("[CLS]", cls))


def train(texts: Iterable[str], size: int, lowercase: bool = True) -> WordPiece:
    """A BERT WordPiece tokenizer of at most `size` entries, learnt from `texts`; [PAD] is 0. Same texts, same tokenizer.

    The library's trainer numbers characters in the order of a hash map and breaks ties by number, so two runs differ.
    Given every character beforehand, with and without "##", it has nothing left to number. The texts are spooled to a
    temporary file, because the characters must be known before training starts.
    """
    tokenizer = _bert(models.WordPiece({}, unk_token="[UNK]"), lowercase)
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool:
        letters = _alphabet(tokenizer, texts, spool)
        inside = ["##" + letter for letter in letters if _joins(tokenizer, letter)]
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            special_tokens=[*SPECIALS, *inside],
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            min_frequency=2,
            show_progress=False,
        )
        spool.seek(0)
        tokenizer.train_from_iterator(spool, trainer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    return WordPiece(
        _bert(models.WordPiece(vocabulary, unk_token="[UNK]"), lowercase), "the trained tokenizer"
    )


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str], spool: IO[str]) -> list[str]:
    """The characters worth an entry, most frequent first, at most ALPHABET of them; the texts go to `spool`."""
    counts: Counter[str] = Counter()
    for text in texts:
        spool.write(text + "\n")
        counts.update(tokenizer.normalizer.normalize_str(text))
    ranked = sorted((char for char in counts if not char.isspace()), key=lambda char: (-counts[char], char))
    return sorted(ranked[:ALPHABET])


def _joins(tokenizer: Tokenizer, char: str) -> bool:
    """Whether a character can stand inside a word: neither punctuation nor an ideograph."""
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str("a" + char))) == 1

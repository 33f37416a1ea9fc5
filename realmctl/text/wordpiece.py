"""BERT WordPiece: load, train and save tokenizers, and encode a corpus faster than the library does.

Tokenization is Hugging Face `tokenizers`'. The fast path rests on one fact about BERT's normalizer and pre-tokenizer:
nothing reaches across a space. So each chunk between two spaces is encoded once and remembered. Chunks of plain ASCII
are cut by WordPiece's greedy rule right here; anything else goes to the library. Ids are the library's, always.

Corpus text holds no special tokens: a literal "[SEP]" in it is three ordinary wordpieces.
"""

from __future__ import annotations

import json
import re
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
CACHE_CHUNKS = 2**20
MAX_WORD_CHARS = 100
ALPHABET = 1000
ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
PLAIN = re.compile(r"[!-~]*")
Encoding = tuple[NDArray[np.int32], NDArray[np.int32]]


class WordPiece:
    """A BERT tokenizer with the corpus fast path. `dtype` is what its ids are stored in: uint16 below 65,536 entries."""

    def __init__(self, tokenizer: Tokenizer, where: str = "tokenizer") -> None:
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        if missing := [token for token in SPECIALS if token not in vocabulary]:
            raise InputError(f"{where}: its vocabulary has no {', '.join(missing)}, which REALM needs. Use a BERT tokenizer, or train one (train:30522).")
        self.tokenizer = tokenizer
        self.vocabulary: dict[str, int] = vocabulary
        self.pad, self.unk, self.cls, self.sep, self.mask = (vocabulary[token] for token in SPECIALS)
        self.dtype = np.dtype(np.uint16 if max(vocabulary.values()) < 2**16 else np.uint32)
        self._plain = _without_specials(tokenizer)
        self._chunks = _ChunkIds(self)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def ids(self, text: str) -> NDArray[Any]:
        """Wordpiece ids of `text`, no specials added or recognised; `self.dtype` [n]."""
        return np.frombuffer(self.packed(text), self.dtype)

    def packed(self, text: str) -> bytes:
        """The same ids as bytes of `self.dtype`: what goes to a file as it is."""
        return b"".join(map(self._chunks.__getitem__, text.split(" ")))

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """(ids int32 [n], character offsets int32 [n, 2]) of every text, no specials added or recognised."""
        found = self._plain.encode_batch(list(texts), add_special_tokens=False)
        return [(np.array(e.ids, np.int32), np.array(e.offsets, np.int32).reshape(-1, 2)) for e in found]

    def words(self, text: str) -> list[tuple[int, int]]:
        """Character spans of the words that WordPiece cuts up, as the pre-tokenizer finds them."""
        encoding = self._plain.encode(text, add_special_tokens=False)
        spans: list[tuple[int, int]] = []
        last = None
        for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
            if word == last and spans:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
            last = word
        return spans

    def save(self, folder: Path) -> None:
        """Write tokenizer.json, vocab.txt and tokenizer_config.json: transformers' AutoTokenizer takes the folder for BERT's."""
        folder.mkdir(parents=True, exist_ok=True)
        content = json.loads(self.tokenizer.to_str())
        (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        ordered = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ordered), encoding="utf-8")
        lowercase = bool((content.get("normalizer") or {}).get("lowercase", True))
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIALS, strict=True))
        config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "model_max_length": 512, **names}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")


class _ChunkIds(dict[str, bytes]):
    """What stands between two spaces -> its ids as bytes; resolved when first asked for, forgotten when there are too many."""

    def __init__(self, wordpiece: WordPiece) -> None:
        super().__init__({"": b""})
        self._dtype = wordpiece.dtype
        self._library = wordpiece._plain
        self._greedy = _Greedy.of(wordpiece)

    def __missing__(self, chunk: str) -> bytes:
        if len(self) > CACHE_CHUNKS:
            self.clear()
            self[""] = b""
        if self._greedy and PLAIN.fullmatch(chunk):
            ids = self._greedy.ids(chunk)
        else:
            ids = self._library.encode(chunk, add_special_tokens=False).ids
        packed = np.array(ids, self._dtype).tobytes()
        if len(chunk) <= MAX_WORD_CHARS:
            self[chunk] = packed
        return packed


class _Greedy:
    """WordPiece's longest-match-first rule for printable ASCII, where BERT's normalizer does nothing but lower the case."""

    def __init__(self, vocabulary: dict[str, int], unk: int, lowercase: bool) -> None:
        self._vocabulary, self._unk, self._lowercase = vocabulary, unk, lowercase
        self._known: dict[str, list[int]] = {}

    @classmethod
    def of(cls, wordpiece: WordPiece) -> _Greedy | None:
        """For a tokenizer set up exactly as BERT's; None for any other, which the library then handles alone."""
        setup = json.loads(wordpiece.tokenizer.to_str())
        normalizer, model = setup["normalizer"] or {}, setup["model"]
        usual = (
            normalizer.get("type") == "BertNormalizer"
            and setup["pre_tokenizer"] == {"type": "BertPreTokenizer"}
            and (model["type"], model["continuing_subword_prefix"], model["max_input_chars_per_word"]) == ("WordPiece", "##", MAX_WORD_CHARS)
        )
        return cls(model["vocab"], model["vocab"][model["unk_token"]], normalizer["lowercase"]) if usual else None

    def ids(self, chunk: str) -> list[int]:
        """Ids of a chunk of printable ASCII without spaces."""
        if self._lowercase:
            chunk = chunk.lower()
        known, found = self._known, list[int]()
        for word in ASCII_WORD.findall(chunk):
            if word not in known:
                if len(known) > CACHE_CHUNKS:
                    known.clear()
                known[word] = self._pieces(word)
            found += known[word]
        return found

    def _pieces(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_CHARS:
            return [self._unk]
        pieces, start, prefix = list[int](), 0, ""
        while start < len(word):
            end = len(word)
            while (piece := self._vocabulary.get(prefix + word[start:end])) is None:
                end -= 1
                if end == start:
                    return [self._unk]
            pieces.append(piece)
            start, prefix = end, "##"
        return pieces


def _without_specials(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer, blind to special tokens in its input; it adds, cuts and pads nothing."""
    setup = json.loads(tokenizer.to_str())
    setup.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
    return Tokenizer.from_str(json.dumps(setup))


def load(folder: Path) -> WordPiece:
    """The tokenizer of a folder: tokenizer.json, or a BERT vocab.txt; a blocks artifact's own `tokenizer/` too.

    Raises InputError when there is none, when it is not WordPiece, or when [PAD], [UNK], [CLS], [SEP] or [MASK] is missing.
    """
    folder = folder / "tokenizer" if (folder / "tokenizer").is_dir() else folder
    try:
        if (folder / "tokenizer.json").is_file():
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        elif (folder / "vocab.txt").is_file():
            tokenizer = _bert(models.WordPiece(_vocabulary(folder / "vocab.txt"), unk_token="[UNK]"), _lowercase(folder))
        else:
            raise InputError(f"{folder} holds no tokenizer: neither tokenizer.json nor vocab.txt. Name a BERT folder, or train one (train:30522).")
    except InputError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise InputError(f"{folder}: its tokenizer cannot be read ({error}). Get the folder again.") from None
    if not isinstance(tokenizer.model, models.WordPiece):
        kind = type(tokenizer.model).__name__
        raise InputError(f"{folder}: a {kind} tokenizer, where REALM needs BERT's WordPiece. Name a BERT folder, or train one (train:30522).")
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
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase)
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
            vocab_size=size, special_tokens=[*SPECIALS, *inside], initial_alphabet=letters, limit_alphabet=len(letters), min_frequency=2, show_progress=False
        )
        spool.seek(0)
        tokenizer.train_from_iterator(spool, trainer)
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    return WordPiece(_bert(models.WordPiece(vocabulary, unk_token="[UNK]"), lowercase), "the trained tokenizer")


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

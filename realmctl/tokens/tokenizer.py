"""The tokenizers of encoders: WordPiece, byte-level BPE and Unigram; load, save, and encode a corpus faster than the library does.

Hugging Face `tokenizers` defines the ids. For BERT's WordPiece each word between two spaces is encoded once and remembered
(wordpiece_cache.py), because BERT's normalizer and pre-tokenizer look at nothing across a space. Other tokenizers have no such
cache. The project calls the tokens of every tokenizer wordpieces.

Corpus text contains no special tokens: a literal "[SEP]" or "</s>" in it is ordinary text. Tokens that were added to a
vocabulary and are not special are tokens.

Some tokenizers give a word at the beginning of a text other ids than the same word after a blank: byte-level ones, and those of
SentencePiece that put no blank before a text, such as Gemma's. Texts are encoded here as after a blank, so that they can be put
together; `at_start` gives the ids at the beginning of an input.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding as LibraryEncoding
from tokenizers import Tokenizer as LibraryTokenizer
from tokenizers import models

from realmctl.errors import InputError
from realmctl.tokens.frame import AROUND_ONE, Frame, frame_of
from realmctl.tokens.library_file import readable
from realmctl.tokens.scripts import WITHOUT_BLANKS
from realmctl.tokens.text_pieces import BERT_BORDER, WORD_BORDER, pieces
from realmctl.tokens.tokenizer_folder import NO_FRAME, ROLES, SPECIALS, read_tokenizer
from realmctl.tokens.wordpiece_cache import GreedyRule, PackedWords, PlacedWords, is_bert_pipeline

Encoding = tuple[NDArray[np.int32], NDArray[np.int32]]
NO_TOKEN = -1
"""The id of a special token that a vocabulary does not have."""
KINDS = (models.WordPiece, models.BPE, models.Unigram)
BYTE_LEVEL = "ByteLevel"
BLANK, BYTE_BLANK = "\u2581", "\u0120"
"""How SentencePiece and byte-level BPE write the blank before a word."""
PREPEND = {"type": "Prepend", "prepend": BLANK}
"""The normalizer of Llama 2 and its kin. It puts a blank before every text, also before one that begins with a blank."""
BYTE = re.compile("<0x([0-9A-F]{2})>")
"""A piece of SentencePiece that is a byte of a character without a piece of its own."""
LONGEST_START = 32
"""Most wordpieces of a first word that is remembered. In a script without blanks a whole text is one."""
SCRIPTS_WITHOUT_BLANKS = re.compile(f"[{WITHOUT_BLANKS}]")


class Tokenizer:
    """A tokenizer with a fast path for corpora. `dtype` is the type of stored ids: uint16 below 65,536 entries.

    Args:
        tokenizer: a tokenizer of WordPiece, BPE or Unigram. It is changed: it no longer cuts or pads.
        where: what errors call it.
        names: its special tokens [PAD], [UNK], [CLS], [SEP], [MASK] by their own names. Those of the frame go before.

    Attributes:
        frame: the special tokens around the texts of an input.
        specials: the ids that never stand for text.
        unk, cls, sep, mask: ids; NO_TOKEN for one that the vocabulary does not have.

    Raises:
        InputError: a special token is missing of a tokenizer that puts none around a text by itself, or it puts others around a text than a frame has.
    """

    def __init__(self, tokenizer: LibraryTokenizer, where: str = "tokenizer", names: Sequence[str] = SPECIALS) -> None:
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        missing = [token for token in names if token not in vocabulary]
        if missing and (tokenizer.post_processor is None or not vocabulary):
            raise InputError(
                f"{where}: the vocabulary has no {', '.join(missing)}, but REALM needs it. Use the "
                f"tokenizer of an encoder with a masked-language-model head, or train one (train:30522)."
            )
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.vocabulary: dict[str, int] = vocabulary
        setup = json.loads(tokenizer.to_str())
        added = setup.pop("added_tokens")
        pad, self.unk, cls, sep, self.mask = (vocabulary.get(token, NO_TOKEN) for token in names)
        special = {cls, sep, *(token["id"] for token in added if token["special"])}
        self.frame = self._frame(where, names, special)
        self.cls, self.sep = ((*ids, NO_TOKEN)[0] for ids in (self.frame.before, self.frame.after))
        self.pad = next((each for each in (pad, self.sep, self.cls) if each != NO_TOKEN), 0)
        roles = self.pad, self.unk, self.cls, self.sep, self.mask
        self.names = tuple("" if each == NO_TOKEN else str(tokenizer.id_to_token(each)) for each in roles)
        known = dict.fromkeys(each for each in [*roles, *sorted(special)] if each != NO_TOKEN)
        self.specials = list(known)
        self.rows = max(vocabulary.values()) + 1
        self.dtype = np.dtype(np.uint16 if self.rows <= 2**16 else np.uint32)
        self.itemsize = self.dtype.itemsize
        has_tokens = not all(token["special"] for token in added)
        self._plain = _without_specials(tokenizer, setup, has_tokens)
        self._prepends = _normalizers(setup["normalizer"])[:1] == [PREPEND]
        self._setup = setup
        self._added = [token for token in added if not token["special"]]
        self._byte_level = BYTE_LEVEL in _types(setup["pre_tokenizer"])
        normalizer = tokenizer.normalizer
        self.lowercase = bool(normalizer) and normalizer.normalize_str("A") == "a"
        self._bert = is_bert_pipeline(setup) and not self._added
        self._border = BERT_BORDER if self._bert else WORD_BORDER
        self._cache = PackedWords(self._plain, GreedyRule(setup, self.dtype), self.dtype) if self._bert else None
        self._placed = PlacedWords(self._plain) if self._bert else None
        self._after_blank = self._ids_of("a") != self._ids_of(" a")
        self._blank = BYTE_BLANK if self._byte_level else BLANK
        if self._after_blank and not str(tokenizer.id_to_token(self._ids_of(" a")[0])).startswith(self._blank):
            raise InputError(
                f"{where}: it gives a word at the beginning of a text other tokens than after a blank, and does not write the blank into "
                "them as byte-level BPE and SentencePiece do. Use another tokenizer."
            )
        self._starts: dict[tuple[str, tuple[int, ...]], tuple[int, ...]] = {}

    @classmethod
    def load(cls, folder: Path, framed: bool = True) -> Tokenizer:
        """Return the tokenizer of a folder with tokenizer.json or BERT's vocab.txt, or of a blocks artifact.

        framed: whether special tokens stand around a text, as the tokenizer says.

        Raises:
            InputError: there is no tokenizer, it is none that `read_tokenizer` reads, or it lacks what realmctl needs.
        """
        folder = folder / "tokenizer" if (folder / "tokenizer").is_dir() else folder
        tokenizer, names = read_tokenizer(folder)
        if not isinstance(tokenizer.model, KINDS):
            kind = type(tokenizer.model).__name__
            raise InputError(
                f"{folder}: a {kind} tokenizer, but REALM needs WordPiece, BPE or Unigram. Name the folder of an encoder, or "
                f"train one (train:30522)."
            )
        if not framed:
            tokenizer.post_processor = NO_FRAME
        with readable(folder):
            return cls(tokenizer, str(folder), names)

    def _frame(self, where: str, names: Sequence[str], special: Collection[int]) -> Frame:
        """Return the frame that the tokenizer puts around texts, whatever its folder calls the first token and the last."""
        framed = self.tokenizer.post_processor is not None
        if not framed and tuple(names[2:4]) == SPECIALS[2:4]:
            return Frame.bert(self.vocabulary[names[2]], self.vocabulary[names[3]])
        frame = frame_of(self.tokenizer) if framed else None
        if frame is None or not {*frame.before, *frame.after} <= {*special}:
            raise InputError(
                f"{where}: it does not put one special token such as {names[2]} before a text and one such as {names[3]} behind it, or none, so "
                "inputs cannot be laid out. Use the tokenizer of an encoder."
            )
        return frame

    def require_masks(self, where: object) -> None:
        """Raise InputError unless the vocabulary has a mask, and a frame of two texts, which masked language models read."""
        if self.mask == NO_TOKEN or not self.frame.between or self.frame.around_one != AROUND_ONE:
            raise InputError(
                f"{where}: its tokenizer is of a retriever alone: it has no mask, or no special tokens around two texts, and a masked language "
                "model reads both. Use the blocks of a BERT's tokenizer, or a language model that reads (pretrain --target continuation --reader-lm)."
            )

    def _ids_of(self, text: str) -> list[int]:
        found: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return found

    def __len__(self) -> int:
        return len(self.vocabulary)

    @cached_property
    def continues(self) -> NDArray[np.bool_]:
        """Whether each wordpiece continues a word, bool [V].

        BERT marks such a wordpiece by "##". Others mark the wordpiece that begins a word by a blank. There a mark of punctuation, and a
        character of a script without blanks, is a word of its own, as in BERT.
        """
        found = np.zeros(self.rows, dtype=bool)
        found[[number for number, (_, continues) in self._texts.items() if continues]] = True
        return found

    @cached_property
    def ordinary(self) -> NDArray[np.int64]:
        """The ids that stand for text, int64, rising. A random wordpiece is one of these."""
        others = {*self.specials, *(token["id"] for token in self._added)}
        return np.array(sorted(set(self.vocabulary.values()) - others), dtype=np.int64)

    def not_text(self, rows: int) -> NDArray[np.int64]:
        """Return the ids below `rows`, the rows of a model's vocabulary, that do not stand for text: special ones, and those of no token."""
        known = np.zeros(rows, dtype=bool)
        known[[number for number in self.vocabulary.values() if number < rows]] = True
        known[[number for number in self.specials if number < rows]] = False
        return np.flatnonzero(~known)

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides the ids of a text: equal for two tokenizers that give the same."""
        parts = {name: self._setup[name] for name in ("normalizer", "pre_tokenizer", "model")}
        return hashlib.sha256(json.dumps([parts, self._added, self.names], sort_keys=True).encode()).hexdigest()

    @cached_property
    def _texts(self) -> dict[int, tuple[str, bool]]:
        """{id: (text without the mark of its place, whether it continues a word)}; special tokens are left as they are."""
        prefix = self._setup["model"].get("continuing_subword_prefix") or ""
        others = {*self.specials, *(token["id"] for token in self._added)}
        found = {}
        for piece, number in self.vocabulary.items():
            if number in others:
                found[number] = piece, False
            elif isinstance(self.tokenizer.model, models.WordPiece):
                found[number] = (
                    piece.removeprefix(prefix) if prefix else piece,
                    bool(prefix) and piece.startswith(prefix),
                )
            else:
                text = self._text([piece])
                inside = (
                    text[:1].isalnum()
                    or text[:1] in "\ufffd'’"
                    or unicodedata.category(text[:1] or " ").startswith("M")
                )
                alone = SCRIPTS_WITHOUT_BLANKS.match(text)
                found[number] = text.removeprefix(" "), bool(text) and inside and not alone
        return found

    def ids(self, text: str) -> NDArray[Any]:
        """Return the wordpiece ids of `text` as `dtype` [n]. Special tokens are neither added nor recognised."""
        return np.frombuffer(self.packed(text), self.dtype)

    def packed(self, text: str) -> bytes:
        """Return the same ids as bytes, in the form in which they are written to a file."""
        if self._cache is not None:
            return self._cache.packed(text)
        given = (self._given(part, bool(offset))[0] for offset, part in pieces(text, self._border))
        return b"".join(np.array(self._ids_of(part), self.dtype).tobytes() for part in given)

    def clear_cache(self) -> None:
        """Empty the caches of the fast paths, except for words that are one wordpiece."""
        if self._cache is not None and self._placed is not None:
            self._cache.clear_cache()
            self._placed.clear()

    def encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        """Return (ids int32 [n], character offsets int32 [n, 2]) of each text. Special tokens are neither added nor
        recognised.
        """
        if self._placed is not None:
            return [self._placed.encoded(text) for text in texts]
        given = [self._given(text) for text in texts]
        found = self._plain.encode_batch([text for text, _ in given], add_special_tokens=False)
        return [
            (np.array(e.ids, np.int32), np.array(self._offsets(e, text, added), np.int32).reshape(-1, 2))
            for e, text, (_, added) in zip(found, texts, given, strict=True)
        ]

    def tokens(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of each text as a model reads them, int64 [n]. A literal [MASK] or [SEP] is ordinary text."""
        if self._cache is not None:
            return [self.ids(text).astype(np.int64) for text in texts]
        found = self._plain.encode_batch_fast([self._given(text)[0] for text in texts], add_special_tokens=False)
        return [np.array(encoding.ids, np.int64) for encoding in found]

    def at_start(self, ids: Sequence[int] | NDArray[np.integer]) -> Sequence[int] | NDArray[np.integer]:
        """Return ids of this tokenizer as they are at the beginning of an input: the first word without the blank before it."""
        if not self._after_blank or self._prepends or not len(ids):
            return ids
        return self._restarted("", (), ids)

    def behind(
        self, text: str, before: Sequence[int], ids: Sequence[int] | NDArray[np.integer]
    ) -> Sequence[int] | NDArray[np.integer]:
        """Return the ids of a text, and behind it those of another text, with no more between them than stands at the end of the first.

        text: the first text. before: its ids without what it ends in. ids: those of the second text.
        """
        ends_in_blank = text[-1:] == " " and not text[-2:-1].isspace()
        if not len(ids) or ends_in_blank or (self._bert and text[-1:].isspace()):
            return np.concatenate([np.asarray(before, np.int64), np.asarray(ids, np.int64)])
        return self._restarted(text, before, ids)

    def _restarted(
        self, text: str, before: Sequence[int], ids: Sequence[int] | NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the ids of a text whose first word follows `text` without the blank before it. Blanks before a word belong to it. A word
        that its ids do not tell, such as an unknown one, stands behind `before` without its blank, if that is a wordpiece.
        """
        borders = (n for n, number in enumerate(ids) if n and not self._joins_word(int(number)))
        stop = next((n for n in borders if self._text(self._pieces(ids[:n])).strip()), len(ids))
        word = tuple(int(number) for number in ids[:stop])
        start = self._starts.get((text, word))
        if start is None:
            if (first := self._first_word(word)) is not None:
                start = tuple(self._ids_of(f"{self._given(text)[0]}{first}"))
            else:
                begins = len(word) > 1 and self._is_blank(word[0]) and not text[-1:].isspace()
                start = (*before, *word[begins:])
            if len(self._starts) >= 2**16:
                self._starts.clear()
            if len(word) <= LONGEST_START:
                self._starts[text, word] = start
        return np.concatenate([np.array(start, np.int64), np.asarray(ids[stop:], np.int64)])

    def _first_word(self, ids: tuple[int, ...]) -> str | None:
        """Return the word of these ids without the blank before it; None if they do not tell it."""
        if set(ids) & {*self.specials}:
            return None
        is_wordpiece = isinstance(self.tokenizer.model, models.WordPiece)
        text = f" {self.word_of(ids)}" if is_wordpiece else self._text(self._pieces(ids))
        return text[1:] if text[:1] == " " and "\ufffd" not in text and tuple(self._ids_of(text)) == ids else None

    def _is_blank(self, number: int) -> bool:
        return bool(self.tokenizer.id_to_token(int(number)) == self._blank)

    def _joins_word(self, number: int) -> bool:
        """Whether a piece belongs to the word before it: it does not begin a word, and is not special."""
        piece = self.tokenizer.id_to_token(number)
        if piece is None or number in self._marked:
            return False
        if isinstance(self.tokenizer.model, models.WordPiece):
            return bool(self.continues[number])
        return not piece.startswith(self._blank)

    def _pieces(self, ids: Iterable[int]) -> list[str]:
        return [str(self.tokenizer.id_to_token(number)) for number in ids]

    def _text(self, pieces: Iterable[str]) -> str:
        """Return the text of pieces of BPE or Unigram, with the blanks before them. U+FFFD stands for bytes that are no text alone."""
        if self._byte_level:
            return _decoded("".join(pieces))
        matches = [(BYTE.fullmatch(piece), piece.replace(BLANK, " ")) for piece in pieces]
        return b"".join(bytes.fromhex(byte[1]) if byte else text.encode() for byte, text in matches).decode(
            errors="replace"
        )

    @cached_property
    def _marked(self) -> frozenset[int]:
        return frozenset((*self.specials, *(token["id"] for token in self._added)))

    def words(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield (start character, number of wordpieces) of each word in `text`: the wordpieces up to the next that continues none."""
        for offset, part in pieces(text, self._border):
            given, added = self._given(part, bool(offset))
            encoding = self._plain.encode(given, add_special_tokens=False)
            begins = np.flatnonzero(~self.continues[encoding.ids])
            borders = np.unique([0, *begins, len(encoding)]).tolist()
            offsets = self._offsets(encoding, part, added)
            yield from ((offset + offsets[start][0], stop - start) for start, stop in pairwise(borders))

    def joined_words(self, text: str) -> str:
        """Return the words of `text` as the tokenizer sees them, normalised, with one space between them."""
        normalizer, pre_tokenizer = self._plain.normalizer, self._plain.pre_tokenizer
        plain = normalizer.normalize_str(text) if normalizer else text
        if not isinstance(self.tokenizer.model, models.WordPiece):
            return " ".join(plain.split())
        return " ".join(word for word, _ in pre_tokenizer.pre_tokenize_str(plain)) if pre_tokenizer else plain

    def tokens_of(self, ids: Iterable[int]) -> list[str]:
        """Return the wordpieces of `ids` as text, in BERT's notation: one that continues a word begins with `##`."""
        texts = (self._texts.get(int(number), ("", False)) for number in ids)
        return [f"##{text}" if continues else text for text, continues in texts]

    def word_of(self, ids: Iterable[int]) -> str:
        """Return the word of which these are the wordpieces. Special and added tokens are left out."""
        known = [int(number) for number in ids if int(number) not in self._marked]
        if isinstance(self.tokenizer.model, models.WordPiece):
            return "".join(self._texts[number][0] for number in known)
        return self._text(self._pieces(known)).strip()  # a piece may hold a part of a letter

    def text_of(self, ids: Iterable[int]) -> str:
        """Return the text that ids of this tokenizer stand for. Special tokens are left out."""
        known = [int(number) for number in ids if int(number) < self.rows]
        text: str = self.tokenizer.decode(known)
        return text if self._bert else text.strip()

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
        for piece in (piece.removeprefix("##") for piece in self.tokens_of(ids)):
            place = plain.find(piece, at) if at >= 0 else -1
            at = place + len(piece) if place >= 0 else -1
        return at >= 0

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and tokenizer_config.json, and vocab.txt for WordPiece. Transformers' AutoTokenizer loads the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(self.tokenizer.to_str(pretty=True), encoding="utf-8")
        config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        if isinstance(self.tokenizer.model, models.WordPiece):
            ordered = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
            (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in ordered), encoding="utf-8")
        if self._bert and self.names == SPECIALS:
            normalizer = self._setup["normalizer"]
            config = {"tokenizer_class": "BertTokenizer", "do_lower_case": self.lowercase, "model_max_length": 512}
            if normalizer["strip_accents"] is not None:
                config["strip_accents"] = normalizer["strip_accents"]
            if not normalizer["handle_chinese_chars"]:
                config["tokenize_chinese_chars"] = False
        elif not self.frame.second_segment:
            config["model_input_names"] = ["input_ids", "attention_mask"]
        config |= {role: name for role, name in zip(ROLES, self.names, strict=True) if name}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")

    def _given(self, text: str, goes_on: bool = False) -> tuple[str, int]:
        """Return the text that is encoded, and the number of characters put before it: a blank, where that decides the ids.

        goes_on: whether the text continues another, so that nothing is put before it.
        """
        blank = self._after_blank and not goes_on and bool(text)
        return (f" {text}", 1) if blank else (text, 0)

    def _offsets(self, encoding: LibraryEncoding, text: str, added: int) -> Sequence[tuple[int, int]]:
        """Return the characters of each token in `text`, without the blanks before them."""
        offsets: list[tuple[int, int]] = encoding.offsets
        return offsets if self._bert else [_trimmed(text, start - added, end - added) for start, end in offsets]


def _without_specials(tokenizer: LibraryTokenizer, stated: Mapping[str, Any], has_tokens: bool) -> LibraryTokenizer:
    """Return a copy to which special tokens are text, and which puts no blank before a text by itself. has_tokens: whether tokens were added that are not special.

    A Unigram model holds its special tokens as pieces, and would find them in a text. Their ids stay theirs, under names that no
    text has. Other models are not copied, which takes longer than all else.
    """
    prepends = _normalizers(stated["normalizer"])[:1] == [PREPEND]
    if not (prepends or has_tokens or stated["model"]["type"] == "Unigram"):
        plain = LibraryTokenizer(tokenizer.model)
        for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
            if (value := getattr(tokenizer, part)) is not None:
                setattr(plain, part, value)
        return plain
    setup = json.loads(tokenizer.to_str())
    if prepends:
        setup["normalizer"] = {"type": "Sequence", "normalizers": _normalizers(setup["normalizer"])[1:]}
    if setup["model"]["type"] == "Unigram":
        setup["post_processor"] = None
        hidden = {token["content"]: f"\ue000{token['content']}" for token in setup["added_tokens"] if token["special"]}
        setup["model"]["vocab"] = [[hidden.get(piece, piece), score] for piece, score in setup["model"]["vocab"]]
        for token in setup["added_tokens"]:
            token["content"] = hidden.get(token["content"], token["content"])
    copied = LibraryTokenizer.from_str(json.dumps(setup))
    copied.encode_special_tokens = True
    return copied


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = max(0, start), max(0, end)
    while start < end and text[start].isspace():
        start += 1
    return start, end


def _normalizers(part: Any) -> list[Any]:
    """Return the steps of a normalizer in order."""
    if not isinstance(part, dict):
        return []
    return [step for each in part["normalizers"] for step in _normalizers(each)] if "normalizers" in part else [part]


def _types(part: Any) -> set[str]:
    """Return the types of a pre-tokenizer and of those inside it."""
    if not isinstance(part, dict):
        return set()
    return {part["type"]}.union(*(_types(each) for each in part.get("pretokenizers", ())))


def _byte_letters() -> dict[str, int]:
    """Return {letter: byte} of byte-level BPE: printable bytes stand for themselves, the others for letters from 256 on
    (github.com/openai/gpt-2, src/encoder.py).
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_LETTERS = _byte_letters()


def _decoded(letters: str) -> str:
    """Return the text of byte-level letters, and of other letters, which an added token may have; U+FFFD stands for bytes that are no text alone."""
    given = (bytes([BYTE_LETTERS[letter]]) if letter in BYTE_LETTERS else letter.encode() for letter in letters)
    return b"".join(given).decode("utf-8", "replace")

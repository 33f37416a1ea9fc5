"""Learn a tokenizer from a corpus, with the trainers of `tokenizers` made deterministic: WordPiece, byte-level BPE or Unigram."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import IO

import numpy as np
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as LibraryTokenizer

from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.text_pieces import BERT_BORDER, pieces
from realmctl.tokens.tokenizer import BLANK, Tokenizer
from realmctl.tokens.tokenizer_folder import ROBERTA_SPECIALS, SPECIALS, bert_tokenizer

ALPHABET = 1000
ROUNDS = 4
COUNTED_CHARS = 2**25
"""Text in which the pieces of a Unigram tokenizer are counted, about."""
LONG_WORD = re.compile(r"[^\W\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{1001,}")
"""More than 1,000 letters and digits without an ideograph, such as base64. BERT never cuts a word of more than 100 characters into wordpieces,
and the trainer reads a whole word again for each wordpiece that it learns from it.
"""


def train(texts: Iterable[str], recipe: TokenizerRecipe) -> Tokenizer:
    """Return a tokenizer learnt from `texts`. The same texts give the same tokenizer. The padding token gets id 0."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n") as spool:
        if recipe.kind == "wordpiece":
            return _wordpiece(texts, recipe, spool)
        tokenizer = _byte_level(recipe) if recipe.kind == "bpe" else _of_words(recipe)
        letters = _alphabet(tokenizer, texts, spool, recipe)
        letters = sorted(pre_tokenizers.ByteLevel.alphabet() if recipe.kind == "bpe" else {*letters, BLANK})
        trainer = trainers.BpeTrainer(
            vocab_size=recipe.size,
            special_tokens=[*ROBERTA_SPECIALS],
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            min_frequency=2,
            show_progress=False,
        )
        spool.seek(0)
        tokenizer.train_from_iterator(spool, trainer)
        if recipe.kind == "unigram":
            tokenizer = _unigram(tokenizer, recipe, spool)
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", ids["</s>"]), ("<s>", ids["<s>"]), add_prefix_space=False
    )
    return Tokenizer(tokenizer, "the trained tokenizer", ROBERTA_SPECIALS)


def _wordpiece(texts: Iterable[str], recipe: TokenizerRecipe, spool: IO[str]) -> Tokenizer:
    """Return BERT's tokenizer.

    The library's trainer numbers characters in the order of a hash map and breaks ties by number, so two runs would
    differ. Here all characters, with and without "##", are given to it in a fixed order. They must be known before the
    training starts, so the texts are copied to a temporary file first.
    """

    def made(vocabulary: dict[str, int]) -> LibraryTokenizer:
        marks = False if recipe.keep_marks else None
        return bert_tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"), recipe.lowercase, marks)

    tokenizer = made({})
    letters = _alphabet(tokenizer, texts, spool, recipe)
    inside = ["##" + letter for letter in letters if _joins(tokenizer, letter)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=recipe.size,
        special_tokens=[*SPECIALS, *inside],
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        min_frequency=2,
        show_progress=False,
    )
    spool.seek(0)
    tokenizer.train_from_iterator(spool, trainer)
    return Tokenizer(made(tokenizer.get_vocab(with_added_tokens=False)), "the trained tokenizer")


def _byte_level(recipe: TokenizerRecipe) -> LibraryTokenizer:
    """Return an untrained tokenizer of RoBERTa's kind. Every text has tokens, so none is <unk>."""
    tokenizer = LibraryTokenizer(models.BPE())
    if recipe.lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _of_words(recipe: TokenizerRecipe, model: models.Model | None = None) -> LibraryTokenizer:
    """Return a tokenizer that writes text as XLM-R's: NFKC, and ▁ for the blank before a word."""
    tokenizer = LibraryTokenizer(model or models.BPE())
    lower = [normalizers.Lowercase()] if recipe.lowercase else []
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), *lower, normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return tokenizer


def _unigram(pieces_of_bpe: LibraryTokenizer, recipe: TokenizerRecipe, spool: IO[str]) -> LibraryTokenizer:
    """Return a Unigram tokenizer with the pieces of a BPE, whose probabilities are counted in a few rounds of hard EM.

    The library's trainer of Unigram adds up floats in the order of a hash map, so that no two runs give the same probabilities.
    """
    pieces_in_order = sorted(pieces_of_bpe.get_vocab().items(), key=lambda item: item[1])
    tokenizer, specials = pieces_of_bpe, len(ROBERTA_SPECIALS)
    for _ in range(ROUNDS):
        counts = np.zeros(len(pieces_in_order), np.int64)
        spool.seek(0)
        read = 0
        for lines in iter(lambda: spool.readlines(2**20), []):
            for encoding in tokenizer.encode_batch(lines, add_special_tokens=False):
                np.add.at(counts, encoding.ids, 1)
            read += sum(map(len, lines))
            if read >= COUNTED_CHARS:
                break
        scores = np.log((counts + 0.5) / (counts.sum() + 0.5 * len(counts)))
        scores[:specials] = 0.0
        vocabulary = [
            (piece, round(float(score), 6)) for (piece, _), score in zip(pieces_in_order, scores, strict=True)
        ]
        tokenizer = _of_words(recipe, models.Unigram(vocabulary, unk_id=ROBERTA_SPECIALS.index("<unk>")))
    tokenizer.add_special_tokens([*ROBERTA_SPECIALS])
    return tokenizer


def _alphabet(tokenizer: LibraryTokenizer, texts: Iterable[str], spool: IO[str], recipe: TokenizerRecipe) -> list[str]:
    """Return the most frequent characters in the order of their codes, and write the texts to `spool`.

    They are ALPHABET, and where marks are kept a third of the tokens if that is more: Chinese has thousands of characters.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        for _, piece in pieces(text, BERT_BORDER):
            spool.write(LONG_WORD.sub(" ", piece) + "\n")
            counts.update(tokenizer.normalizer.normalize_str(piece) if tokenizer.normalizer else piece)
    ranked = sorted((char for char in counts if not char.isspace()), key=lambda char: (-counts[char], char))
    return sorted(ranked[: max(ALPHABET, recipe.size // 3) if recipe.keep_marks else ALPHABET])


def _joins(tokenizer: LibraryTokenizer, char: str) -> bool:
    """Return whether a character can be inside a word: it is neither punctuation nor an ideograph."""
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str("a" + char))) == 1

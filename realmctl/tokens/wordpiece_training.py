"""Learn a WordPiece vocabulary from a corpus, with the trainer of `tokenizers` made deterministic."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import IO

from tokenizers import Tokenizer, models, trainers

from realmctl.tokens.text_pieces import BERT_BORDER, pieces
from realmctl.tokens.tokenizer_folder import SPECIALS, bert_tokenizer
from realmctl.tokens.wordpiece import WordPiece

ALPHABET = 1000
LONG_WORD = re.compile(r"[^\W\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{1001,}")
"""More than 1,000 letters and digits without an ideograph, such as base64. BERT never cuts a word of more than 100 characters into wordpieces,
and the trainer reads a whole word again for each wordpiece that it learns from it.
"""


def train(texts: Iterable[str], size: int, lowercase: bool = True) -> WordPiece:
    """Return a BERT tokenizer of at most `size` wordpieces, learnt from `texts`. The same texts give the same
    tokenizer.

    The library's trainer numbers characters in the order of a hash map and breaks ties by number, so two runs would
    differ. Here all characters, with and without "##", are given to it in a fixed order. They must be known before the
    training starts, so the texts are copied to a temporary file first. [PAD] gets id 0.
    """
    tokenizer = bert_tokenizer(models.WordPiece({}, unk_token="[UNK]"), lowercase)
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
        bert_tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"), lowercase), "the trained tokenizer"
    )


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str], spool: IO[str]) -> list[str]:
    """Return the ALPHABET most frequent characters in the order of their codes, and write the texts to `spool`."""
    counts: Counter[str] = Counter()
    for text in texts:
        for _, piece in pieces(text, BERT_BORDER):
            spool.write(LONG_WORD.sub(" ", piece) + "\n")
            counts.update(tokenizer.normalizer.normalize_str(piece))
    ranked = sorted((char for char in counts if not char.isspace()), key=lambda char: (-counts[char], char))
    return sorted(ranked[:ALPHABET])


def _joins(tokenizer: Tokenizer, char: str) -> bool:
    """Return whether a character can be inside a word: it is neither punctuation nor an ideograph."""
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str("a" + char))) == 1

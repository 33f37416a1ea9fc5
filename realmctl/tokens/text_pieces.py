"""Cut a long text into pieces that a tokenizer can take one after the other with the same result.

The `tokenizers` library keeps about 200 bytes for each character of the text that it encodes, so a document of 15 MB
must not reach it whole. BERT's normalizer and pre-tokenizer (google-research/bert, tokenization.py) look at no
character across a space, and they make a word of their own of every ASCII punctuation mark and every CJK ideograph.
A cut before one of these characters therefore changes no wordpiece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE_CHARS = 2**16
"""A piece ends at the first border after this many characters."""
MAX_PIECE_CHARS = 2**18
"""A piece without a border ends here, inside a word.

Such a word is [UNK] in any case, because it has over 100 characters.
"""

WORD_BORDER = re.compile(r"(?<=\S) (?=\S)")
"""The border for any tokenizer: one blank between words, since tokenizers may have tokens for several."""
BERT_BORDER = re.compile("[ \t\n\r!-/:-@\\[-`{-~\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002b81f]")
"""The borders for BERT's pre-tokenizer: white space, ASCII punctuation, CJK ideographs."""


def pieces(text: str, border: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield (offset in `text`, piece) in order. A text of at most PIECE_CHARS characters is one piece."""
    start = 0
    while len(text) - start > PIECE_CHARS:
        longest = min(start + MAX_PIECE_CHARS, len(text))
        found = border.search(text, start + PIECE_CHARS, longest)
        stop = found.start() if found else longest
        yield start, text[start:stop]
        start = stop
    if start < len(text):
        yield start, text[start:]

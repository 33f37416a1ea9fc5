"""The text of an answer as the official code makes it, for `eval-em --official answer-text`.

The official code (google-research/language, orqa/models/orqa_model.py and orqa/utils/bert_utils.py) finds the words that
the predicted wordpieces belong to, joins these words with spaces, and aligns the wordpieces with the result by BERT's
SQuAD heuristic. A wordpiece that continues a word never aligns, and the whole words are the answer then.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from realmctl.tokens.tokenizer import Tokenizer

_INVISIBLE = regex.compile(r"[\p{Cc}\p{Cf}]")
_SINGLE = (
    r"[!-/:-@\[-`{-~\p{P}\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    r"\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)
_WORD = regex.compile(rf"{_SINGLE}|(?:(?!{_SINGLE})[^ \t\n\f\r])+")
"""A punctuation mark or an ideograph, or a run of other characters without ASCII white space (TF-text's BertTokenizer)."""


def official_answer_text(text: str, start: int, end: int, pieces: Sequence[str], wordpiece: Tokenizer) -> str:
    """Return the official text of an answer.

    Args:
        text: the block.
        start, end: the characters of the answer in `text`.
        pieces: the wordpieces of the answer, a continuation with its `##`.
        wordpiece: their tokenizer.
    """
    visible = _INVISIBLE.sub(" ", text)
    words = [match[0] for match in _WORD.finditer(visible) if match.start() < end and match.end() > start]
    return aligned(" ".join(pieces), " ".join(words), wordpiece)


def aligned(predicted: str, original: str, wordpiece: Tokenizer) -> str:
    """Return the part of `original` that `predicted` was normalised from, or all of it where the two do not align.

    They align if the tokenizer's words of `original`, joined with spaces, contain `predicted`, and have as many
    characters without the spaces as `original` has.
    """
    plain = wordpiece.joined_words(original)
    at = plain.find(predicted)
    places = [place for place, char in enumerate(original) if char != " "]
    if at < 0 or not predicted or len(places) != _visible(plain):
        return original
    first = _visible(plain[:at])
    return original[places[first] : places[first + _visible(predicted) - 1] + 1]


def _visible(text: str) -> int:
    return len(text) - text.count(" ")

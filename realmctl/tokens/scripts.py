"""Scripts whose words are not told apart by blanks, as sets of characters for `re` and `regex` alike, and letters without capitals."""

from __future__ import annotations

import re

WITHOUT_BLANKS = (
    "\u0e00-\u0e4f\u0e80-\u0eff\u1000-\u103f\u1780-\u17d3\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002fa1f\U00030000-\U000323af"
)
"""Thai, Lao, Burmese, Khmer, kana and ideographs, which are written without blanks between words."""
JOINED = "\u1100-\u11ff\uac00-\ud7af" + WITHOUT_BLANKS
"""The same and Hangul, whose words carry their particles: 서울은 is 서울 with a particle. Hangul in NFD too."""
JOINED_LETTER = re.compile(f"[{JOINED}]")


def is_small(letter: str) -> bool:
    """Return whether a letter is a small one where its script would write a capital at the beginning of a sentence or of a name.

    Georgian letters are small ones to Unicode, which has capitals of them for words in capitals alone.
    """
    return letter.islower() and letter.title() != letter

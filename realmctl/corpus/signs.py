"""Characters that show nothing and that no script needs, such as a soft hyphen in a word: tokenizers of byte-level BPE take them for a part of the word."""

from __future__ import annotations

import re

SHAPED = "\u0590-\u1dff\u20d0-\u2bff\u2e80-\ud7ff\uf900-\U000e01ef"
IDLE_JOINER = re.compile(f"(?<![{SHAPED}])[\u200c\u200d]|\u200c(?![{SHAPED}])")
"""A joiner (ZWNJ, ZWJ) shows nothing except after a letter of a script whose letters join, or after an emoji."""
EMPTY = "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
"""Soft hyphen, spaces without width, marks of direction, operators that are not seen, marks of annotations: of Unicode's category Cf those that are no
part of how a script is written."""
SIGN = re.compile(f"[{EMPTY}\u200c\u200d]")
UNSEEN = re.compile(f"[{EMPTY}]|{IDLE_JOINER.pattern}")

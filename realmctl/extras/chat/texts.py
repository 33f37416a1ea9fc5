"""Texts for and of chat models: blocks that fit into a prompt, and answers without the thoughts before them."""

from __future__ import annotations

import re

THOUGHTS = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)


def without_thoughts(answer: str) -> str:
    """Return an answer without what a reasoning model wrote before it, `<think>…</think>`. Thoughts that do not end leave nothing."""
    found = THOUGHTS.match(answer)
    return answer[found.end() :].strip() if found else answer.strip()


def shortened(text: str, longest: int) -> str:
    """Return the beginning of a text, of at most so many characters, cut between words where it has blanks."""
    if len(text) <= longest:
        return text
    within = text[: longest + 1]
    return within.rpartition(" ")[0].rstrip() or within[:longest]

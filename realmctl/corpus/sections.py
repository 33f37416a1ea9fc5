"""The section in which a block stands: the headings around it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from realmctl.corpus.document import Document, Lead

if TYPE_CHECKING:
    from realmctl.corpus.blocks import Sentence

BETWEEN = " / "
DEEPEST = 8
"""Of leads that stand one in another, so many of the innermost are named."""
LONGEST = 200
"""Characters of a lead in a section. A longer one loses its end there."""


class Sections:
    """The sections of a document's blocks. Each is the headings around all of the block, outermost first, and the term or the names of columns that lead all of
    it and stand in the block before it. What the title says already is left out.

    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._ends = {lead.end for lead in document.leads}
        self._starts = [lead.start for lead in document.leads]
        self._around = list[tuple[Lead, ...]]()  # of each lead: those around it and itself, outermost first
        around: tuple[Lead, ...] = ()
        for lead in document.leads:
            while around and around[-1].until <= lead.start:
                around = around[:-1]
            around = (*around[-DEEPEST + 1 :], lead)
            self._around.append(around)

    def of(self, sentences: Sequence[Sentence]) -> str:
        """The section of a block of these sentences, empty if there is none."""
        if not self._starts or not sentences:
            return ""
        begin, end = sentences[0].start, sentences[-1].end
        text = next((each.start for each in sentences if each.end not in self._ends), begin)  # behind its own leads
        before = bisect_right(self._starts, text)
        around = self._around[before - 1] if before else ()
        named = (lead for lead in around if lead.until >= end and (lead.is_heading or lead.start < begin))
        texts = (self._document.text[lead.start : min(lead.end, lead.start + LONGEST)] for lead in named)
        return BETWEEN.join(each for each in texts if each not in self._document.title)

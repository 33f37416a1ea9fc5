"""Names with a meaning in wikitext: tags, and titles of sections without prose.

Source of the tags: mediawiki.org/wiki/Help:Formatting. The section titles are those that end most articles of the
English Wikipedia.
"""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a list that stands in lines."""
    return frozenset(text.split())


ELEMENTS_WITHOUT_PROSE = words("""
    ref references math chem ce gallery imagemap timeline hiero score graph mapframe maplink source
    syntaxhighlight pre templatedata templatestyles style script inputbox indicator categorytree rt
    includeonly
""")
"""Elements whose content is not prose. <nowiki> is handled separately."""
BLOCK_TAGS = words("""
    p div ul ol dl dd dt blockquote center poem table tr td th caption hr h1 h2 h3 h4 h5 h6
""")
"""Tags that start a new line. INLINE_TAGS are removed without a trace."""
INLINE_TAGS = words("""
    b i u s em strong small big sub sup span font tt code var samp kbd cite abbr dfn del ins strike
    q br wbr nowiki ref references section noinclude onlyinclude includeonly bdi bdo mark ruby rb rp
    data time nobr gallery math source pre
""")
SECTIONS_WITHOUT_PROSE = frozenset(
    """\
references
references and notes
references and sources
references and further reading
notes
notes and references
notes and citations
footnotes
footnotes and references
citations
citations and references
general references
sources
sources and references
sources and further reading
works cited
literature
bibliography
bibliography and further reading
further reading
see also
external link
external links
gallery
image gallery
""".splitlines()
)
"""Titles of sections without prose."""

"""Names with a meaning in wikitext: tags, namespaces, interwiki prefixes, titles of sections without prose.

Sources: mediawiki.org/wiki/Help:Formatting (tags), en.wikipedia.org/wiki/Help:Interwiki_linking (prefixes). The section
titles are those that end most articles of the English Wikipedia.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTS_WITHOUT_PROSE = _words("""
    ref references math chem ce gallery imagemap timeline hiero score graph mapframe maplink source
    syntaxhighlight pre templatedata templatestyles style script inputbox indicator categorytree rt
    includeonly
""")
"""Elements whose content is not prose. <nowiki> is handled separately."""
BLOCK_TAGS = _words("""
    p div ul ol dl dd dt blockquote center poem table tr td th caption hr h1 h2 h3 h4 h5 h6
""")
"""Tags that start a new line. INLINE_TAGS are removed without a trace."""
INLINE_TAGS = _words("""
    b i u s em strong small big sub sup span font tt code var samp kbd cite abbr dfn del ins strike
    q br wbr nowiki ref references section noinclude onlyinclude includeonly bdi bdo mark ruby rb rp
    data time nobr gallery math source pre
""")
MEDIA = _words("file image media category")
"""Namespaces whose links show no words, in English. `dump.media_names` adds the names of the site's language."""
OTHER_PROJECTS = _words("""
    wikt wiktionary s wikisource w wikipedia q wikiquote b wikibooks n wikinews v wikiversity voy
    wikivoyage species wikispecies commons c m meta mw d wikidata bugzilla phab doi hdl rfc arxiv
    special user template wp project help portal talk user_talk module draft book mediawiki mos cat
""")
"""Prefixes of links to other projects and namespaces. The labels stay, but the targets are not articles."""
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

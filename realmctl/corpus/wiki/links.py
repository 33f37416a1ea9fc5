"""Replace the links of wikitext by their labels.

Marks record the positions of the labels while the text is cleaned further.

The rules are those of mediawiki.org/wiki/Help:Links. The text is read once from left to right. A file or category link
is dropped with everything inside it, up to its end or a blank line. Brackets that do not match are dropped; their
content stays.
"""

from __future__ import annotations

import re

from realmctl.corpus.languages import language_codes
from realmctl.corpus.wiki.namespaces import Namespaces, normalized

LINKS = re.compile(
    r"\[\[([^\[\]|\n]*+)(?:\|([^\[\]\n]*+))?+\]\]([a-z]*+)"
    r"|\[\[([^\[\]|\n]{0,255}+\|)?+"
    r"|\]\]"
    r"|\[(?:(?:https?|ftps?|irc|news|gopher|telnet):)?//[^\s\[\]]++[ \t]*+([^\[\]\n]*+)\]"
    r"|\[mailto:[^\s\[\]]++[ \t]*+([^\[\]\n]*+)\]",
)
ADDRESS_AROUND_LINKS = re.compile(r"\[(?:(?:https?|ftps?):)?//[^\s\[\]]++[ \t]++([^\[\]\n]*+)\]")
"""A link to an address in whose label links stood."""
OPEN_ANCHOR, CLOSE_ANCHOR = "\uf8fe", "\uf8ff"
"""The marks around the label of a link. The number of its anchor, in two private-use characters, follows the first."""
HALF, FIRST = 4096, 0xE000


def replace_links(text: str, site: Namespaces) -> tuple[str, list[str]]:
    """Replace each link by OPEN_ANCHOR, its number, its label and CLOSE_ANCHOR. Links to files, categories and other languages
    are dropped.

    Args:
        text: wikitext without templates.
        site: the names of the namespaces.

    Returns:
        The marked text, and the targets: anchor i links to the page titled targets[i].
    """
    out, targets = list[str](), list[str]()
    done, depth, limit = 0, 0, -1
    for match in LINKS.finditer(text):
        start, stop = match.span()
        if depth and start >= limit:
            depth, done = 0, limit
        target = match[1]
        if depth:
            token = text[start : start + 2]
            depth += (token == "[[" and target is None) - (token == "]]")
        else:
            out.append(text[done:start])
            if target is not None:
                out.append(_label(target, match[2], match[3], targets, site))
            elif match[4] and normalized(match[4].partition(":")[0]) in site.hidden:
                depth = 1
                limit = _block_end(text, start, limit)
            else:
                out.append(match[5] or match[6] or "")
        done = stop
    if depth:
        done = max(done, limit)
    out.append(text[done:])
    found = "".join(out)
    return ADDRESS_AROUND_LINKS.sub(r"\1", found) if "//" in found else found, targets


def _block_end(text: str, start: int, known: int) -> int:
    """Return the position of the next blank line after `start`; `known` is the one found last."""
    if known > start:
        return known
    end = text.find("\n\n", start)
    return len(text) if end < 0 else end


def _label(target: str, label: str | None, trail: str, targets: list[str], site: Namespaces) -> str:
    if ":" in target:
        prefix, _, rest = target.partition(":")
        prefix = normalized(prefix)
        if prefix in site.hidden:
            return trail
        if not prefix or prefix in site.elsewhere:
            return (target.lstrip(": ") if label is None else label or rest.rpartition(":")[2]) + trail
        if prefix in language_codes() and rest[:1] != " ":
            return (label or "") + trail
    shown = target if label is None else label or target.partition(" (")[0]
    title = target.partition("#")[0].replace("_", " ") if "#" in target or "_" in target else target
    title, word = title.strip(), shown.strip()
    if not title or not word:
        return shown + trail
    number = len(targets)
    targets.append(title[0].upper() + title[1:])
    marked = f"{OPEN_ANCHOR}{chr(FIRST + number // HALF)}{chr(FIRST + number % HALF)}{word}{trail}{CLOSE_ANCHOR}"
    return marked if len(word) == len(shown) else f" {marked} "

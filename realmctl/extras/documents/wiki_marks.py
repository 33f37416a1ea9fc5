"""Pages of wikis in the marks that pandoc reads: of what their programs show it drops some words, and takes marks for words."""

from __future__ import annotations

import re
from collections.abc import Callable

Put = str | Callable[[re.Match[str]], str]
PICTURE = r"[^{}|]*\.(?:png|jpe?g|gif|svg|webp|bmp|ico)\b[^{}|]*"
PANELS = "info|note|tip|warning|expand|section|column|excerpt|details|center"
"""Macros of Confluence around words."""
PLUGINS = "QUOTE|BOX|DIV|FADE|TABS|SPLIT|PANEL|REMARKSBOX|MOUSEOVER|CENTER|COLORBOX"
"""Plug-ins of TikiWiki around words."""
SIGNS = {"hs": " ", "amp": "&", "bs": "\\", "lt": "<", "gt": ">", "ldq": "“", "rdq": "”", "lsq": "‘", "rsq": "’", "c": "©", "--": "—"}  # fmt: skip
"""Characters by their names in TikiWiki."""


class MarkRules:
    """What is put in the place of the marks of a format, one rule after the other."""

    def __init__(self, kept: str, rules: dict[str, Put], begin: Put = "") -> None:
        """kept: An expression of what no rule changes, such as code. rules: {an expression: what stands for what it finds}. begin: What a kept part gets before it."""
        self.kept = re.compile(f"({kept})", re.DOTALL)
        self.rules = [(re.compile(find, re.MULTILINE), put) for find, put in rules.items()]
        self.begin = re.compile(r"\A[{<]\w+(?P<attributes>[^{}<>]*)"), begin

    def __call__(self, source: str) -> str:
        parts = self.kept.split(source)
        for number in range(0, len(parts), 2):
            for find, put in self.rules:
                parts[number] = find.sub(put, parts[number])
        begins, put = self.begin
        for number in range(1, len(parts), 2):
            if callable(put) and (found := begins.match(parts[number])):
                parts[number] = put(found) + parts[number]
        return "".join(parts)


def _title(found: re.Match[str]) -> str:
    """The title or caption among the attributes of a macro, as a paragraph."""
    title = re.search(r"\b(?:title|caption|label)\s*=>?\s*(\"[^\"]*\"|[^|})\n]*)", found["attributes"] or "")
    words = title[1].strip().strip('"') if title else ""
    return f"\n\n{words}\n\n" if words else "\n"


def _file(found: re.Match[str]) -> str:
    path = found["path"].strip()
    return f"[[{path}|{found['words'] or path.rpartition(':')[2]}]]"


dokuwiki = MarkRules(
    r"<(?:code|file|nowiki|html|HTML|php|PHP)\b.*?</(?:code|file|nowiki|html|HTML|php|PHP)>|%%.*?%%",
    {
        rf"\[\[[^\[\]|\n]*\|\{{\{{{PICTURE}(?:\|[^{{}}\n]*)?\}}\}}\]\]": "",
        rf"\{{\{{(?!{PICTURE})(?!\w+>)(?P<path>[^{{}}|?\n]+)(?:\?[^{{}}|\n]*)?(?:\|(?P<words>[^{{}}\n]*))?\}}\}}": _file,
        r"</?WRAP\b[^<>\n]*>": "\n\n",
        r"</?wrap\b[^<>\n]*>": "",
        r"(?<=\|)[ ]*:::[ ]*(?=\|)": "  ",
    },
)  # fmt: skip
jira = MarkRules(
    r"\{(?:code|noformat)(?:[:|][^{}\n]*)?\}.*?\{(?:code|noformat)\}",
    {
        rf"\{{(?:{PANELS})(?P<attributes>:[^{{}}\n]*)?\}}": _title,
        r"\{status:(?:[^{}\n]*\|)?title=([^{}|\n]*)[^{}\n]*\}": r"\1",
        r"\{(?:toc|children|attachments|status)(?::[^{}\n]*)?\}": "",
        r"\[([^\[\]|\n]+\|[^\[\]|\n]+)\|[^\[\]|\n]+\]": r"[\1]",
    },
    _title,
)
creole = MarkRules(
    r"\{\{\{.*?\}\}\}|\[\[[^\[\]\n]*\]\]|(?<!\w)\w+://\S*",
    {
        r"(?<!<)<<(?!<)/?\w[^<>\n]*>>": "",
        r"(?<![~\w])(__|,,|\^\^)(?=\S)((?:(?!\1)[^\n])+)(?<=\S)\1": r"\2",
        r"(?<!^)(?<![~#])##(?=[^\s#])((?:(?!##)[^\n])+)(?<=\S)##": r"\1",
        r"^[;:]+[ \t]+": "\n",
        r"^([*#])([*#]+)(?=[ \t])": lambda found: found[1] * len(found[0]),
    },
)
tikiwiki = MarkRules(
    r"\{CODE\([^{}\n]*\)\}.*?\{CODE\}|~np~.*?~/np~",
    {
        r"~tc~(?:(?!~/tc~)[\s\S])*~/tc~": "",
        r"~pp~((?:(?!~/pp~)[\s\S])*)~/pp~": r"{CODE()}\1{CODE}",
        r"~~[#\w, ]+:((?:(?!~~)[^\n])*)~~": r"\1",
        r"::((?:(?!::)\S)(?:(?!::)[^\n])*)::": r"\1",
        r"\^([^^\n]+)\^": r"\1",
        r"\^": "~94~",
        r"::": "~58~:",
        rf"~({'|'.join(SIGNS)})~": lambda found: SIGNS[found[1]],
        rf"\{{(?:{PLUGINS})(?P<attributes>\([^{{}}\n]*)?\}}": _title,
        r"\{(?:toc|maketoc|img|TOC|IMG|MAKETOC)\b[^{}\n]*\}": "",
        r"\)\)(\w+)\(\(": r"\1",
    },
    _title,
)
twiki = MarkRules(
    r"<(?:verbatim|pre|literal)\b.*?</(?:verbatim|pre|literal)>",
    {
        r"</?(?:sub|sup|strike|s|u|del|ins|small|big|span|font|center)\b[^<>\n]*>|<img\b[^<>\n]*>": "",
        r"</?(?:div|section)\b[^<>\n]*>|<br\b[^<>\n]*>": "\n\n",
        r"^#\w+": "",
    },
)
vimwiki = MarkRules(
    r"\{\{\{.*?\}\}\}|\{\{\$.*?\}\}\$",
    {
        r"%%\+(?:(?!\+%%)[\s\S])*\+%%": "",
        r"^%toc\b[^\n]*": "",
        r"^>[ \t]+": "    ",
        r"(?<=\|)[ ]*(?:>|\\/)[ ]*(?=\|)": "  ",
    },
)
mediawiki = MarkRules(
    r"<(?:nowiki|pre|syntaxhighlight|source|math)\b.*?</(?:nowiki|pre|syntaxhighlight|source|math)>|<!--.*?-->",
    {
        r"<includeonly>(?:(?!</includeonly>)[\s\S])*</includeonly>": "",
        r"</?(?:noinclude|onlyinclude)\b[^<>]*>": "",
        r"</?poem\b[^<>]*>": "\n\n",
        r"\[\[[ ]*Category[ ]*:[^\[\]\n]*\]\]": "",
        r"<gallery\b[^<>]*>((?:(?!</gallery>)[\s\S])*)</gallery>": lambda found: "".join(
            f"\n\n{line.partition('|')[2]}" for line in found[1].splitlines() if "|" in line
        ),
    },
)

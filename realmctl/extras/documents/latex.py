"""LaTeX in the commands that pandoc reads: it drops boxes, notes in the margin and some captions with their words, and glues others."""

from __future__ import annotations

import re
from collections.abc import Iterator

OPTION, GROUP, OVERLAY = "o", "m", "d"
"""Kinds of arguments: `[...]`, which may be missing, `{...}`, and `<...>` of beamer, which may be missing."""
BRACKETS = {OPTION: ("[", "]"), GROUP: ("{", "}"), OVERLAY: ("<", ">")}
SHOWN: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("fbox", "reflectbox", "shadowbox", "doublebox", "ovalbox", "Ovalbox", "llap", "rlap", "clap", "smash"), ("m", "{0}")),
    **dict.fromkeys(("so", "caps", "uwave", "dotuline", "dashuline", "xout", "uuline", "uppercase", "MakeUppercase", "MakeTextUppercase", "oldstylenums", "textlf", "textin"), ("m", "{0}")),
    **dict.fromkeys(("vtop", "leftline", "rightline", "structure", "textipa", "strong", "code", "pkg", "proglang", "file", "path", "CJKunderline"), ("m", "{0}")),
    "text": ("m", "\\mbox{{{0}}}"),
    **dict.fromkeys(("addchap", "addsec"), ("om", "\\section*{{{1}}}")),
    **dict.fromkeys(("foreignquote", "hyphenquote"), ("mm", "\u201c{1}\u201d")),
    "endnote": ("om", "\\footnote{{{1}}}"),
    "captionof": ("mom", "\n\n{2}\n\n"),
    **dict.fromkeys(("subcaption", "dictum"), ("om", "\n\n{1}\n\n")),
    "glslink": ("omm", "{2}"),
    "pdftooltip": ("mm", "{0}"),
    "lettrine": ("omm", "{1}{2}"),
    **dict.fromkeys(("framebox", "makebox"), ("oom", "{2}")),
    "raisebox": ("moom", "{3}"),
    **dict.fromkeys(("fcolorbox", "resizebox"), ("mmm", "{2}")),
    "scalebox": ("mom", "{2}"),
    "rotatebox": ("omm", "{2}"),
    "textquote": ("om", "\u201c{1}\u201d"),
    **dict.fromkeys(("marginpar", "marginnote", "sidenote", "marginline"), ("om", " {1} ")),
    **dict.fromkeys(("only", "uncover", "visible", "onslide"), ("dm", "{1}")),
    "keywords": ("m", "\n\n{0}\n\n"),
    "footnotetext": ("om", "\\footnote{{{1}}}"),
    **dict.fromkeys(("subfloat", "subfigure"), ("oom", " {0} {2} ")),
    "subcaptionbox": ("omm", " {1} {2} "),
    **dict.fromkeys(("quad", "qquad", "enspace", "hfill", "hfil"), ("", " ")),
    **dict.fromkeys(("hspace", "hskip"), ("m", " ")),
}  # fmt: skip
"""Commands, the kinds of their arguments, and what a reader sees of these."""
BEGINS: dict[str, tuple[str, str]] = {
    "frame": ("doomm", "\\begin{{frame}}\n\\subsection*{{{3}}}\n{4}\n\n"),
    **{name: ("dm", f"\\begin{{{{{name}}}}}\n\\paragraph{{{{{{1}}}}}}\n\n") for name in ("block", "alertblock", "exampleblock")},
    "multicols": ("mo", "\\begin{{multicols}}\n{1}\n"),
    "adjustbox": ("m", "\\begin{{adjustbox}}\n"),
    "algorithm": ("o", "\\begin{{figure}}\n"),
    "wrapfigure": ("omom", "\\begin{{figure}}\n"),
    "tcolorbox": ("o", "\\begin{{tcolorbox}}\n{0}\n\n"),
}  # fmt: skip
"""Environments whose arguments pandoc takes for their text, or drops."""
ENDS = {"algorithm": "figure", "wrapfigure": "figure"}
TOKEN = re.compile(
    r"%[^\n]*|\\(?P<kind>begin|end)\s*\{(?P<name>[A-Za-z]+\*?)\}|\\item(?=\s*\[)|\\(?P<command>"
    + "|".join(sorted(SHOWN, key=len, reverse=True))
    + r")(?![A-Za-z@])\*?|\\\\|\\[^A-Za-z]"
)
VERBATIM = frozenset(["verbatim", "verbatim*", "Verbatim", "minted", "comment", "lstlisting"])
TITLE = re.compile(r"(?:^|,)\s*(?:title|caption)\s*=\s*(\{[^{}]*\}|[^,{}]*)")
ITEMS = frozenset({"itemize", "enumerate"})
LISTS = ITEMS | {"description", "list", "trivlist"}
LONGEST_ARGUMENT = 20_000
DEEPEST = 20


def as_text(source: str) -> str:
    """A source whose boxes and notes are text, and whose titles are paragraphs."""
    return "".join(_pieces(source, [], 0))


def _pieces(text: str, lists: list[str], depth: int) -> Iterator[str]:
    place = 0
    while token := TOKEN.search(text, place):
        yield text[place : token.start()]
        place = token.end()
        if command := token["command"]:
            found, place = _arguments(text, place, SHOWN[command][0])
            yield token[0] if found is None else SHOWN[command][1].format(*_inner(found, lists, depth))
        elif token[0].startswith("\\item"):
            found, end = _arguments(text, place, OPTION)
            if lists and lists[-1] in ITEMS and found and found[0].strip():
                place = end
                yield f"\\item {''.join(_inner(found, lists, depth))} "
            else:
                yield token[0]
        elif token["kind"] == "begin":
            name = token["name"]
            if name in LISTS:
                lists.append(name)
            if name in VERBATIM:
                end = text.find(f"\\end{{{name}}}", place)
                end = len(text) if end < 0 else end
                options, _ = _arguments(text, place, OPTION) if name == "lstlisting" else (None, 0)
                yield f"{_title(options[0])}\n\n{token[0]}" if options and options[0] else token[0]
                yield text[place:end]
                place = end
            elif name in BEGINS:
                found, end = _arguments(text, place, BEGINS[name][0])
                if found is None:
                    yield token[0]
                else:
                    place = end
                    shown = [_title(found[0])] if name == "tcolorbox" else _inner(found, lists, depth)
                    yield BEGINS[name][1].format(*shown).replace("\\subsection*{}\n", "").replace("\\paragraph{}\n", "")
            else:
                yield token[0]
        elif token["kind"] == "end":
            if lists and token["name"] == lists[-1]:
                lists.pop()
            yield f"\\end{{{ENDS.get(token['name'], token['name'])}}}"
        else:
            yield token[0]
    yield text[place:]


def _inner(found: list[str], lists: list[str], depth: int) -> list[str]:
    """Arguments, read as the text around them."""
    return ["".join(_pieces(each, lists[:], depth + 1)) if depth < DEEPEST else each for each in found]


def _title(options: str) -> str:
    found = TITLE.search(options)
    return found[1].strip().strip("{}") if found else ""


def _arguments(text: str, place: int, kinds: str) -> tuple[list[str] | None, int]:
    """The arguments of these kinds at a place, and where they end; None and the place where a group is missing. Two groups at the end may be missing."""
    found, begin = list[str](), place
    for number, kind in enumerate(kinds):
        opening, closing = BRACKETS[kind]
        at = place
        while at < len(text) and text[at] in " \t\n" and kind != OVERLAY:
            at += 1
        end = _end(text, at, opening, closing) if text[at : at + 1] == opening else -1
        if end < 0:
            if kind == GROUP and not (kinds == BEGINS["frame"][0] and number >= 3):
                return None, begin
            found.append("")
            continue
        found.append(text[at + 1 : end])
        place = end + 1
    return found, place


def _end(text: str, start: int, opening: str, closing: str) -> int:
    """Where the bracket at `start` closes, before LONGEST_ARGUMENT characters and a paragraph's end for options; -1 where it does not."""
    depth, braces, place = 0, 0, start
    stop = min(len(text), start + LONGEST_ARGUMENT)
    while place < stop:
        each = text[place]
        if each == "\\":
            place += 1
        elif each == opening and (opening == "{" or not braces):
            depth += 1
        elif each == closing and (closing == "}" or not braces):
            depth -= 1
            if not depth:
                return place
        elif each == "{":
            braces += 1
        elif each == "}":
            braces -= 1
        place += 1
    return -1

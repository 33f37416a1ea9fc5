"""Draw the picture of README, light and dark: python docs/make_picture.py. A test keeps the files fresh."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent / "pictures"
WIDTH, HEIGHT = 760, 430
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, 'SFMono-Regular', Menlo, Consolas, monospace"
QUOTED = {'"': "&quot;"}
ALT = (
    "Documents are cut into blocks. In their sentences, spans such as names and dates are hidden. An index of the blocks and "
    "pre-training work together: pre-training retrieves blocks to fill the spans, and the index is made anew as the retriever "
    "learns. Fine-tuning on questions gives a model that answers with evidence."
)


@dataclass(frozen=True)
class Palette:
    """The colours of one picture."""

    fill: str
    edge: str
    text: str
    quiet: str
    strong: str
    mark: str


PALETTES = {
    "light": Palette("#f2f8f7", "#00796b", "#1b1f24", "#4f5b66", "#d5ece8", "#a04800"),
    "dark": Palette("#14211f", "#4db6ac", "#eef3f2", "#a9bbb8", "#1d3b37", "#ffc857"),
}


@dataclass(frozen=True)
class Box:
    """A box with a title, lines of text, and the command that makes what it holds."""

    x: int
    y: int
    width: int
    title: str
    lines: tuple[str, ...]
    command: str
    height: int = 108
    strong: bool = False

    def draw(self, colour: Palette) -> str:
        """Return the box as SVG."""
        fill = colour.strong if self.strong else colour.fill
        parts = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="10" fill="{fill}" '
            f'stroke="{colour.edge}" stroke-width="2"/>',
            text(self.x + 14, self.y + 29, self.title, 20, colour.text, weight=600),
            *(text(self.x + 14, self.y + 53 + 20 * n, line, 15, colour.quiet) for n, line in enumerate(self.lines)),
            text(self.x + 14, self.y + self.height - 12, self.command, 13, colour.edge, family=MONO),
        ]
        return "\n".join(parts)


BOXES = (
    Box(12, 12, 220, "Documents", ("your files, or a dump", "of Wikipedia"), ""),
    Box(270, 12, 220, "Blocks", ("whole sentences,", "the unit of retrieval"), "realmctl chunk"),
    Box(528, 12, 220, "Spans", ("names and dates", "to hide and fill in"), "realmctl tag"),
    Box(270, 160, 220, "Index", ("finds the nearest blocks", "of a text"), "realmctl build-index"),
    Box(
        528,
        160,
        220,
        "Pre-training",
        ("fills hidden spans with", "the help of blocks"),
        "realmctl pretrain",
        strong=True,
    ),
    Box(528, 308, 220, "Fine-tuning", ("on questions and", "their answers"), "realmctl finetune"),
)


def text(x: int, y: int, words: str, size: int, colour: str, weight: int = 400, family: str = FONT) -> str:
    """Return a line of text as SVG."""
    return (
        f'<text x="{x}" y="{y}" font-family="{escape(family, QUOTED)}" font-size="{size}" '
        f'font-weight="{weight}" fill="{colour}">{escape(words)}</text>'
    )


def arrow(path: str, colour: Palette, both: bool = False) -> str:
    """Return an arrow along a path as SVG; `both` gives it two heads."""
    start = ' marker-start="url(#head)"' if both else ""
    return f'<path d="{path}" fill="none" stroke="{colour.edge}" stroke-width="2.5" marker-end="url(#head)"{start}/>'


def answer(colour: Palette) -> str:
    """Return the box of an answer with its evidence as SVG."""
    return "\n".join(
        [
            f'<rect x="12" y="308" width="478" height="108" rx="10" fill="{colour.fill}" stroke="{colour.edge}" '
            'stroke-width="2"/>',
            text(26, 337, "Answers with evidence", 20, colour.text, weight=600),
            text(26, 361, "When was Vivis Wamley born?", 15, colour.quiet),
            f'<text x="26" y="382" font-family="{escape(FONT, QUOTED)}" font-size="15" fill="{colour.text}">The parish book '
            f'first names him in <tspan font-weight="700" fill="{colour.mark}">December 1898</tspan>.</text>',
            text(26, 404, "realmctl ask, realmctl serve", 13, colour.edge, family=MONO),
        ]
    )


def draw(colour: Palette) -> str:
    """Return the whole picture as SVG."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(ALT)}">\n'
        '<defs><marker id="head" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="6" markerHeight="6" '
        f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{colour.edge}"/></marker></defs>'
    )
    arrows = [
        arrow("M234 66H268", colour),
        arrow("M492 66H526", colour),
        arrow("M380 122V158", colour),
        arrow("M638 122V158", colour),
        arrow("M494 214H524", colour, both=True),
        arrow("M638 270V306", colour),
        arrow("M526 362H492", colour),
    ]
    return "\n".join([head, *(box.draw(colour) for box in BOXES), answer(colour), *arrows, "</svg>\n"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, palette in PALETTES.items():
        (FOLDER / f"realm-{name}.svg").write_text(draw(palette), encoding="utf-8")

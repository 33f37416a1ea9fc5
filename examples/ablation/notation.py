"""Format numbers and tables: three decimals, and a dash for a number that was not measured."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from spread import Difference, Spread

DASH = "-"
VERDICTS = {
    "shown": "These claims are **shown**",
    "the opposite is shown": "Of these claims **the opposite is shown**",
    "not shown": "These claims are **not shown**",
    "open": "These claims are **open**, because seeds are missing",
    "not measured": "These claims are not measured",
}
"""How a list of claims begins, by their verdict."""


def number(value: float | None) -> str:
    """Format a number: 0.7751 becomes .775."""
    if value is None:
        return DASH
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def signed(value: float) -> str:
    """Format a number with its sign: +.100."""
    return ("+" if value >= 0 else "") + number(value)


def mean_and_sd(found: Spread | None, n: int | None = None) -> str:
    """Format `.775 ± .025`, or the mean alone for one seed. The number of seeds is added if it is not `n`."""
    if found is None:
        return DASH
    sd = f" ± {number(found.sd)}" if found.sd is not None else ""
    return number(found.mean) + sd + (f" (n = {found.n})" if n not in (None, found.n) else "")


def grid_cell(values: Sequence[float], chosen: bool) -> str:
    """Format a cell of a grid of learning rates: the mean, bold where it chose the rate, and each seed in brackets."""
    if not values:
        return DASH
    mean = number(fmean(values))
    return (f"**{mean}**" if chosen else mean) + f" ({' '.join(map(number, values))})"


def interval(found: Difference) -> str:
    """Format an interval, `[+.012, +.104]`, or the reason why there is none."""
    if found.low is None or found.high is None:
        return "[one seed]"
    return f"[{signed(found.low)}, {signed(found.high)}]"


def listed(claims: Iterable[tuple[str, str]]) -> str:
    """Format (verdict, line) pairs as a list of lines below each verdict, in the order of VERDICTS."""
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for verdict, line in claims:
        by_verdict[verdict.strip("*").partition(":")[0]].append(f"- {line}")
    return "\n\n".join("\n".join([f"{VERDICTS[name]}:", "", *lines]) for name, lines in by_verdict.items() if lines)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table. Its columns are aligned on a terminal too; the first is aligned to the left."""
    widths = [max(3, *(len(row[at]) for row in (header, *rows))) for at in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(cells, widths) for cells in (header, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.rjust(width) if at else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join([first, *rest]) + " |"

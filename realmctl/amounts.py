"""Numbers as people read them: quantities, bytes and durations."""

from __future__ import annotations


def number_text(number: float) -> str:
    """Format a number: 200,000 and 0.4312. Four significant digits, and of more digits all that stand before the point."""
    if isinstance(number, int) or 10_000 <= abs(number) < 1e15:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def size_text(size: int) -> str:
    """Format bytes: 6.8 GB."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def duration_text(seconds: float) -> str:
    """Format seconds in one or two suitable units: 3 d 4 h, 2 h 05 min, 4 min 10 s, 3.2 s."""
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if days >= 1:
        return f"{int(days)} d {int(hours % 24)} h"
    if hours >= 1:
        return f"{int(hours)} h {int(minutes % 60):02} min"
    return f"{int(minutes)} min {int(seconds % 60):02} s" if minutes >= 1 else f"{seconds:.1f} s"

"""Documents with markup or a layout as text: HTML, Markdown, PDF, mail, and what pandoc reads."""

OFFERS: dict[str, dict[str, str]] = {}

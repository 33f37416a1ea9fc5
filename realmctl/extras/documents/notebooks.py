"""What pandoc reads of a Jupyter notebook otherwise than Jupyter shows it: raw cells, and outputs in Markdown and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

AS_MARKDOWN = ("text/markdown", "text/latex")
READ_BY_PANDOC = ("text/html",)


def as_shown(source: str) -> str:
    """A notebook whose raw cells are code without outputs, and whose outputs in Markdown are cells behind their code. What is no notebook stays."""
    try:
        notebook = json.loads(source)
    except (ValueError, RecursionError):
        return source
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return source
    notebook["cells"] = [made for cell in cells for made in (_cells(cell) if isinstance(cell, dict) else [cell])]
    return json.dumps(notebook)


def _cells(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    same = {"metadata": {}, **({"id": cell["id"]} if "id" in cell else {})}
    if cell.get("cell_type") == "raw":
        yield {**same, "cell_type": "code", "source": cell.get("source", ""), "outputs": [], "execution_count": None}
        return
    outputs = cell.get("outputs")
    if cell.get("cell_type") != "code" or not isinstance(outputs, list):
        yield cell
        return
    held = list[Any]()
    for output in outputs:
        data = output.get("data") if isinstance(output, dict) else None
        known = data if isinstance(data, dict) and not {*data} & {*READ_BY_PANDOC} else {}
        shown = next((known[kind] for kind in AS_MARKDOWN if kind in known), None)
        if shown is None:
            held.append(output)
            continue
        yield {**cell, "outputs": held}
        yield {"cell_type": "markdown", "metadata": {}, "source": shown}
        cell, held = {**cell, "source": ""}, []
    if held or cell.get("source") or not outputs:
        yield {**cell, "outputs": held}

"""What was measured of each question, a line of per-query.jsonl: `{"query": id, "text": "…", "nDCG@10": 0.5, …}`, and the means."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TextIO

PER_QUERY = "per-query.jsonl"


class PerQuery:
    """Writes a line for each question to `file`, and adds up the measures. A question may lack some of them."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self._sums, self._counts = defaultdict[str, float](float), defaultdict[str, int](int)

    def add(self, query: str, values: Mapping[str, float], text: str = "") -> None:
        """Write the measures of the question `query`, an id that no other has. `text` is left out where it is not known."""
        told = {"query": query, **({"text": text} if text else {}), **values}
        self.file.write(json.dumps(told, ensure_ascii=False) + "\n")
        for name, value in values.items():
            self._sums[name] += value
            self._counts[name] += 1

    def means(self) -> dict[str, float]:
        """The mean of each measure over the questions that have it, to six digits."""
        return {name: round(total / self._counts[name], 6) for name, total in self._sums.items()}

"""The stage `count-wordpieces`: count the wordpieces of blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping

from realmctl.artifacts import Artifact, Writer
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, reads, setting


class CountWordpieces(Stage):
    """Count how often each wordpiece occurs in the blocks."""

    makes = "wordpiece-counts"

    blocks: Artifact = reads("blocks", help="Blocks to count in.")
    top: int = setting("Number of wordpieces to write, the most common first.", default=20)

    def check(self) -> None:
        if self.top < 1:
            raise ConfigError(f"--top {self.top}: use 1 or more.")

    def run(self, out: Writer) -> Mapping[str, object]:
        import numpy as np

        from realmctl.artifacts.arrays import open_array
        from realmctl.tokens.tokenizer import Tokenizer

        ids, counts = np.unique(open_array(self.blocks.file("tokens.npy")), return_counts=True)
        best = np.argsort(-counts, kind="stable")[: self.top]
        tokenizer = Tokenizer.load(self.blocks.path).tokenizer
        found = {tokenizer.id_to_token(int(ids[place])): int(counts[place]) for place in best}
        out.file("counts.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return {"wordpieces": int(counts.sum()), "distinct": len(ids)}

"""`realmctl eval-cloze`: measure retrieval without labels, on sentences that are cut out of their blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from realmctl.artifacts import Writer, require_same_vocabulary, require_titles
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, extended
from realmctl.retrieval.names import check_options
from realmctl.training.settings.cloze import EvalClozeSettings


@extended("eval-cloze")
class EvalCloze(EvalClozeSettings, Stage):
    """Measure retrieval without labels: sentences are cut out of their blocks, and each must find its block (cloze recall).

    It compares retrievers and BM25 on one corpus. A retriever that gains may still lose on questions whose words the
    documents do not use.
    """

    makes = "cloze-recall"
    version = 3  # 2: reworded titles must gain too. 3: per-query.jsonl
    headline = (
        "cloze_recall@1",
        "cloze_recall@5",
        "cloze_recall@20",
        "cloze_rr",
        "gain",
        "gain_low",
        "gain_high",
        "title*",
    )

    def check(self) -> None:
        from realmctl.retrieval.search.stems import check_stemmer

        require_titles(self.blocks)
        check_stemmer("--bm25-stemmer", self.bm25_stemmer or None)
        check_options(self.method, self.bm25_stemmer, self.bm25_tokens)
        if self.method == "bm25":
            if self.start is not None:
                raise ConfigError("--start is compared with a retriever. Leave it out, or --method bm25.")
            if self.titles:
                raise ConfigError(
                    f"--titles {self.titles} are asked for by a retriever. Leave it out, or --method bm25."
                )
            return
        if self.retriever is None:
            raise ConfigError(f"--method {self.method} needs --retriever.")
        require_same_vocabulary(self.blocks, self.retriever, *([self.start] if self.start else ()))

    def measure_names(self) -> list[str]:
        """Names of the measures that these options ask for."""
        kinds = ("", "title_", "reworded_title_") if self.titles else ("",)
        gains = [f"{kind}gain{end}" for kind in kinds for end in ("", "_low", "_high")] if self.start else []
        return [*self.headline[:4], *(["title_rr"] if self.titles else []), *gains]

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.training.evaluation.eval_cloze import eval_cloze

        measured = eval_cloze(self, out)
        out.file("cloze.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        return measured

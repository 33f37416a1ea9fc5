"""`realmctl eval-utility`: measure the gain from retrieval on sentences that were not trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping

from realmctl.artifacts import Writer, require_descent, require_same_vocabulary, require_titles
from realmctl.extras.utility.settings import UtilitySettings
from realmctl.pipeline import Stage, extended


@extended("eval-utility")
class EvalUtility(UtilitySettings, Stage):
    """Measure retrieval utility: how much better hidden salient spans are filled with retrieved blocks than without.

    The model is a pre-trained one, or consists of --retriever, --index and --encoder.
    """

    makes = "utility"
    headline = (
        "retrieval_utility",
        "top_1_utility",
        "own_utility",
        "told_utility",
        "random_utility",
        "gain_auc",
        "null_share",
        "log_prob",
        "queries",
    )
    version = (
        3  # 2: one precision, and metrics of the reader's gains on blocks with the answer; 3: utility by kind of block
    )

    def check(self) -> None:
        asked = self.pretraining()
        require_same_vocabulary(self.blocks, self.spans, asked.retriever, *([asked.encoder] if asked.encoder else []))
        require_titles(self.blocks)
        require_descent(asked.index, self.blocks, asked.retriever)

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.extras.utility.utility import eval_utility

        measured = eval_utility(self)
        out.file("utility.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        return measured

"""`realmctl eval-em`: exact match and retrieval recall of a fine-tuned model, or the recall of a searcher alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

from realmctl.artifacts import Artifact, Writer
from realmctl.log import say
from realmctl.pipeline import Stage, extended
from realmctl.questions.scorers import Scorer
from realmctl.retrieval.answering.settings import EvalSettings


@extended("eval-em")
class EvalEm(EvalSettings, Stage):
    """Answer questions and score the answers: exact match, and recall@1, @5, @20 and @100 of the retrieval.

    Every scorer that suits the answers is applied, and disagreements.jsonl lists the questions on which they disagree. A
    model fine-tuned without retrieval has no recall.

    With --retriever and --index instead of a fine-tuned model, or with --retrieval bm25, only the recall is measured.
    """

    makes = "scores"
    headline = ("em", "f1", "recall@*", "provenance_recall@*")
    version = 8  # 5: recall in scripts without blanks, by characters. 6: F1. 7: ids of predictions. 8: per-query.jsonl

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.retrieval.answering.evaluation import evaluate

        return evaluate(self, out)

    def measure_names(self) -> list[str]:
        """Names of what these options may measure, for a floor that is checked before the work."""
        from realmctl.retrieval.answering.evaluation import DEPTHS

        exact = ("em", "f1", *(f"em_{scorer}" for scorer in get_args(Scorer))) if self.qa_model else ()
        tests, depths = ("recall", "substring_recall", "provenance_recall"), [k for k in DEPTHS if k <= self.hits]
        return [*exact, *(f"{test}@{k}" for test in tests for k in depths)]

    @classmethod
    def headline_text(cls, metrics: Mapping[str, Any]) -> str:
        """Return exact match and F1, the number of right answers by each scorer, recall@k, and the number of questions."""
        questions = metrics["questions"]
        right = {name.removeprefix("em_"): round(share * questions) for name, share in metrics.items() if "em_" in name}
        exact = [f"em {metrics['em']:.4g} ({metrics['scorer']})"] if "em" in metrics else []
        exact += [f"f1 {metrics['f1']:.4g}"] if "f1" in metrics else []
        counted = [f"{name} {count}/{questions}" for name, count in right.items()]
        recall = super().headline_text({name: value for name, value in metrics.items() if name not in ("em", "f1")})
        return ", ".join([*exact, *counted, recall or "no recall", f"{questions} questions"])

    def print_summary(self, made: Artifact) -> None:
        """Print the headline, and with --all-scorers the questions on which the scorers disagree."""
        from realmctl.questions.scoring import disagreements_text

        super().print_summary(made)
        if self.all_scorers:
            lines = made.file("disagreements.jsonl").read_text(encoding="utf-8").splitlines()
            say(disagreements_text([json.loads(line) for line in lines]))

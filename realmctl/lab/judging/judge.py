"""`realmctl judge`: a language model says how well passages serve queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from realmctl.artifacts import Writer
from realmctl.errors import ConfigError
from realmctl.lab.judging.settings import JudgeSettings
from realmctl.pipeline import Stage
from realmctl.pipeline.trial import NotTried, Trial


class Judge(JudgeSettings, Stage):
    """Let a language model judge what rankings found: a grade from 0 to 3 by a fixed rubric, with a reason.

    The result is a folder in BEIR's layout, which eval-run takes as --qrels. It says how far the model agrees with itself, also where the passage comes first,
    and with people where --qrels has their judgements (Cohen's kappa). An answer without a grade is asked for again, and never guessed. An
    interrupted run goes on, and asks again only for what was under way.
    """

    makes = "judgements"
    headline = (
        "judged",
        "unjudged",
        "judged_queries",
        "repeated_kappa",
        "swapped_kappa",
        "human_kappa",
        "human_recall",
        "grade_*",
    )
    resumable = True

    def check(self) -> None:
        if self.endpoint is None:
            raise ConfigError(
                "judge needs --endpoint, the address of a server that has the language model, such as http://127.0.0.1:11434/v1."
            )
        if not self.rankings:
            raise ConfigError("judge needs a ranking: name artifacts of rank, or TREC runs.")

    def trial(self) -> Trial:
        raise NotTried("a server judges")

    def shrunk(self, folder: Path) -> tuple[Self, float] | None:
        return None

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.lab.judging.judging import judge

        return judge(self, out)

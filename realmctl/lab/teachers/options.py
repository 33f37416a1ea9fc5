"""What a teacher adds to `adapt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import source
from realmctl.shortcuts.adapt_settings import AdaptSettings


class TeacherOptions(AdaptSettings):
    """An adapted retriever that learns from a cross-encoder in the second half of the minutes."""

    teacher: str = source(
        "With --lm, whose questions decide whether it is kept: a cross-encoder whose scores the retriever learns in the second half of the minutes. What `rank --rerank` takes, or train, which trains one on the documents. none: no teacher.",
        default="none",
        literals=("none", "train"),
        hub=True,
    )
    questions: Path | None = source(
        "Questions that the teacher reads, in BEIR's layout, such as people's: judgements name documents or blocks. Default: those that --lm writes.",
        default=None,
    )

    def adapt(self) -> dict[str, Any]:
        if self.teacher == "none":
            if self.questions is not None:
                raise ConfigError(
                    "--questions are what a teacher reads, so they need --teacher. To measure a retriever by questions: `realmctl rank`, `realmctl eval-run`."
                )
            return super().adapt()
        if not getattr(self, "lm", None):
            raise ConfigError(
                "--teacher needs --lm, a language model: the teacher reads its questions, and others of them decide whether what was learnt is kept. Sentences cannot, which find their blocks more "
                "often after each lesson, also after one that loses by people's questions."
            )
        from dataclasses import replace

        from realmctl.errors import require_package
        from realmctl.lab.teachers.teaching import teach
        from realmctl.retrieval.search.reranking import found_reranker
        from realmctl.shortcuts.adapt import TooFewMinutes

        require_package("ir_measures", "ir", "adapt --teacher")
        if self.teacher != "train":
            found_reranker(self.teacher)
        try:
            found = super(TeacherOptions, replace(self, minutes=self.minutes / 2)).adapt()
        except TooFewMinutes as error:
            raise TooFewMinutes(self.minutes, error.steps, 2 * error.needed) from None
        return teach(found, self)

    def held_out(self, blocks: Artifact) -> Artifact | None:
        """As ever. Questions from which nothing could be learnt are refused."""
        self.before_training(blocks, None)  # before a language model is asked
        return super().held_out(blocks)

    def before_training(self, blocks: Artifact, held_out: Artifact | None) -> None:
        if self.questions is not None:
            from realmctl.lab.teachers.teaching import block_judgements

            block_judgements(self.questions, blocks, held_out)

    def told(self, found: Mapping[str, Any]) -> str:
        text = super().told(found)
        if "teacher" not in found:
            return text
        from realmctl.lab.teachers.teaching import text_of

        return f"{text_of(found)}\n{text}"

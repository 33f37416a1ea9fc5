"""`realmctl split`: split questions into training and dev."""

from __future__ import annotations

from pathlib import Path

from realmctl.artifacts.place import require_place
from realmctl.pipeline import Command, Show, argument, help_texts, output, setting
from realmctl.pipeline.sources import on_disk


class Split(Command):
    """Split questions into training and dev as ORQA does: by FarmHash, with a tenth for dev."""

    questions: tuple[Path, ...] = argument("Question files; together they are one set.")
    train: Path = output("File to write: training questions, as JSON lines.")
    dev: Path = output("File to write: dev questions, as JSON lines.")
    max_answer_tokens: int | None = setting(
        "Drop answers with more tokens, and questions without an answer left. NQ-open: 5.", default=None, at_least=1
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None)

    def run(self, show: Show) -> None:
        from realmctl.extras.split import splits

        require_place(self.train, f"--train {self.train}")
        require_place(self.dev, f"--dev {self.dev}")
        with on_disk(*self.questions) as sources:
            counts = splits.split(
                sources,
                self.train,
                self.dev,
                max_answer_tokens=self.max_answer_tokens,
                is_regex=self.regex_answers,
                answer_field=self.answer_field,
            )
        show(counts, splits.split_text)

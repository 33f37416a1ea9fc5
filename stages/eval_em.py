"""`realmctl eval-em`: exact match and retrieval recall of a fine-tuned model, or the recall of a retriever alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifact import Artifact, Writer
from realmctl.errors import ConfigError
from realmctl.stage import Stage, knob, reads, setting, source

if TYPE_CHECKING:
    from realmctl.retrieval.qa import Searcher


class EvalEm(Stage):
    """Answer questions and score the answers: exact match, and recall@1/5/20/100 of the retrieval.

    With --retriever and --index instead of a fine-tuned model, the recall alone: zero-shot retrieval.
    """

    makes = "scores"
    version = 2

    qa_model: Artifact | None = reads("qa-model", help="Fine-tuned model.", unless=("retriever", "index"))
    blocks: Artifact = reads("blocks", help="Blocks that the index is of.")
    retriever: Artifact | None = reads("retriever", help="Retriever to evaluate alone.", named=True)
    index: Artifact | None = reads("index", help="Its index.", named=True)
    questions: Path = source("Questions with answers: NQ-open, WebQuestions, CuratedTREC, SQuAD and others.")
    scorer: Literal["auto", "orqa", "squad", "dpr", "regex-match", "regex-search"] = setting(
        "What `em` means; auto is orqa, and regex-match where answers are regular expressions.", default="auto"
    )
    regex_answers: bool | None = setting(
        "Answers are regular expressions; default as the file's format says.", default=None
    )
    answer_field: str | None = setting("Field that holds the answers, such as EfficientQA's.", default=None)
    reader_beam: int | None = setting("Blocks that are read; default as in fine-tuning.", default=None)
    hits: int = setting(
        "Blocks retrieved for a question, written to retrieved.json and counted in the recall.", default=100
    )
    batch_size: int = knob("Questions at once.", default=16)
    device: str = knob("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )

    def check(self) -> None:
        if min(self.hits, self.batch_size, self.reader_beam or 1) < 1:
            raise ConfigError("--hits, --batch-size and --reader-beam must be at least 1.")
        if self.qa_model is None and not (self.retriever and self.index):
            raise ConfigError("eval-em needs --qa-model, or --retriever and --index together.")

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.retrieval.evaluation import evaluate
        from realmctl.text.questions import read_questions

        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        return evaluate(
            self._searcher(), questions, out, scorer=self.scorer, hits=self.hits, batch_size=self.batch_size
        )

    def _searcher(self) -> Searcher:
        from realmctl.retrieval.qa import QuestionAnswerer, Searcher

        if self.qa_model is not None:
            return QuestionAnswerer(
                self.qa_model, self.blocks, reader_beam=self.reader_beam, device=self.device, precision=self.precision
            )
        assert self.retriever and self.index
        return Searcher(self.retriever, self.index, self.blocks, self.device, self.precision)

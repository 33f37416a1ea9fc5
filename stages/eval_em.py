"""`realmctl eval-em`: exact match and retrieval recall of a fine-tuned model, or the recall of a retriever alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.deviations import EvalDeviation, explained
from realmctl.errors import ConfigError, require_package
from realmctl.log import say
from realmctl.stage import Stage, reads, runtime, setting, source

if TYPE_CHECKING:
    from realmctl.retrieval.answering.evaluation import EvaluatedQuestion


class EvalEm(Stage):
    """Answer questions and score the answers: exact match, and recall@1/5/20/100 of the retrieval.

    With --retriever and --index instead of a fine-tuned model, or --retrieval bm25, the recall alone: zero-shot retrieval.
    Every scorer that suits the answers is counted, and disagreements.jsonl has the questions on which they disagree. A
    model fine-tuned without retrieval has no recall.
    """

    makes = "scores"
    version = 4

    qa_model: Artifact | None = reads(
        "qa-model",
        help="Fine-tuned model.",
        unless=lambda given: bool(given.get("retrieval") or (given.get("retriever") and given.get("index"))),
    )
    blocks: Artifact = reads("blocks", help="Blocks that the index is of.")
    retriever: Artifact | None = reads("retriever", help="Retriever to evaluate alone.", named=True)
    index: Artifact | None = reads("index", help="Its index.", named=True)
    retrieval: Literal["bm25"] | None = setting("BM25 over the blocks, evaluated alone.", default=None)
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
    official: tuple[EvalDeviation, ...] = setting(explained(EvalDeviation), default=(), later=True)
    all_scorers: bool = runtime("List the questions on which the scorers disagree on stderr.", default=False)
    batch_size: int = runtime("Questions at once.", default=16)
    device: str = runtime("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )

    def check(self) -> None:
        if min(self.hits, self.batch_size, self.reader_beam or 1) < 1:
            raise ConfigError("--hits, --batch-size and --reader-beam must be at least 1.")
        dense = self.retriever is not None or self.index is not None
        if self.retrieval and (self.qa_model or dense):
            raise ConfigError(
                "--retrieval bm25 evaluates BM25 over the blocks alone: leave out --qa-model, which knows its own retrieval, "
                "--retriever and --index."
            )
        if self.qa_model is None and not self.retrieval and not (self.retriever and self.index):
            raise ConfigError("eval-em needs --qa-model, or --retriever and --index together, or --retrieval bm25.")
        if self.all_scorers and self.qa_model is None:
            raise ConfigError("--all-scorers needs --qa-model: retrieval alone answers nothing that could be scored.")
        if self.retrieval == "bm25":
            require_package("bm25s", "bm25", "--retrieval bm25")

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.retrieval.answering.evaluation import evaluate
        from realmctl.text.qa.questions import read_questions

        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        return evaluate(
            self._examined(), questions, out, scorer=self.scorer, hits=self.hits, batch_size=self.batch_size
        )

    def print_summary(self, made: Artifact) -> None:
        """With --all-scorers: the questions that some scorer calls right and another wrong."""
        from realmctl.text.qa.scoring import disagreements_text

        if self.all_scorers:
            lines = made.file("disagreements.jsonl").read_text(encoding="utf-8").splitlines()
            say(disagreements_text([json.loads(line) for line in lines]))

    def _examined(self) -> EvaluatedQuestion:
        from realmctl.retrieval.answering.evaluation import EvaluatedQuestion
        from realmctl.retrieval.answering.open_answerer import open_answerer
        from realmctl.retrieval.search.bm25 import BM25Searcher
        from realmctl.retrieval.search.dense import DenseSearcher

        if self.qa_model is not None:
            answerer = open_answerer(
                self.qa_model, self.blocks, reader_beam=self.reader_beam, device=self.device, precision=self.precision,
                spaced_words="answer-text" in self.official,
            )  # fmt: skip
            return EvaluatedQuestion(answerer, answerer.searcher)
        if self.retrieval == "bm25":
            return EvaluatedQuestion(None, BM25Searcher(self.blocks, self.device))
        assert self.retriever and self.index
        return EvaluatedQuestion(
            None, DenseSearcher(self.retriever, self.index, self.blocks, self.device, self.precision)
        )

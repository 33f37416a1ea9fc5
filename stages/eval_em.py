"""`realmctl eval-em`: exact match and retrieval recall of a fine-tuned model, or the recall of a searcher alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer
from realmctl.deviations import EvalDeviation, explained
from realmctl.errors import ConfigError
from realmctl.log import say
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import SEARCHERS

if TYPE_CHECKING:
    from realmctl.retrieval.answering.qa_model import QaModel
    from realmctl.retrieval.search.searcher import Searcher, SearchInputs


class EvalEm(Stage):
    """Answer questions and score the answers: exact match, and recall@1, @5, @20 and @100 of the retrieval.

    Every scorer that suits the answers is applied, and disagreements.jsonl lists the questions on which they disagree. A
    model fine-tuned without retrieval has no recall.

    With --retriever and --index instead of a fine-tuned model, or with --retrieval bm25, only the recall is measured. Queries
    with relevance judgements (BEIR, MS MARCO) need no answers: a hit is then a block of a relevant document.
    """

    makes = "scores"
    headline = ("em", "recall@*", "provenance_recall@*")
    version = 4

    qa_model: Artifact | None = reads(
        "qa-model",
        help="Fine-tuned model to evaluate.",
        replaced_by=lambda given: bool(
            given.get("retrieval")
            or _judgements(given.get("questions"), given.get("qrels"))
            or (given.get("retriever") and given.get("index"))
        ),
        default=None,
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads(
        "retriever", help="Retriever to evaluate without a reader.", explicit_only=True, default=None
    )
    index: Artifact | None = reads(
        "index",
        help="Index of that retriever; with a fine-tuned model, index to use instead of its own.",
        instead_of="qa_model",
        default=None,
    )
    retrieval: str | None = setting(
        "Searcher to evaluate without a reader. bm25: BM25 over title and text. dense: --retriever and --index. Other names come"
        " from plug-ins.",
        default=None,
        choices=SEARCHERS.names,
    )
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None)
    questions: Path = source(help_texts.QUESTIONS)
    qrels: Path | None = source(
        "Relevance judgements in TREC's or BEIR's format. --questions are then queries, whose answers are not read.",
        default=None,
    )
    scorer: Literal["auto", "orqa", "squad", "dpr", "regex-match", "regex-search"] = setting(
        "Scorer that gives `em`. auto: orqa, or regex-match where answers are regular expressions.", default="auto"
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None)
    reader_beam: int | None = setting("Blocks read per question. Default: as in fine-tuning.", default=None, at_least=1)
    hits: int = setting(
        "Blocks retrieved per question. They are written to retrieved.json, and the recall is counted over them.",
        default=100,
        at_least=1,
    )
    limit: int | None = setting(
        "Evaluate the first questions of the file only, this many. Default: all.", default=None, at_least=1
    )
    official: tuple[EvalDeviation, ...] = setting(
        explained(EvalDeviation),
        default=(),
    )
    all_scorers: bool = runtime("Print the questions on which the scorers disagree, on stderr.", default=False)
    batch_size: int = runtime("Questions per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def check(self) -> None:
        dense = self.retriever is not None or self.index is not None
        if self.retrieval and (self.qa_model or (dense and not self._kind().uses_index)):
            raise ConfigError(
                f"--retrieval {self.retrieval} evaluates that searcher alone. Leave out --qa-model, which has its own searcher, and "
                "--retriever and --index unless the searcher uses them."
            )
        if self.qa_model is None and not self.retrieval and not (self.retriever and self.index):
            raise ConfigError("eval-em needs --qa-model, or --retriever and --index together, or --retrieval bm25.")
        if self.bm25_stemmer and self.retrieval != "bm25":
            raise ConfigError(
                f"--bm25-stemmer {self.bm25_stemmer} is for --retrieval bm25. A fine-tuned model keeps its own BM25."
            )
        if self.all_scorers and self.qa_model is None:
            raise ConfigError("--all-scorers needs --qa-model: retrieval alone gives no answers to score.")
        if _judgements(self.questions, self.qrels) and self.qa_model is not None:
            raise ConfigError(
                "Judged queries measure retrieval alone. Name --retriever and --index instead of --qa-model."
            )
        if self.qa_model is None:
            self._kind().check(self._search_inputs())

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.questions.questions import read_questions
        from realmctl.questions.ranking.judged import judged_questions
        from realmctl.retrieval.answering.evaluation import evaluate

        if qrels := _judgements(self.questions, self.qrels):
            questions = judged_questions(self.questions, qrels)
        else:
            questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        return evaluate(
            self._system(),
            questions[: self.limit],
            out,
            scorer=self.scorer,
            hits=self.hits,
            batch_size=self.batch_size,
        )

    @classmethod
    def headline_text(cls, metrics: Mapping[str, Any]) -> str:
        """Return exact match, the number of right answers by each scorer, recall@k, and the number of questions."""
        questions = metrics["questions"]
        right = {name.removeprefix("em_"): round(share * questions) for name, share in metrics.items() if "em_" in name}
        exact = [f"em {metrics['em']:.4g} ({metrics['scorer']})"] if "em" in metrics else []
        counted = [f"{name} {count}/{questions}" for name, count in right.items()]
        recall = super().headline_text({name: value for name, value in metrics.items() if name != "em"})
        return ", ".join([*exact, *counted, recall or "no recall", f"{questions} questions"])

    def print_summary(self, made: Artifact) -> None:
        """Print the headline, and with --all-scorers the questions on which the scorers disagree."""
        from realmctl.questions.scoring import disagreements_text

        super().print_summary(made)
        if self.all_scorers:
            lines = made.file("disagreements.jsonl").read_text(encoding="utf-8").splitlines()
            say(disagreements_text([json.loads(line) for line in lines]))

    def _kind(self) -> type[Searcher]:
        """Return the class of the searcher to evaluate without a qa-model."""
        from realmctl.retrieval.search.searcher import searcher_type

        return searcher_type(self.retrieval or "dense")

    def _search_inputs(self) -> SearchInputs:
        from realmctl.retrieval.search.searcher import SearchInputs

        return SearchInputs(
            blocks=self.blocks,
            retriever=self.retriever,
            index=self.index,
            device=self.device,
            precision=self.precision,
            bm25_stemmer=self.bm25_stemmer,
        )

    def _system(self) -> QaModel | Searcher:
        from realmctl.retrieval.answering.qa_model import QaModel

        if self.qa_model is None:
            return self._kind().start(self._search_inputs())
        return QaModel.open(
            self.qa_model,
            blocks=self.blocks,
            index=self.index,
            reader_beam=self.reader_beam,
            device=self.device,
            precision=self.precision,
            official_text="answer-text" in self.official,
        )


def _judgements(questions: Path | None, qrels: Path | None) -> Path | None:
    """Return the relevance judgements of the questions: those that were named, or a BEIR folder's. None: there are none."""
    from realmctl.questions.ranking.beir import is_beir

    return questions if qrels is None and questions is not None and is_beir(Path(questions)) else qrels

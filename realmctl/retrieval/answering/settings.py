"""The settings of `eval-em` and of `ask`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from realmctl.artifacts import Artifact
from realmctl.deviations import EvalDeviation, explained
from realmctl.pipeline import (
    InWorkspace,
    Precision,
    Settings,
    argument,
    check_device,
    help_texts,
    reads,
    runtime,
    setting,
    source,
)
from realmctl.pipeline.workspace import default_series
from realmctl.questions.scorers import Scorer
from realmctl.retrieval.names import SEARCHERS, Bm25Tokens

if TYPE_CHECKING:
    from realmctl.retrieval.answering.qa_model import AnsweredQuestion, Answering
    from realmctl.retrieval.search.searcher import Searcher


class EvalSettings(Settings):
    """What is evaluated, a fine-tuned model or a searcher alone, on which questions, and how.

    Rooms add options to `eval-em` by subclasses (`realmctl.options.eval-em`).
    """

    qa_model: Artifact | None = reads(
        "qa-model",
        help="Fine-tuned model to evaluate.",
        replaced_by=lambda given: bool(given.get("retrieval") or (given.get("retriever") and given.get("index"))),
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
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None, advanced=True)
    bm25_tokens: Bm25Tokens = setting(help_texts.BM25_TOKENS, default="pieces", advanced=True)
    questions: Path = source(help_texts.QUESTIONS)
    scorer: Literal["auto", Scorer] = setting(help_texts.SCORER, default="auto", used_with="qa_model")
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None, advanced=True)
    answer_field: str | None = setting(help_texts.ANSWER_FIELD, default=None, advanced=True)
    reader_beam: int | None = setting(
        "blocks read per question. Default: as in fine-tuning.",
        default=None,
        at_least=1,
        used_with="qa_model",
    )
    hits: int = setting(
        "Blocks retrieved per question. They are written to retrieved.json, and the recall is counted over them.",
        default=100,
        at_least=1,
        advanced=True,
    )
    limit: int | None = setting(
        "Evaluate the first questions of the file only, this many. Default: all.",
        default=None,
        at_least=1,
        advanced=True,
    )
    official: tuple[EvalDeviation, ...] = setting(explained(EvalDeviation), default=(), advanced=True)
    all_scorers: bool = runtime(
        "print the questions on which the scorers disagree, on stderr.",
        default=False,
        used_with="qa_model",
        advanced=True,
    )
    batch_size: int = runtime("Questions per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Precision = setting(help_texts.PRECISION, default="auto", advanced=True)

    def check(self) -> None:
        """Raise ConfigError unless a model or a searcher alone is named, with what it needs."""
        from realmctl.retrieval.answering.evaluation import check_evaluation

        check_evaluation(self)

    def system(self) -> Answering | Searcher:
        """Open what is evaluated: a model that answers, or a searcher alone."""
        from realmctl.retrieval.answering.evaluation import system_of

        return system_of(self)


class AskSettings(InWorkspace):
    """A question, and what answers it. Rooms add options to `ask` by subclasses (`realmctl.options.ask`)."""

    question: str = argument("A question.")
    qa_model: Path | None = reads("qa-model", help="Default: <workspace>/qa-model.", explicit_only=True, default=None)
    blocks: Path | None = reads("blocks", help="Default: <workspace>/blocks.", explicit_only=True, default=None)
    index: Path | None = reads(
        "index",
        help="Index to search. Default: the qa-model's own, or the newest beside the blocks that fits newer blocks.",
        explicit_only=True,
        default=None,
    )
    top: int = setting("Number of answers to print.", default=3, at_least=1, short="-k")
    without: tuple[str, ...] = setting(
        "Answer again without this block: its id, or the id or title of a document. Repeatable.", default=()
    )
    rerank: str | None = source(help_texts.RERANK, default=None, hub=True)
    rerank_depth: int | None = setting(help_texts.RERANK_DEPTH, default=None, at_least=1, used_with="rerank")
    rerank_fused: bool = setting(help_texts.RERANK_FUSED, default=False, used_with="rerank")

    def answer(self) -> AnsweredQuestion:
        """Answer the question. Raises: see `realmctl.retrieval.answering.asking.ask`."""
        from realmctl.retrieval.answering.asking import ask

        return ask(
            self.question,
            self.qa_model or default_series("ask", "--qa-model", "qa-model", self.workspace / "qa-model"),
            self.blocks or self.workspace / "blocks",
            self.top,
            index=self.index,
            without=self.without,
            rerank=self.rerank,
            rerank_depth=self.rerank_depth,
            rerank_fused=self.rerank_fused,
        )

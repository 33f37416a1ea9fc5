"""`realmctl finetune`: teach a model to answer questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary
from realmctl.deviations import FinetuneDeviation, explained
from realmctl.errors import ConfigError, require_package
from realmctl.stage import Stage, reads, runtime, setting, source

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from realmctl.retrieval.search.searcher import Searcher
    from realmctl.text.qa.questions import Question
    from realmctl.training.objectives.best_on_dev import BestOnDev
    from realmctl.training.objectives.closed_book import ClosedBookObjective
    from realmctl.training.objectives.finetune import FinetuneObjective


def _needs_no_model(given: Mapping[str, Any]) -> bool:
    """Whether the parts named are enough."""
    dense = given.get("retrieval", "dense") == "dense"
    return (
        bool(given.get("retriever") and given.get("index"))
        if dense
        else bool(given.get("encoder") or given.get("bert"))
    )


class Finetune(Stage):
    """Fine-tune for open-domain question answering; the block vectors stay as they are.

    From a pre-trained model, or from its parts: --retriever and --index with --encoder or --bert are the ORQA baseline; named
    beside --model, each of them replaces that part of the model. A qa-model, say an imported one, goes on from where it is.

    With --retrieval bm25 the same reader learns from BM25's blocks, whose scores count by one learned scale; with none the
    masked-language model answers without documents. Both start from --encoder, --bert or the reader of --model.
    """

    makes = "qa-model"
    resumable = True

    model: Artifact | None = reads(
        "model", "qa-model", help="Pre-trained model, or a qa-model to go on with.", unless=_needs_no_model
    )
    blocks: Artifact = reads("blocks", help="Blocks that the index is of.")
    retriever: Artifact | None = reads("retriever", help="Retriever instead of the model's.", named=True)
    index: Artifact | None = reads("index", help="Index instead of the model's.", named=True)
    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder for the reader instead of the model's.", named=True
    )
    bert: str | None = source(
        "BERT for the reader instead: a folder, a hub id, or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    questions: Path = source("Questions with answers: NQ-open, WebQuestions, CuratedTREC, SQuAD and others.")
    retrieval: Literal["dense", "bm25", "none"] = setting(
        "Where blocks come from: retriever and index, BM25 over title and text, or none (closed book).",
        default="dense",
        later=True,
    )
    freeze_retriever: bool = setting(
        "Train the reader alone, on what the retriever finds as it is.", default=False, later=True
    )
    dev: Path | None = source(
        "Questions to choose the model by: the one with the best span exact match on them is kept, not the last.",
        default=None,
    )
    dev_every: int = setting("Steps between scores on --dev.", default=500, later=True)
    epochs: float = setting("Passes over the questions.", default=2.0)
    steps: int | None = setting("Training steps instead of --epochs.", default=None)
    batch_size: int = setting("Questions in a step (the official code: 1).", default=16)
    lr: float = setting("Peak learning rate.", default=1e-5)
    warmup: int | None = setting("Warm-up steps; default min(10000, max(100, steps / 10)).", default=None)
    optimizer: Literal["bert", "adamw"] = setting(
        "bert: AdamW as BERT and REALM used it; adamw: betas .9 and .98 with bias correction, for runs of hundreds of steps.",
        default="bert",
    )
    retriever_beam: int = setting("Blocks that the retriever's loss is over.", default=5000)
    reader_beam: int = setting("Blocks that are read.", default=5)
    reader_length: int = setting("Wordpieces of the reader's input.", default=320)
    span_width: int = setting("Longest answer in wordpieces.", default=10)
    answer_test: Literal["substring", "tokens"] = setting(
        "When a block counts as holding an answer: raw substring (official) or words.", default="substring"
    )
    regex_answers: bool | None = setting(
        "Answers are regular expressions; default as the file's format says.", default=None
    )
    objective: Literal["orqa", "paper"] = setting(
        "orqa: one softmax over the spans of all blocks read, and a loss over the beam; paper: sum over the blocks read of p(z|x)"
        " p(y|z,x), each block's spans in a softmax of their own.",
        default="orqa",
        later=True,
    )
    official: tuple[FinetuneDeviation, ...] = setting(explained(FinetuneDeviation), default=(), later=True)
    seed: int = setting("Seed of everything random.", default=0)
    micro_batch: int = runtime("Questions computed at once; 0 = the whole batch.", default=0)
    device: str = runtime("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )
    checkpoint_every: int = runtime("Steps between checkpoints.", default=500)

    def check(self) -> None:
        if min(self.batch_size, self.reader_beam, self.span_width, self.steps or 1) < 1 or self.epochs <= 0:
            raise ConfigError(
                "--batch-size, --reader-beam, --span-width and --steps must be at least 1, --epochs above 0."
            )
        if self.dev_every < 1:
            raise ConfigError(f"--dev-every {self.dev_every}: use 1 or more.")
        if self.retriever_beam < self.reader_beam:
            raise ConfigError(
                f"--retriever-beam {self.retriever_beam} is below --reader-beam {self.reader_beam}: only retrieved blocks can be read."
            )
        if self.reader_length < 8 or self.micro_batch < 0:
            raise ConfigError("--reader-length must be at least 8, --micro-batch at least 1, or 0 for the whole batch.")
        if self.retrieval == "dense":
            self._check_dense()
        else:
            self._check_baseline()
        encoder = self._encoder()
        require_same_vocabulary(self.blocks, *([encoder] if encoder else []))

    def _check_dense(self) -> None:
        from realmctl.retrieval.search.dense import require_index_of

        if self.model is None and not (self.retriever and self.index and (self.encoder or self.bert)):
            raise ConfigError("finetune needs --model, or --retriever and --index together with --encoder or --bert.")
        retriever, index = self._dense_parts()
        require_same_vocabulary(self.blocks, retriever)
        require_descent(index, self.blocks)
        require_index_of(index, retriever)

    def _check_baseline(self) -> None:
        if self.retrieval == "none" and (self.objective != "orqa" or self.official or self.dev):
            raise ConfigError(
                "--objective, --official and --dev are about blocks that are read, and --retrieval none reads none. Leave them out."
            )
        if self.retriever or self.index:
            raise ConfigError(
                f"--retrieval {self.retrieval} uses no --retriever and no --index. Leave them out, or use --retrieval dense."
            )
        if self.freeze_retriever and self.retrieval == "none":
            raise ConfigError("--retrieval none has no retriever. Leave out --freeze-retriever.")
        if not (self.model or self.encoder or self.bert):
            raise ConfigError(
                f"finetune --retrieval {self.retrieval} needs --encoder, --bert or --model to start from."
            )
        if self.retrieval == "bm25":
            require_package("bm25s", "bm25", "--retrieval bm25")
        elif self.reader_length < self.span_width + 8:
            raise ConfigError(
                f"--reader-length {self.reader_length} leaves no room for a question beside --span-width {self.span_width} masks."
            )

    def _dense_parts(self) -> tuple[Artifact, Artifact]:
        """Retriever and index: those named, the model's for the rest."""
        model, retriever, index = self.model, self.retriever, self.index
        if model is not None:
            retriever, index = retriever or model.part("retriever"), index or model.part("index")
        assert retriever and index
        return retriever, index

    def _encoder(self) -> Artifact | None:
        """What the reader starts from: the encoder named, else the model's reader; None where --bert is given."""
        if self.encoder or self.bert or self.model is None:
            return self.encoder
        return self.model.part("reader")

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.text.qa.questions import read_questions
        from realmctl.training.loop import Compute, Schedule, train

        questions = read_questions(self.questions, is_regex=self.regex_answers)
        objective = self._closed_book(questions) if self.retrieval == "none" else self._reading(questions)
        steps = self.steps or max(1, round(self.epochs * len(questions) / self.batch_size))
        schedule = Schedule(steps, self.lr, self.warmup, self.seed, self.optimizer)
        compute = Compute(self.device, self.precision, self.checkpoint_every)
        best = self._best_on_dev(objective, out)
        metrics = train(best or objective, schedule, compute, out, "finetune")
        chosen = best.take(steps) if best else {}
        objective.save(out)
        return {"questions": len(questions), **metrics, **chosen}

    def _best_on_dev(self, objective: FinetuneObjective | ClosedBookObjective, out: Writer) -> BestOnDev | None:
        from realmctl.text.qa.questions import read_questions
        from realmctl.training.objectives.best_on_dev import BestOnDev
        from realmctl.training.objectives.finetune import FinetuneObjective

        if self.dev is None or not isinstance(objective, FinetuneObjective):
            return None
        questions = read_questions(self.dev, is_regex=self.regex_answers)
        return BestOnDev(objective, questions, self.dev_every, out.scratch("best"), self.precision)

    def _reading(self, questions: Sequence[Question]) -> FinetuneObjective:
        from realmctl.nn.span_head import SpanReader
        from realmctl.training.objectives.finetune import FinetuneObjective, FinetuneOptions

        searcher, encoder = self._searcher(), self._encoder()
        if encoder and encoder.kind == "span-reader":  # of a qa-model, head and all
            reader = SpanReader.load(encoder.path)
        else:
            reader = SpanReader.from_bert(self._start().bert)
        options = FinetuneOptions(
            self.batch_size,
            self.retriever_beam,
            self.reader_beam,
            self.reader_length,
            self.span_width,
            self.answer_test,
            self.seed,
            self.freeze_retriever,
            self.objective,
            empty_steps="empty-steps" in self.official,
        )
        return FinetuneObjective(searcher, reader, questions, options, self.micro_batch)

    def _closed_book(self, questions: Sequence[Question]) -> ClosedBookObjective:
        from realmctl.nn.reader import Reader
        from realmctl.training.objectives.closed_book import ClosedBookObjective, ClosedBookOptions

        reader = Reader.from_masked_lm(self._start(with_head=True))
        options = ClosedBookOptions(self.batch_size, self.reader_length, self.span_width, self.seed)
        return ClosedBookObjective(reader, self.blocks, questions, options, self.micro_batch)

    def _searcher(self) -> Searcher:
        from realmctl.retrieval.search.bm25 import BM25Searcher
        from realmctl.retrieval.search.dense import DenseSearcher

        if self.retrieval == "bm25":
            return BM25Searcher(self.blocks, self.device)
        searcher = DenseSearcher(*self._dense_parts(), self.blocks, self.device, self.precision)
        searcher.retriever = searcher.retriever.query_only()
        return searcher

    def _start(self, with_head: bool = False) -> BertForMaskedLM:
        from realmctl.nn.precision import seed_everything
        from realmctl.retrieval.initial_encoder import starting_bert

        start = starting_bert(self._encoder(), self.bert, self.blocks, self.seed, with_head=with_head)
        seed_everything(self.seed)
        return start

"""`realmctl finetune`: teach a model to answer questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact, Writer, require_same_vocabulary
from realmctl.deviations import FinetuneDeviation, explained
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import NO_RETRIEVAL
from realmctl.training.starts.answering import AnsweringStart
from realmctl.training.training_stage import retriever_lr_multiplier

if TYPE_CHECKING:
    from realmctl.artifacts.description import QaModelDescription
    from realmctl.questions.questions import Question
    from realmctl.training.evaluation.best_on_dev import BestOnDev
    from realmctl.training.objectives.closed_book import ClosedBookObjective
    from realmctl.training.objectives.finetune import FinetuneObjective


class Finetune(AnsweringStart):
    """Fine-tune for open-domain question answering. The vectors of the blocks do not change.

    Training starts from a pre-trained model, from a qa-model such as an imported one, or from parts: --retriever and --index
    with --encoder or --bert are the ORQA baseline. A part that is passed together with --model replaces that part of
    the model.

    With --retrieval bm25 the reader learns from the blocks that BM25 finds, and one learned factor scales their scores. With
    --retrieval none the masked language model learns to answer without documents. Both start from --encoder, --bert or the
    reader of --model.
    """

    makes = "qa-model"
    headline = ("loss", "span_exact_match", "answer_*", "best_dev_span_exact_match", "seconds_per_step")
    version = 2

    questions: Path = source(help_texts.QUESTIONS)
    dev: Path | None = source(
        "File of development questions. The weights with the best span exact match on them are kept, instead of the last.",
        default=None,
    )
    spans: Artifact | None = reads(
        "spans", help="Tagged sentences that cloze questions are made from, to train on them too.", explicit_only=True
    )
    cloze_share: float | None = setting(
        "With --spans: share of a step's questions that are cloze questions, which are further examples for a reader"
        " with few questions. Default: 0.5.",
        default=None,
        above=0,
        below=1,
    )
    dev_every: int = setting("Number of steps between evaluations on --dev.", default=500, at_least=1)
    epochs: float = setting("Number of passes over the questions.", default=2.0, above=0)
    steps: int | None = setting("Number of training steps, instead of --epochs.", default=None, at_least=1)
    batch_size: int = setting("Questions per step; the official code has 1.", default=16, at_least=1)
    lr: float = setting(help_texts.LEARNING_RATE, default=1e-5, above=0)
    retriever_lr: float | None = setting(
        "Peak learning rate of the retriever. Default: --lr; for BM25's factor a multiple of it.", default=None, above=0
    )
    layer_decay: float = setting(help_texts.READER_LAYER_DECAY, default=1.0, above=0, at_most=1)
    warmup: int | None = setting(help_texts.WARMUP, default=None, at_least=0)
    optimizer: Literal["bert", "adamw"] = setting(help_texts.OPTIMIZER, default="bert")
    retriever_beam: int = setting(
        "Blocks retrieved per question; the retriever's loss covers them.", default=5000, at_least=1
    )
    reader_beam: int = setting("Blocks read per question, the best of those retrieved.", default=5, at_least=1)
    reader_length: int = setting("Longest input of the reader, in wordpieces.", default=320, at_least=8)
    span_width: int = setting("Longest answer, in wordpieces.", default=10, at_least=1)
    answer_test: Literal["substring", "tokens"] = setting(
        "When a block counts as holding an answer. substring: as raw text (official). tokens: as whole words.",
        default="substring",
    )
    regex_answers: bool | None = setting(help_texts.REGEX_ANSWERS, default=None)
    answer_field: str | None = setting(
        help_texts.ANSWER_FIELD,
        default=None,
    )
    objective: Literal["orqa", "paper", "hard-em"] = setting(
        "Objective. orqa: one softmax over the spans of all blocks read, plus the retriever's loss. paper: the sum over the blocks"
        " read of p(z|x) p(y|z,x), with a softmax over the spans of each block. hard-em: as orqa, but at more and more steps the"
        " reader learns from the likeliest mention of the answer alone (Min et al. 2019).",
        default="orqa",
    )
    hard_em_tau: int = setting(
        "With hard-em: step N learns from the likeliest mention alone with probability min(N / this number, 0.8).",
        default=4000,
        at_least=1,
    )
    official: tuple[FinetuneDeviation, ...] = setting(
        explained(FinetuneDeviation),
        default=(),
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    micro_batch: int = runtime("Questions computed at once; 0 means the whole batch.", default=0, at_least=0)
    checkpoint_every: int = runtime(help_texts.CHECKPOINT_EVERY, default=500, at_least=1)
    tensorboard: Path | None = runtime(help_texts.TENSORBOARD, default=None)

    def check(self) -> None:
        if self.hard_em_tau != type(self).hard_em_tau and self.objective != "hard-em":
            raise ConfigError(f"--hard-em-tau {self.hard_em_tau} is for --objective hard-em.")
        if self.freeze_retriever and self.retriever_lr is not None:
            raise ConfigError(
                "--retriever-lr sets the rate of a retriever that is trained. Leave out --freeze-retriever."
            )
        if self.retriever_beam < self.reader_beam:
            raise ConfigError(
                f"--retriever-beam {self.retriever_beam} is below --reader-beam {self.reader_beam}: only retrieved blocks can be read."
            )
        self._check_cloze()
        if self.retrieval == NO_RETRIEVAL:
            self._check_closed_book()
        self._check_start()
        encoder = self._encoder()
        require_same_vocabulary(self.blocks, *([encoder] if encoder else []))

    def _check_cloze(self) -> None:
        if self.spans is None and self.cloze_share is not None:
            raise ConfigError("--cloze-share needs --spans, the sentences that cloze questions are made from.")
        if self.spans is not None and not 0 < self._cloze_per_step() < self.batch_size:
            raise ConfigError(
                f"--cloze-share {self._share():g} of --batch-size {self.batch_size} is {self._cloze_per_step()}: a step needs at "
                "least one cloze question and one other question."
            )

    def _share(self) -> float:
        return 0.5 if self.cloze_share is None else self.cloze_share

    def _cloze_per_step(self) -> int:
        return round(self._share() * self.batch_size) if self.spans is not None else 0

    def _check_closed_book(self) -> None:
        if self.objective != "orqa" or self.official or self.dev or self.spans:
            raise ConfigError(
                "--objective, --official, --dev and --spans concern blocks that are read, and --retrieval none reads none. Leave them"
                " out."
            )
        if self.freeze_retriever or self.retriever_lr is not None:
            raise ConfigError("--retrieval none has no retriever. Leave out --freeze-retriever and --retriever-lr.")
        if self.reader_length < self.span_width + 8:
            lengths = f"--reader-length {self.reader_length} leaves no room for a question and --span-width {self.span_width} masks."
            raise ConfigError(lengths)

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.artifacts.description import QA_MODEL, write_description
        from realmctl.questions.questions import read_questions
        from realmctl.training.loop import Compute, Schedule, train

        questions = read_questions(self.questions, is_regex=self.regex_answers, answer_field=self.answer_field)
        steps = self.steps or max(1, round(self.epochs * len(questions) / (self.batch_size - self._cloze_per_step())))
        objective = self._closed_book(questions) if self.retrieval == NO_RETRIEVAL else self._reading(questions, steps)
        schedule = Schedule.of(self, steps=steps)
        compute = Compute.of(self)
        best = self._best_on_dev(objective, out)
        metrics = train(best or objective, schedule, compute, out, "finetune")
        chosen = best.take(steps) if best else {}
        objective.save(out)
        write_description(out.file(QA_MODEL), self._description())
        return {"questions": len(questions), **metrics, **chosen}

    def _description(self) -> QaModelDescription:
        from realmctl.artifacts.description import QaModelDescription

        closed = self.retrieval == NO_RETRIEVAL
        return QaModelDescription(
            answerer="closed-book" if closed else "extractive",
            searcher=None if closed else self.retrieval,
            objective="closed-book" if closed else self.objective,
            reader_beam=0 if closed else self.reader_beam,
            reader_length=self.reader_length,
            span_width=self.span_width,
        )

    def _best_on_dev(self, objective: FinetuneObjective | ClosedBookObjective, out: Writer) -> BestOnDev | None:
        from realmctl.questions.questions import read_questions
        from realmctl.training.evaluation.best_on_dev import BestOnDev
        from realmctl.training.objectives.finetune import FinetuneObjective

        if self.dev is None or not isinstance(objective, FinetuneObjective):
            return None
        questions = read_questions(self.dev, is_regex=self.regex_answers, answer_field=self.answer_field)
        return BestOnDev(objective, questions, self.dev_every, out.scratch("best"), self.precision)

    def _reading(self, questions: Sequence[Question], steps: int) -> FinetuneObjective:
        from realmctl.models.bert.limits import require_positions
        from realmctl.models.span_head import SpanReader
        from realmctl.training.objectives.finetune import FinetuneObjective, FinetuneOptions

        searcher, encoder = self._searcher(), self._encoder()
        if encoder and encoder.kind == "span-reader":  # the reader of a qa-model has its span head already
            reader = SpanReader.load(encoder.path)
        else:
            reader = SpanReader.from_bert(self._start().bert)
        require_positions(reader.bert.config, self.reader_length, f"--reader-length {self.reader_length}")
        options = FinetuneOptions(
            batch_size=self.batch_size,
            retriever_beam=self.retriever_beam,
            reader_beam=self.reader_beam,
            reader_length=self.reader_length,
            span_width=self.span_width,
            answer_test=self.answer_test,
            seed=self.seed,
            freeze_retriever=self.freeze_retriever,
            objective=self.objective,
            hard_em_tau=self.hard_em_tau,
            layer_decay=self.layer_decay,
            steps=steps,
            retriever_lr_multiplier=retriever_lr_multiplier(self.lr, self.retriever_lr),
            empty_steps="empty-steps" in self.official,
            cloze_per_step=self._cloze_per_step(),
        )
        return FinetuneObjective(searcher, reader, questions, options, self.micro_batch, self._cloze(steps))

    def _cloze(self, steps: int) -> Sequence[Question]:
        """Return the cloze questions of a run: as many as its steps have, if the sentences suffice."""
        from realmctl.training.data.cloze_questions import cloze_questions
        from realmctl.training.data.draws import Stream, generator

        if self.spans is None:
            return ()
        return cloze_questions(self.spans, steps * self._cloze_per_step(), generator(self.seed, Stream.CLOZE_QUESTIONS))

    def _closed_book(self, questions: Sequence[Question]) -> ClosedBookObjective:
        from realmctl.models.reader import Reader
        from realmctl.training.objectives.closed_book import ClosedBookObjective, ClosedBookOptions

        reader = Reader.from_masked_lm(self._start(with_head=True))
        sizes = {"batch_size": self.batch_size, "reader_length": self.reader_length, "span_width": self.span_width}
        options = ClosedBookOptions(**sizes, seed=self.seed, layer_decay=self.layer_decay)
        return ClosedBookObjective(reader, self.blocks, questions, options, self.micro_batch)

"""`realmctl finetune`: teach a model to answer questions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from realmctl.artifact import Artifact, Writer, require_descent, require_same_vocabulary, writing
from realmctl.errors import ConfigError
from realmctl.stage import Stage, knob, reads, setting, source


class Finetune(Stage):
    """Fine-tune for open-domain question answering; the block vectors stay as they are.

    From a pre-trained model, or from its parts: --retriever and --index with --encoder or --bert are the ORQA baseline; named
    beside --model, each of them replaces that part of the model.
    """

    makes = "qa-model"
    resumable = True

    model: Artifact | None = reads("model", help="Pre-trained model.", unless=("retriever", "index"))
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
    seed: int = setting("Seed of everything random.", default=0)
    micro_batch: int = knob("Questions computed at once; 0 = the whole batch.", default=0)
    device: str = knob("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting(
        "Arithmetic; auto is bf16 where the hardware has it.", default="auto"
    )
    checkpoint_every: int = knob("Steps between checkpoints.", default=500)

    def check(self) -> None:
        if min(self.batch_size, self.reader_beam, self.span_width, self.steps or 1) < 1 or self.epochs <= 0:
            raise ConfigError(
                "--batch-size, --reader-beam, --span-width and --steps must be at least 1, --epochs above 0."
            )
        if self.retriever_beam < self.reader_beam:
            raise ConfigError(
                f"--retriever-beam {self.retriever_beam} is below --reader-beam {self.reader_beam}: only retrieved blocks can be read."
            )
        if self.model is None and not (self.retriever and self.index and (self.encoder or self.bert)):
            raise ConfigError("finetune needs --model, or --retriever and --index together with --encoder or --bert.")
        if self.reader_length < 8 or self.micro_batch < 0:
            raise ConfigError("--reader-length must be at least 8, --micro-batch at least 1, or 0 for the whole batch.")
        retriever, index, encoder = self._parts()
        require_same_vocabulary(self.blocks, retriever, *([encoder] if encoder else []))
        require_descent(index, self.blocks, retriever)

    def _parts(self) -> tuple[Artifact, Artifact, Artifact | None]:
        """Retriever, index and encoder: those named, the model's for the rest; no encoder where --bert is given."""
        model = self.model
        if model is None:
            assert self.retriever and self.index
            return self.retriever, self.index, self.encoder
        encoder = self.encoder or (None if self.bert else model.part("reader"))
        return self.retriever or model.part("retriever"), self.index or model.part("index"), encoder

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.precision import seed_everything
        from realmctl.nn.span_head import SpanReader
        from realmctl.retrieval.bert import starting_bert, tokenizer_folder
        from realmctl.retrieval.qa import Searcher
        from realmctl.text.questions import read_questions
        from realmctl.train.finetune import FineTuning, Options
        from realmctl.train.loop import Compute, Schedule, train

        retriever, index, encoder = self._parts()
        questions = read_questions(self.questions, is_regex=self.regex_answers)
        searcher = Searcher(retriever, index, self.blocks, self.device, self.precision)
        searcher.retriever = searcher.retriever.query_only()
        start = starting_bert(encoder, self.bert, self.blocks, self.seed)
        seed_everything(self.seed)
        reader = SpanReader.from_bert(start.bert)
        options = Options(
            self.batch_size,
            self.retriever_beam,
            self.reader_beam,
            self.reader_length,
            self.span_width,
            self.answer_test,
            self.seed,
        )
        steps = self.steps or max(1, round(self.epochs * len(questions) / self.batch_size))
        schedule = Schedule(steps, self.lr, self.warmup, self.seed, self.optimizer)
        objective = FineTuning(searcher, reader, questions, options, self.micro_batch)
        metrics = train(
            objective, schedule, Compute(self.device, self.precision, self.checkpoint_every), out, "finetune"
        )
        tokenizer = tokenizer_folder(self.blocks)
        with writing(out.path / "retriever", dataclasses.replace(out.origin, kind="retriever")) as part:
            part.metrics["block_retriever"] = retriever.content
            searcher.retriever.cpu().save(part.path)
            part.copy_folder("tokenizer", tokenizer)
        with writing(out.path / "reader", dataclasses.replace(out.origin, kind="span-reader")) as part:
            reader.cpu().save(part.path)
            part.copy_folder(".", tokenizer)
        out.adopt("index", index)
        return {"questions": len(questions), **metrics}

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

    From a pre-trained model, or from its parts: --retriever, --index and --encoder given together are the ORQA baseline,
    and each of them alone replaces that part of the model.
    """

    makes = "qa-model"
    resumable = True

    model: Artifact | None = reads("model", help="Pre-trained model.", unless=("retriever", "index", "encoder"))
    blocks: Artifact = reads("blocks", help="Blocks that the index is of.")
    retriever: Artifact | None = reads("retriever", help="Retriever instead of the model's.", named=True)
    index: Artifact | None = reads("index", help="Index instead of the model's.", named=True)
    encoder: Artifact | None = reads("encoder", "reader", help="Encoder for the reader instead of the model's.", named=True)
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
    answer_test: Literal["substring", "tokens"] = setting("When a block counts as holding an answer: raw substring (official) or words.", default="substring")
    regex_answers: bool | None = setting("Answers are regular expressions; default as the file's format says.", default=None)
    seed: int = setting("Seed of everything random.", default=0)
    micro_batch: int = knob("Questions computed at once; 0 = the whole batch.", default=0)
    device: str = knob("auto, cpu or cuda:N.", default="auto")
    precision: Literal["auto", "fp32", "bf16"] = setting("Arithmetic; auto is bf16 where the hardware has it.", default="auto")
    checkpoint_every: int = knob("Steps between checkpoints.", default=500)

    def check(self) -> None:
        if min(self.batch_size, self.reader_beam, self.span_width, self.steps or 1) < 1 or self.epochs <= 0:
            raise ConfigError("--batch-size, --reader-beam, --span-width and --steps must be at least 1, --epochs above 0.")
        if self.retriever_beam < self.reader_beam:
            raise ConfigError(f"--retriever-beam {self.retriever_beam} is below --reader-beam {self.reader_beam}: only retrieved blocks can be read.")
        retriever, index, encoder = self._parts()
        require_same_vocabulary(self.blocks, retriever, encoder)
        require_descent(index, self.blocks, retriever)

    def _parts(self) -> tuple[Artifact, Artifact, Artifact]:
        """Retriever, index and encoder: those named, the model's for the rest."""
        if self.model is None and not (self.retriever and self.index and self.encoder):
            raise ConfigError("finetune needs --model, or --retriever, --index and --encoder together.")
        named = {"retriever": self.retriever, "index": self.index, "reader": self.encoder}
        parts = [given or self.model.part(name) for name, given in named.items() if given or self.model]
        return parts[0], parts[1], parts[2]

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.nn.bert import load_masked_lm
        from realmctl.nn.precision import seed_everything
        from realmctl.nn.span_head import SpanReader
        from realmctl.retrieval.bert import tokenizer_folder
        from realmctl.retrieval.qa import Searcher
        from realmctl.text.questions import read_questions
        from realmctl.train.finetune import FineTuning, Options
        from realmctl.train.loop import Compute, Schedule, train

        retriever, index, encoder = self._parts()
        questions = read_questions(self.questions, is_regex=self.regex_answers)
        searcher = Searcher(retriever, index, self.blocks, self.device, self.precision)
        searcher.retriever = searcher.retriever.query_only()
        seed_everything(self.seed)
        reader = SpanReader.from_bert(load_masked_lm(encoder.path)[0].bert)
        options = Options(
            self.batch_size, self.retriever_beam, self.reader_beam, self.reader_length, self.span_width, self.answer_test, self.seed
        )
        steps = self.steps or max(1, round(self.epochs * len(questions) / self.batch_size))
        schedule = Schedule(steps, self.lr, self.warmup, self.seed, self.optimizer)
        objective = FineTuning(searcher, reader, questions, options, self.micro_batch)
        metrics = train(objective, schedule, Compute(self.device, self.precision, self.checkpoint_every), out, "finetune")
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

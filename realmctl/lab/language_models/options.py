"""What language models add to the core: a reader of `pretrain` and `eval-utility`, one that answers in `eval-em` and `ask`, and questions that measure `adapt`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.extras.chat.settings import SERVED, EndpointSettings, named
from realmctl.extras.utility.settings import UtilitySettings
from realmctl.log import warn
from realmctl.pipeline import Settings, help_texts, reads, runtime, setting, source
from realmctl.questions.scorers import Scorer
from realmctl.retrieval.answering.settings import AskSettings, EvalSettings
from realmctl.shortcuts.adapt_settings import AdaptSettings
from realmctl.training.settings.pretrain import PretrainSettings

if TYPE_CHECKING:
    from realmctl.lab.language_models.reading_model import ReadingOptions
    from realmctl.retrieval.answering.qa_model import AnsweredQuestion, Answering
    from realmctl.retrieval.search.searcher import Searcher

Reading = Literal["mixed", "together"]
"""How a language model reads: each block in a prompt of its own, or all blocks in one."""
READER = "language-model"
"""The name of the reader of pre-training."""
ANSWERS = "qa_model|reader_lm"
"""What answers in `eval-em`."""
SHARE_OF_MANY, SHARE_OF_FEW, HELD_OUT_QUESTIONS = 0.1, 0.3, 300
"""Share of the documents that `adapt` sets aside, of many and of few, and most questions that are written for them."""
FEWEST_QUESTIONS = 50
"""Fewer can hardly show a gain."""


class LmReaderOptions(Settings):
    """A language model that reads."""

    reader_lm: str | None = source(
        "Language model that reads blocks in place of realmctl's own reader: a folder or a hub id, of GPT-2's kind (causal) or of T5's.",
        default=None,
        hub=True,
    )
    block_prompt: str | None = setting(
        "text before what is read with a block, with {title} and {block}. The null document has none. Default: the title, the "
        "block on a new line, and an empty line.",
        default=None,
        used_with="reader_lm",
        left_out_at=None,
        advanced=True,
    )
    reader_length: int = setting(
        "longest input, in tokens of the language model. A block is cut at its end.",
        default=512,
        at_least=16,
        at_most=131_072,
        used_with="reader_lm",
        left_out_at=512,
        advanced=True,
    )


class PretrainLmOptions(LmReaderOptions, PretrainSettings):
    """REALM pre-training with a language model as the reader."""

    spans: Artifact | None = reads(  # type: ignore[assignment]  # a continuation needs none
        "spans",
        help="Tagged sentences to learn from. They may come from another corpus than the blocks.",
        replaced_by=lambda given: given.get("target") == "continuation",
        default=None,
    )
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from.",
        optional=True,
        replaced_by=lambda given: bool(given.get("bert") or given.get("reader_lm")),
        default=None,
    )
    target: Literal["span", "continuation"] = setting(
        "What is hidden. span: a span of a tagged sentence, as --masking says. continuation: the second part of a block, so that no --spans are "
        "needed.",
        default="span",
        left_out_at="span",
        advanced=True,
    )
    target_length: int = setting(
        "most hidden tokens that are asked for.",
        default=64,
        at_least=1,
        at_most=4096,
        used_with="reader_lm",
        left_out_at=64,
        advanced=True,
    )
    train_reader: bool = setting(
        "let the language model learn too. Without it the retriever alone does.",
        default=False,
        used_with="reader_lm",
        left_out_at=False,
        advanced=True,
    )
    reader_cache: float = runtime(
        "Memory in GB for keys and values of blocks of a frozen causal model, which are then computed once. 0: they are kept within a micro-batch.",
        default=0.0,
        at_least=0,
        at_most=1e5,
        used_with="reader_lm",
        advanced=True,
    )

    def check(self) -> None:
        self._check_reader()
        super().check()

    def _check_reader(self) -> None:
        if self.spans is None and self.target == "span":
            raise ConfigError("--target span needs --spans, the tagged sentences in which spans are hidden.")
        if self.target == "continuation":
            named = {"--spans": self.spans, "--official span-draws": "span-draws" in self.official}
            if flag := next((name for name, value in named.items() if value), None):
                raise ConfigError(f"{flag} is for --target span: a continuation hides the second part of blocks.")
        if self.reader_lm is None:
            if self.reader == READER:
                raise ConfigError(f"--reader {READER} needs --reader-lm, the folder of the language model.")
            if self.target == "continuation":
                raise ConfigError("--target continuation needs --reader-lm: a masked reader fills short spans.")
            return
        others = {
            "--encoder": self.encoder,
            "--bert": self.bert,
            "--freeze-reader": self.freeze_reader,
            f"--masking {self.masking}": self.masking != "salient",
            f"--layer-decay {self.layer_decay:g}": self.layer_decay != 1,
        }
        if flag := next((name for name, value in others.items() if value), None):
            raise ConfigError(f"{flag} is for REALM's own reader. Leave it out with --reader-lm.")

    @property
    def per_token(self) -> bool:
        return super().per_token if self.reader_lm is None or self.marginal else False

    @property
    def reader_name(self) -> str:
        return super().reader_name if self.reader_lm is None else READER

    @property
    def freezes_reader(self) -> bool:
        return super().freezes_reader if self.reader_lm is None else not self.train_reader


class UtilityLmOptions(LmReaderOptions, UtilitySettings):
    """Measuring retrieval utility with a language model."""

    model: Artifact | None = reads(
        "model",
        help="Pre-trained model to measure.",
        replaced_by=lambda given: bool(
            given.get("retriever") and given.get("index") and (given.get("encoder") or given.get("reader_lm"))
        ),
        default=None,
    )

    def pretraining(self) -> PretrainSettings:
        if self.reader_lm is None:
            return super().pretraining()
        if self.encoder is not None:
            raise ConfigError("--encoder and --reader-lm are two readers. Leave one of them out.")
        retriever = self.retriever or (self.model.part("retriever") if self.model else None)
        index = self.index or (self.model.part("index") if self.model else None)
        if not (retriever and index):
            raise ConfigError("eval-utility --reader-lm needs --model, or --retriever and --index together.")
        return PretrainLmOptions(
            spans=self.spans,
            blocks=self.blocks,
            retriever=retriever,
            index=index,
            candidates=self.candidates,
            batch_size=self.batch_size,
            device=self.device,
            precision=self.precision,
            marginal="token",
            reader_lm=self.reader_lm,
            block_prompt=self.block_prompt,
            reader_length=self.reader_length,
        )


class LmAnswerOptions(LmReaderOptions):
    """A language model that answers from what it reads."""

    reading: Reading = setting(
        "mixed: each block in a prompt of its own, and the answers mixed by p(z|x) (REPLUG). together: all blocks in one prompt.",
        default="mixed",
        used_with="reader_lm",
        left_out_at="mixed",
        advanced=True,
    )
    prompt: str | None = setting(
        "text with {question} at the question's place, after the block. Default: as in lm-finetune.",
        default=None,
        used_with="reader_lm",
        left_out_at=None,
        advanced=True,
    )
    answer_length: int = setting(
        "longest answer, in tokens of the language model.",
        default=32,
        at_least=1,
        at_most=512,
        used_with="reader_lm",
        left_out_at=32,
        advanced=True,
    )

    def reading_options(self, blocks: int | None) -> ReadingOptions:
        """How the language model reads and answers. blocks: how many it reads; None for as many as usual."""
        from realmctl.lab.language_models.reading_model import ReadingOptions

        return ReadingOptions(
            reading=self.reading,
            blocks=blocks or ReadingOptions.blocks,
            prompt=self.prompt,
            block_prompt=self.block_prompt,
            length=self.reader_length,
            answer_length=self.answer_length,
        )


class EvalLmOptions(LmAnswerOptions, EvalSettings):
    """Evaluating a language model that reads what a searcher finds, as it is."""

    qa_model: Artifact | None = reads(
        "qa-model",
        help="Fine-tuned model to evaluate.",
        replaced_by=lambda given: bool(
            given.get("retrieval") or given.get("reader_lm") or (given.get("retriever") and given.get("index"))
        ),
        default=None,
    )

    scorer: Literal["auto", Scorer] = setting(help_texts.SCORER, default="auto", used_with=ANSWERS)
    reader_beam: int | None = setting(
        "blocks read per question. Default: as in fine-tuning; 5 with --reader-lm.",
        default=None,
        at_least=1,
        used_with=ANSWERS,
    )
    all_scorers: bool = runtime(
        "print the questions on which the scorers disagree, on stderr.", default=False, used_with=ANSWERS, advanced=True
    )

    def check(self) -> None:
        if self.qa_model is not None and self.reader_lm is not None:
            raise ConfigError(
                "--reader-lm reads what a searcher finds. Name --retriever and --index, or --retrieval bm25, instead of --qa-model."
            )
        super().check()

    def system(self) -> Answering | Searcher:
        searcher = super().system()
        if self.reader_lm is None:
            return searcher
        from realmctl.lab.language_models.reading_model import ReadingModel
        from realmctl.retrieval.search.searcher import Searcher
        from realmctl.retrieval.search.text_search import TextSearch

        assert isinstance(searcher, Searcher)  # a qa-model is refused
        search = TextSearch(searcher, searcher.corpus)
        return ReadingModel.open(
            Path(self.reader_lm), search, self.reading_options(self.reader_beam), self.device, self.precision
        )


class AskLmOptions(LmAnswerOptions, AskSettings):
    """A question to a language model as it is, without fine-tuning, which reads what the workspace's search finds."""

    def answer(self) -> AnsweredQuestion:
        if self.reader_lm is None:
            return super().answer()
        from realmctl.lab.language_models.lm_asking import ask_language_model

        for flag, value in (
            ("--qa-model", self.qa_model),
            ("--without", self.without),
            ("--probe", getattr(self, "probe", None)),
        ):
            if value:
                raise ConfigError(f"{flag} is for a fine-tuned model. Leave it out with --reader-lm.")
        return ask_language_model(
            self.question,
            self.reader_lm,
            self.workspace,
            self.top,
            self.reading_options(None),
            blocks=self.blocks,
            index=self.index,
            rerank=self.rerank,
            rerank_depth=self.rerank_depth,
            rerank_fused=self.rerank_fused,
        )


class AdaptLmOptions(EndpointSettings, AdaptSettings):
    """`adapt` measured by questions that a language model writes for documents which training leaves out."""

    lm: str | None = source(
        "Language model that writes questions for a tenth of the documents. Training leaves these out, and is kept only if it finds more of the questions. A folder, a hub id, or with --endpoint the name that the server has for it.",
        default=None,
        hub=True,
        literals=(SERVED,),
    )

    @classmethod
    def checked(cls, values: Mapping[str, object]) -> dict[str, Any]:
        return named(super().checked(values))

    def adapt(self) -> dict[str, Any]:
        if self.endpoint and not self.lm:
            raise ConfigError("--endpoint needs --lm, the name that the server has for the language model.")
        return super().adapt()

    def held_out(self, blocks: Artifact) -> Artifact | None:
        others = super().held_out(blocks)
        if self.lm is None:
            return others
        share = round(min(SHARE_OF_FEW, max(SHARE_OF_MANY, HELD_OUT_QUESTIONS / max(1, blocks.metrics["blocks"]))), 3)
        made = self._written(blocks, self.lm, "held-out-questions", sample=HELD_OUT_QUESTIONS, documents=share)
        if made.metrics["queries"] < FEWEST_QUESTIONS:
            warn(
                f"{made.metrics['queries']} questions can hardly show a gain, so the encoder is kept in most cases. Without --lm all documents train, and sentences and titles measure."
            )
        return made

    def written(self, blocks: Artifact, sample: int, held_out: Artifact) -> Artifact | None:
        return (
            None
            if self.lm is None
            else self._written(blocks, self.lm, "written-questions", sample=sample, held_out=held_out)
        )

    def _written(self, blocks: Artifact, lm: str, name: str, **given: Any) -> Artifact:
        from realmctl.lab.language_models.generate_queries import GenerateQueries

        server: dict[str, Any] = {"endpoint": self.endpoint, "parallel": self.parallel, "timeout": self.timeout}
        return GenerateQueries(blocks=blocks, lm=lm, **server, **given).make(self.workspace / name)

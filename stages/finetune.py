"""`realmctl finetune`: teach a model to answer questions."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer, require_same_vocabulary
from realmctl.errors import ConfigError
from realmctl.retrieval.names import NO_RETRIEVAL
from realmctl.training.settings.base import TrainingStage
from realmctl.training.settings.finetune import FinetuneSettings


class Finetune(FinetuneSettings, TrainingStage):
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
    version = 3  # 3: answers in scripts without blanks, by characters

    def check(self) -> None:
        from realmctl.training.starts.answering import check_start

        if self.freeze_retriever and self.retriever_lr is not None:
            raise ConfigError(
                "--retriever-lr sets the rate of a retriever that is trained. Leave out --freeze-retriever."
            )
        if self.retriever_beam < self.reader_beam:
            raise ConfigError(
                f"--retriever-beam {self.retriever_beam} is below --reader-beam {self.reader_beam}: only retrieved blocks can be read."
            )
        if self.spans is not None and not 0 < self.cloze_per_step < self.batch_size:
            raise ConfigError(
                f"--cloze-share {self.share_of_cloze:g} of --batch-size {self.batch_size} is {self.cloze_per_step}: a step needs at "
                "least one cloze question and one other question."
            )
        if self.retrieval == NO_RETRIEVAL:
            self._check_closed_book()
        check_start(self)
        require_same_vocabulary(self.blocks, *([self.start] if self.start else []))

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

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.training.finetune import finetune

        return finetune(self, out)

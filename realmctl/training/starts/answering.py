"""The searcher and the encoder that fine-tuning starts from: of a model, or from parts that are named one by one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError
from realmctl.pipeline import help_texts, reads, runtime, setting, source
from realmctl.retrieval.names import NO_RETRIEVAL, retrieval_names
from realmctl.training.training_stage import TrainingStage

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from realmctl.retrieval.search.searcher import Searcher, SearchInputs


def _needs_no_model(given: Mapping[str, Any]) -> bool:
    """Whether the specified inputs are enough without a model."""
    dense = given.get("retrieval", "dense") == "dense"
    return (
        bool(given.get("retriever") and given.get("index"))
        if dense
        else bool(given.get("encoder") or given.get("bert"))
    )


class AnsweringStart(TrainingStage, abstract=True):
    """Base of a stage that trains on questions: its searcher and its encoder, and the checks of both."""

    model: Artifact | None = reads(
        "model",
        "qa-model",
        help="Pre-trained model to start from, or a qa-model to train further.",
        replaced_by=_needs_no_model,
    )
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads("retriever", help="Retriever to use instead of the model's.", explicit_only=True)
    index: Artifact | None = reads("index", help="Index to use instead of the model's.", explicit_only=True)
    encoder: Artifact | None = reads(
        "encoder",
        "reader",
        help="Encoder that the reader starts from, instead of the model's reader.",
        explicit_only=True,
    )
    bert: str | None = source(
        "BERT that the reader starts from, instead of --encoder: a folder, a hub id or scratch:SIZE.",
        default=None,
        literals=("scratch:",),
        hub=True,
    )
    retrieval: str = setting(
        "Searcher that finds the blocks. dense: retriever and index. bm25: BM25 over title and text. none: no blocks (closed"
        " book). Other names come from plug-ins.",
        default="dense",
        choices=retrieval_names,
    )
    freeze_retriever: bool = setting(
        "Train only the reader; the retriever does not change.",
        default=False,
    )
    seed: int = setting(help_texts.SEED, default=0, at_least=0)
    index_shards: bool = runtime(help_texts.INDEX_SHARDS, default=False)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def _check_start(self) -> None:
        """Raise ConfigError unless parts are named that suit the searcher, and a start of the reader."""
        from realmctl.retrieval.search.searcher import searcher_type

        searcher = None if self.retrieval == NO_RETRIEVAL else searcher_type(self.retrieval)
        if searcher is None or not searcher.uses_index:
            self._refuse_dense_parts()
        elif self.model is None and not (self.retriever and self.index and (self.encoder or self.bert)):
            raise ConfigError("finetune needs --model, or --retriever and --index together with --encoder or --bert.")
        self._require_start()
        if searcher is not None:
            searcher.check(self._search_inputs(searcher))

    def _refuse_dense_parts(self) -> None:
        if self.retriever or self.index:
            raise ConfigError(
                f"--retrieval {self.retrieval} uses no --retriever and no --index. Leave them out, or use --retrieval dense."
            )

    def _require_start(self) -> None:
        if not (self.model or self.encoder or self.bert):
            raise ConfigError(
                f"finetune --retrieval {self.retrieval} needs --encoder, --bert or --model to start from."
            )

    def _search_inputs(self, searcher: type[Searcher]) -> SearchInputs:
        """Return the inputs of the searcher: --retriever and --index, or else those of the model."""
        from realmctl.retrieval.search.searcher import SearchInputs

        retriever, index = self.retriever, self.index
        if searcher.uses_index and self.model is not None:
            retriever, index = retriever or self.model.part("retriever"), index or self.model.part("index")
        return SearchInputs(
            blocks=self.blocks, retriever=retriever, index=index, device=self.device, precision=self.precision
        )

    def _encoder(self) -> Artifact | None:
        """Return the encoder that the reader starts from: --encoder, or else the model's reader; None with --bert."""
        if self.encoder or self.bert or self.model is None:
            return self.encoder
        return self.model.part("reader")

    def _searcher(self) -> Searcher:
        from realmctl.retrieval.search.searcher import searcher_type
        from realmctl.training.index_shards import open_own_shard

        kind = searcher_type(self.retrieval)
        inputs = self._search_inputs(kind)
        if self.index_shards:
            inputs = dataclasses.replace(inputs, opener=open_own_shard)
        searcher = kind.start(inputs)
        searcher.prepare_training()
        return searcher

    def _start(self, with_head: bool = False) -> BertForMaskedLM:
        from realmctl.models.precision import seed_everything
        from realmctl.training.starts.encoder import starting_bert

        start = starting_bert(self._encoder(), self.bert, self.blocks, self.seed, with_head=with_head)
        seed_everything(self.seed)
        return start

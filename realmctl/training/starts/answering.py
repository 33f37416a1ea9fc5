"""What fine-tuning starts from: a searcher, and a reader or the masked language model of one."""

from __future__ import annotations

import dataclasses

from realmctl.errors import ConfigError
from realmctl.models.bert.modules import Encoder
from realmctl.models.precision import seed_everything
from realmctl.models.span_head import SpanReader
from realmctl.retrieval.names import NO_RETRIEVAL
from realmctl.retrieval.search.block_search import SearchInputs
from realmctl.retrieval.search.searcher import Searcher, searcher_type
from realmctl.training.index_shards import open_own_shard
from realmctl.training.settings.finetune import FinetuneSettings
from realmctl.training.starts.encoder import Head, starting_bert


def check_start(settings: FinetuneSettings) -> None:
    """Raise ConfigError unless parts are named that suit the searcher, and a start of the reader."""
    searcher = None if settings.retrieval == NO_RETRIEVAL else searcher_type(settings.retrieval)
    if searcher is None or not searcher.uses_index:
        if settings.retriever or settings.index:
            raise ConfigError(
                f"--retrieval {settings.retrieval} uses no --retriever and no --index. Leave them out, or use --retrieval dense."
            )
    elif settings.model is None and not (settings.retriever and settings.index and (settings.encoder or settings.bert)):
        raise ConfigError("finetune needs --model, or --retriever and --index together with --encoder or --bert.")
    if not (settings.model or settings.encoder or settings.bert):
        raise ConfigError(
            f"finetune --retrieval {settings.retrieval} needs --encoder, --bert or --model to start from."
        )
    if searcher is not None:
        searcher.check(_inputs(searcher, settings))


def starting_searcher(settings: FinetuneSettings) -> Searcher:
    """Return the searcher, ready to be trained."""
    kind = searcher_type(settings.retrieval)
    inputs = _inputs(kind, settings)
    if settings.index_shards:
        inputs = dataclasses.replace(inputs, opener=open_own_shard)
    searcher = kind.start(inputs)
    searcher.prepare_training()
    return searcher


def starting_span_reader(settings: FinetuneSettings) -> SpanReader:
    """Return the reader: that of a qa-model, which has its span head already, or a new head on an encoder."""
    if settings.start and settings.start.kind == "span-reader":
        return SpanReader.load(settings.start.path)
    return SpanReader.from_bert(answering_masked_lm(settings).base_model)


def answering_masked_lm(settings: FinetuneSettings, head: Head = "any") -> Encoder:
    """Return the encoder that the reader starts from. `head`: what is asked of its masked-language-model head."""
    start = starting_bert(settings.start, settings.bert, settings.blocks, settings.seed, head=head)
    seed_everything(settings.seed)
    return start


def _inputs(searcher: type[Searcher], settings: FinetuneSettings) -> SearchInputs:
    """Return the inputs of the searcher: --retriever and --index, or else those of the model."""
    retriever, index = settings.retriever, settings.index
    if searcher.uses_index and settings.model is not None:
        retriever = retriever or settings.model.part("retriever")
        index = index or settings.model.part("index")
    return SearchInputs.of(settings, retriever=retriever, index=index)

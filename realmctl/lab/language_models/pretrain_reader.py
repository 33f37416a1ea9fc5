"""A language model as the reader of pre-training: texts of queries and blocks instead of wordpieces.

How it reads is in `realmctl.lab.language_models.models`: `causal.py` and `seq2seq.py`.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.artifacts import Writer, writing
from realmctl.corpus.corpus import Corpus
from realmctl.lab.language_models.generative import PART
from realmctl.lab.language_models.models.causal import CausalReader
from realmctl.lab.language_models.models.files import require_named_prompt, save_language_model
from realmctl.lab.language_models.models.known import load_reader
from realmctl.lab.language_models.models.prompts import BlockPrompt
from realmctl.lab.language_models.models.reading import LmReader, ReadBlock, ReadingLimits
from realmctl.lab.language_models.options import PretrainLmOptions
from realmctl.lab.language_models.passages import HalvedBlocks
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.precision import frozen_dtype, pick_device
from realmctl.models.retriever import Retriever
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import Queries, TaggedQueries
from realmctl.training.objective import Sums
from realmctl.training.readers import PretrainReader
from realmctl.training.settings.pretrain import PretrainSettings


class LanguageModelReader(PretrainReader):
    """A causal or a sequence-to-sequence model. Its tokenizer is its own, whatever the retriever's is."""

    module: LmReader

    def __init__(self, settings: PretrainLmOptions, queries: Queries, corpus: Corpus) -> None:
        folder, trained = Path(str(settings.reader_lm)), not settings.freezes_reader
        require_named_prompt(folder, {"--block-prompt": settings.block_prompt})
        self.module = load_reader(
            folder,
            BlockPrompt.named(settings.block_prompt),
            ReadingLimits(settings.reader_length, settings.target_length),
            settings.dropout,
            torch.float32 if trained else frozen_dtype(pick_device(settings.device), settings.precision),
        )
        self.module.require_pairs()
        if isinstance(self.module, CausalReader) and not trained:
            self.module.kept.budget = settings.reader_cache * 1e9
        self.queries, self.corpus, self.is_trained = queries, corpus, trained

    @classmethod
    def of(cls, settings: PretrainSettings, corpus: Corpus, collator: Collator, retriever: Retriever) -> Self:
        assert isinstance(settings, PretrainLmOptions)  # its options name the reader
        queries = (
            TaggedQueries(settings.spans, corpus) if settings.spans else HalvedBlocks(corpus, retriever.query_length)
        )
        return cls(settings, queries, corpus)

    def hidden(self, query: Query) -> int:
        return len(self.module.tokens(self.queries.text(query))[1])

    def read(self, asked: QueryBatch, rows_BN: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        found = self.corpus.blocks({row for row in rows_BN.ravel().tolist() if row >= 0})
        place_of = {row: place for place, row in enumerate(found)}
        places_BN = np.array([[place_of.get(row, -1) for row in rows] for rows in rows_BN.tolist()], dtype=np.int64)
        blocks = [ReadBlock(block.title, block.text) for block in found.values()]
        return self.module.log_prob([self.queries.text(query) for query in asked.queries], blocks, places_BN)

    def save(self, out: Writer) -> None:
        if not self.is_trained:  # it stays where it is
            return
        with writing(out.path / PART, dataclasses.replace(out.origin, kind=PART)) as part:
            save_language_model(self.module.cpu().model, part.path)

    def sums(self) -> Sums:
        cut, read = self.module.cut_share()
        return {"cut_blocks": (float(cut), float(read))} if read else {}

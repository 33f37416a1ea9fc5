"""`realmctl eval-utility`: measure the gain from retrieval on sentences that were not trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from realmctl.artifacts import Artifact, Writer, require_descent, require_same_vocabulary, require_titles
from realmctl.errors import ConfigError
from realmctl.pipeline import Stage, check_device, help_texts, reads, runtime, setting


class EvalUtility(Stage):
    """Measure retrieval utility: how much better hidden salient spans are filled with retrieved blocks than without.

    The model is a pre-trained one, or consists of --retriever, --index and --encoder.
    """

    makes = "utility"
    headline = (
        "retrieval_utility",
        "top_1_utility",
        "own_utility",
        "told_utility",
        "random_utility",
        "gain_auc",
        "null_share",
        "log_prob",
        "queries",
    )
    version = (
        3  # 2: one precision, and metrics of the reader's gains on blocks with the answer; 3: utility by kind of block
    )

    model: Artifact | None = reads(
        "model", help="Pre-trained model to measure.", replaced_by=("retriever", "index", "encoder")
    )
    spans: Artifact = reads("spans", help="Tagged sentences to measure on. Choose sentences that were not trained on.")
    blocks: Artifact = reads("blocks", help="Blocks to retrieve.")
    retriever: Artifact | None = reads("retriever", help="Retriever to use instead of the model's.", explicit_only=True)
    index: Artifact | None = reads("index", help="Index to use instead of the model's.", explicit_only=True)
    encoder: Artifact | None = reads(
        "encoder", "reader", help="Encoder to read with, instead of the model's reader.", explicit_only=True
    )
    candidates: int = setting("Candidates per query, the null document included.", default=8, at_least=2)
    queries: int = setting("Spans to measure, drawn at random. 0 measures all of them.", default=0, at_least=0)
    batch_size: int = runtime("Sentences per batch.", default=16, at_least=1)
    device: str = runtime(help_texts.DEVICE, default="auto", check=check_device)
    precision: Literal["auto", "fp32", "bf16"] = setting(help_texts.PRECISION, default="auto")

    def check(self) -> None:
        retriever, index, reader = self._parts()
        require_same_vocabulary(self.blocks, self.spans, retriever, reader)
        require_titles(self.blocks)
        require_descent(index, self.blocks, retriever)

    def _parts(self) -> tuple[Artifact, Artifact, Artifact]:
        model, retriever, index, reader = self.model, self.retriever, self.index, self.encoder
        if model is not None:
            return retriever or model.part("retriever"), index or model.part("index"), reader or model.part("reader")
        if not (retriever and index and reader):
            raise ConfigError("eval-utility needs --model, or --retriever, --index and --encoder together.")
        return retriever, index, reader

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.corpus.corpus import Corpus
        from realmctl.models.inputs import Collator
        from realmctl.models.precision import pick_device
        from realmctl.models.reader import Reader
        from realmctl.models.retriever import Retriever
        from realmctl.spans.tagged_queries import TaggedQueries
        from realmctl.tokens import wordpiece
        from realmctl.training.evaluation.utility import measure_utility
        from realmctl.training.objectives.pretrain import PretrainObjective, PretrainOptions
        from realmctl.training.refresh.index_in_use import IndexInUse
        from realmctl.training.starts.encoder import starting_bert

        retriever, index, reader = self._parts()
        queries = TaggedQueries(self.spans)
        objective = PretrainObjective(
            Retriever.load(retriever.path),
            Reader.from_masked_lm(starting_bert(reader, None, self.blocks, 0)),
            queries,
            Corpus(self.blocks),
            Collator.of(wordpiece.load(self.blocks.path)),
            IndexInUse(index, str(pick_device(self.device))),
            PretrainOptions(
                batch_size=self.batch_size,
                candidates=self.candidates,
                marginal="token",
                masking="salient",
                seed=0,
                precision=self.precision,
            ),
        )
        measured = measure_utility(objective, self.device, self.batch_size, self.queries)
        out.file("utility.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        return measured

"""`realmctl eval-beir`: measure a retriever on test collections."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, require_package
from realmctl.extras.ir.eval_run import check_measures
from realmctl.index.names import INDEX_TYPES
from realmctl.pipeline import InWorkspace, Show, argument, extended, help_texts, reads, resolve, setting, source
from realmctl.pipeline.comparing import aligned
from realmctl.retrieval.names import RERANK_DEPTH, search_methods


@extended("eval-beir")
class EvalBeir(InWorkspace):
    """Measure a retriever on test collections, as BEIR does, and print a table. The table is an artifact too.

    The same as `import`, `collect`, `chunk`, `embed`, `build-index`, `rank` and `eval-run` for each collection. After an interruption
    the same command goes on; a second run finds everything made. Of documents with the id of their query only relevant ones count.
    """

    computes = True
    makes: ClassVar[str] = "collection-scores"
    """The kind of the table, of which a baseline is too."""

    datasets: tuple[str, ...] = argument(
        "BEIR folders, or folders of such; ir:NAME of ir_datasets; hf:OWNER/NAME of the hub; nanobeir, its thirteen sets."
    )
    retriever: Path | None = reads(
        "retriever", help="Retriever to measure, or a model. Default: --encoder.", explicit_only=True, default=None
    )
    encoder: str | None = source(
        "Folder or hub id of a sentence encoder to measure. " + help_texts.SENTENCE_ENCODER, default=None, hub=True
    )
    language: str = setting(help_texts.LANGUAGE, default="auto")
    method: str = setting(
        "Method of the search, as of rank: dense, bm25 or hybrid, or that of a plug-in.",
        default="dense",
        choices=search_methods,
    )
    bm25_stemmer: str | None = setting(help_texts.BM25_STEMMER, default=None, advanced=True)
    rerank: str | None = source(help_texts.RERANK, default=None, hub=True)
    rerank_depth: int | None = setting(help_texts.RERANK_DEPTH, default=None, at_least=1, used_with="rerank")
    rerank_fused: bool = setting(help_texts.RERANK_FUSED, default=False, used_with="rerank")
    max_wordpieces: int | None = setting(
        "Cut documents into blocks of at most as many wordpieces, and rank a document by its best block. Default: documents stay whole, as in published numbers.",
        default=None,
        at_least=32,
    )
    type: str = setting("Type of index, as of build-index.", default="exact", choices=INDEX_TYPES.names, advanced=True)
    measures: str = setting(
        "Measures by their names in ir-measures, separated by spaces.",
        default="nDCG@10 AP R@100",
        check=check_measures,
    )
    split: str = setting("Split of the judgements, unless there is only one.", default="test", advanced=True)
    format: Literal["text", "csv"] = setting(help_texts.TABLE_FORM, default="text")

    def run(self, show: Show) -> None:
        from realmctl.extras.ir import beir_shortcut as beir
        from realmctl.retrieval.search.reranking import Reranking
        from realmctl.shortcuts.shipped import default_encoder, imported_retriever

        if self.retriever and self.encoder:
            raise ConfigError("--retriever and --encoder both name what is measured. Leave out one of them.")
        collections = beir.named_collections(self.datasets)
        if any(one.startswith("ir:") for one in collections.values()):
            require_package("ir_datasets", "ir", "eval-beir ir:NAME")
        measured_one = (
            resolve(self.retriever, ("retriever",), "--retriever")
            if self.retriever
            else imported_retriever(self.encoder or default_encoder([], self.language), self.workspace)
        )
        variables = {"language": self.language, "method": self.method, "type": self.type, "measures": self.measures}
        if self.bm25_stemmer:
            variables["bm25_stemmer"] = self.bm25_stemmer
        if self.rerank:
            Reranking.of(self.rerank, None)  # refuses what cannot rerank before a collection is embedded
            variables |= {"rerank": self.rerank, "rerank_depth": str(self.rerank_depth or RERANK_DEPTH)}
            variables["rerank_fused"] = str(self.rerank_fused).lower()
        if self.max_wordpieces:
            variables |= {"keep_passages": "false", "max_wordpieces": str(self.max_wordpieces)}
        measured = [
            beir.measure(name, one, measured_one, self.workspace, self.split, variables)
            for name, one in collections.items()
        ]
        made, lines = beir.make_table(measured, measured_one, self.workspace), beir.table(measured)
        show(
            {"path": str(made.path), "retriever": str(measured_one.path), "table": lines, "mean": made.metrics},
            lambda _: aligned(lines) if self.format == "text" else beir.table_csv(lines).rstrip("\n"),
        )
        self.print_summary(made)

    def print_summary(self, made: Artifact) -> None:
        """Nothing. A room compares here."""

    def measure_names(self) -> list[str]:
        """Names of the measures as they are printed."""
        from realmctl.extras.ir.ranking.measures import parsed

        return [str(measure) for measure in parsed(self.measures)]

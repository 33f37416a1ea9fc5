"""`realmctl chunk`: cut a corpus into blocks of whole sentences, with their wordpieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.artifacts.hashing import digest_source
from realmctl.artifacts.series import is_whole, readable_versions
from realmctl.artifacts.temporary import temporary_folder
from realmctl.corpus.sentences import punkt_folder
from realmctl.corpus.settings import ChunkSettings, language_of
from realmctl.errors import ConfigError
from realmctl.execution.shards import LOCAL, executor_names
from realmctl.log import untold
from realmctl.pipeline import Stage, help_texts, runtime, source
from realmctl.pipeline.fields import MOST_WORKERS
from realmctl.pipeline.trial import NotTried, Trial
from realmctl.tokens.names import TOKENIZER_FILES, UNREAD_VOCABULARIES
from realmctl.tokens.recipes import trained_kind


class Chunk(ChunkSettings, Stage):
    """Cut documents into blocks of whole sentences.

    The corpus can be MediaWiki dumps, WikiExtractor's output, KILT's pages, JSON lines (BEIR, Pyserini), CSV and TSV with named
    columns, Parquet, Arrow and dataset folders of Hugging Face (extra `parquet`), the TSV of DPR and MS MARCO, TREC text,
    JSON in SQuAD's layout, plain text, and what else `--format` lists. Files may be compressed by gzip, bzip2, xz or zstd. `--tokenizer train:N` learns a vocabulary in a first pass, from a sample of about 200 MB.
    """

    makes = "blocks"
    headline = ("blocks", "documents", "mean_wordpieces", "quarantined", "language")
    version = 11  # 2: no sentence, and no part of a split sentence, starts with a closing bracket. 3: headings stay with their text. 4: full-width marks. 5: wrapped text. 6: initials and Georgian, named navigation and signs of HTML, footnote marks of PDFs, names of files. 7: what Sphinx shows of reStructuredText, hidden lines of mdBook, marks of footnotes in HTML. 8: what office documents, filled forms and signatures show; no format characters in words. 10: sections, terms with their definitions, short blocks, no bars that most pages have. 11: fields, pages of PDFs

    corpus: tuple[Path, ...] = source("Files or folders with a dump, JSON lines, TSV or text.", positional=True)
    tokenizer: str = source(
        "Tokenizer: the folder or hub id of an encoder, or train:N to learn N wordpieces; train:bpe:N learns byte-level BPE as RoBERTa has, "
        "train:unigram:N what XLM-R has.",
        default="train:30522",
        literals=("train:",),
        hub=True,
        files=(*TOKENIZER_FILES, *UNREAD_VOCABULARIES),
    )
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0, at_most=MOST_WORKERS)
    executor: str = runtime(help_texts.EXECUTOR, default=LOCAL, choices=executor_names)

    def check(self) -> None:
        if not self.corpus:
            raise ConfigError("chunk needs a corpus: name at least one file or folder.")
        if self.long_titles == "keep" and self.long_sentences != "keep":
            raise ConfigError(
                "--long-titles keep may leave no room for sentences, so none could be split to fit. Add --long-sentences keep."
            )
        is_trained = self.tokenizer.startswith("train:")
        if not is_trained and not self.lowercase:
            raise ConfigError(
                "--no-lowercase is for a tokenizer that is trained here (train:N). An existing "
                "tokenizer has its own casing. Leave out --no-lowercase."
            )
        if is_trained and trained_kind(self.tokenizer) is None:
            raise ConfigError(
                f"--tokenizer {self.tokenizer}: write the number of wordpieces to learn, 100 to 1000000, "
                f"such as train:30522, train:bpe:30522 or train:unigram:30522."
            )

    def origin(self) -> Origin:
        """Return the origin. A Punkt model is identified by its content instead of its path."""
        origin, folder = super().origin(), punkt_folder(self.sentence_splitter)
        if folder is None:
            return origin
        settings = {**origin.settings, "sentence_splitter": "punkt"}
        inputs = {**origin.inputs, "sentence_splitter": digest_source(folder)}
        return dataclasses.replace(origin, settings=settings, inputs=inputs)

    def find(self, out: Path, origin: Origin) -> Artifact | None:
        """Return the version of this recipe, without edits or with those of the newest version, which must stay."""
        from realmctl.corpus.kept_edits import KeptEdits

        newest = _edited_newest(out)
        if newest is None:
            return super().find(out, origin)
        kept = KeptEdits.of(newest)
        return newest if kept and kept.source == origin.recipe and is_whole(newest) else None

    def estimate(self) -> dict[str, float]:
        """Estimate the disk space: text is compressed to a third, and a wordpiece takes two bytes for about five characters."""
        from realmctl.corpus.work_units import expanded_bytes

        return {"disk_bytes": 0.7 * sum(map(expanded_bytes, self.corpus))}

    def preview(self) -> dict[str, str]:
        from realmctl.corpus.reading import preview

        return preview(self.corpus, self)

    def trial(self) -> Trial:
        from realmctl.corpus.chunking import try_to_chunk

        if self.executor != LOCAL:
            raise NotTried(help_texts.WORKERS_ARE_UNKNOWN)
        return try_to_chunk(self.corpus, self.tokenizer, self, self.workers)

    def shrunk(self, folder: Path) -> tuple[Self, float]:
        from realmctl.corpus.sample import sample_of

        found = sample_of(self.corpus, folder)
        return dataclasses.replace(self, corpus=found.files, executor=LOCAL), found.times

    def run(self, out: Writer) -> Mapping[str, object]:
        from realmctl.corpus.chunking import chunk_corpus

        edited = _edited_newest(out.path.parent)
        if edited is None:
            return chunk_corpus(self.corpus, self.tokenizer, self, out, self.workers, self.executor)
        return self._run_with_edits(edited, out)

    def _run_with_edits(self, edited: Artifact, out: Writer) -> Mapping[str, object]:
        """Cut the corpus in a folder beside, and apply the edits of the newest version to its blocks."""
        from realmctl.corpus.kept_edits import apply_again
        from realmctl.corpus.revising import revise_blocks

        with temporary_folder(out.path.parent) as folder:
            with untold():
                fresh = self.make_in(folder / "made")
            if not apply_again(fresh, edited, folder / "edits.jsonl"):
                for name in fresh.manifest.files:
                    out.link(name, fresh.file(name))
                return fresh.metrics
            settings = ChunkSettings.of({**fresh.settings, "language": language_of(fresh)})
            out.origin = dataclasses.replace(out.origin, inputs={**out.origin.inputs, "former": edited.content})
            found = revise_blocks(fresh, settings, (), folder / "edits.jsonl", out, self.workers)
        return {**fresh.metrics, **found}


def _edited_newest(series: Path) -> Artifact | None:
    """The newest version of a series, if it has edits."""
    from realmctl.corpus.kept_edits import KeptEdits

    newest = next(readable_versions(series), None)
    return newest if newest and KeptEdits.of(newest) else None

"""`realmctl chunk`: cut a corpus into blocks of whole sentences, with their wordpieces."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Origin, Writer
from realmctl.errors import ConfigError, InputError, require_package
from realmctl.execution.shards import Executor
from realmctl.log import progress, say, warn
from realmctl.pipeline import Stage, help_texts, runtime, setting, source

if TYPE_CHECKING:
    from realmctl.corpus.chunking import ChunkedUnit
    from realmctl.corpus.formats.records import FieldNames
    from realmctl.corpus.reading import PageCounts
    from realmctl.tokens.wordpiece import WordPiece

TRAINING_BYTES = 200_000_000


class Chunk(Stage):
    """Cut documents into blocks of whole sentences.

    The corpus can be MediaWiki dumps, WikiExtractor's output, KILT's pages, JSON lines (BEIR, Pyserini), CSV and TSV with named
    columns, Parquet, Arrow and dataset folders of Hugging Face (extra `parquet`), the TSV of DPR and MS MARCO, TREC text,
    JSON in SQuAD's layout and plain text. Files may be compressed by gzip, bzip2, xz or zstd. `--tokenizer train:N` learns a vocabulary in a first pass, from a sample of about 200 MB.
    """

    makes = "blocks"
    headline = ("blocks", "documents", "mean_wordpieces", "quarantined")
    version = 2  # 2: no sentence, and no part of a split sentence, starts with a closing bracket

    corpus: tuple[Path, ...] = source("Files or folders with a dump, JSON lines, TSV or text.", positional=True)
    tokenizer: str = source(
        "Tokenizer: the folder or hub id of a BERT, or train:N to learn N wordpieces.",
        default="train:30522",
        literals=("train:",),
        hub=True,
    )
    max_wordpieces: int = setting(
        "Longest block in wordpieces, [CLS], two [SEP] and the title included.", default=288, at_least=32
    )
    long_sentences: Literal["split", "keep"] = setting(
        "What happens to a sentence longer than a block. split: it is cut. keep: it becomes a block that is too long.",
        default="split",
    )
    long_titles: Literal["cut", "keep"] = setting(
        "What happens to a title longer than half a block. cut: it is shortened. keep: each sentence becomes a block of its own.",
        default="cut",
    )
    keep_passages: bool = setting(
        "The corpus is cut already: each document is one block with the document's own id. One longer than a block loses the "
        "sentences that do not fit.",
        default=False,
    )
    sentence_splitter: str = setting(
        "Sentence splitter: rules, spacy, or punkt:FOLDER for NLTK's with a model such as nltk_data's punkt_tab/english.",
        default="rules",
    )
    lowercase: bool = setting("Lower-case the text. Only for a tokenizer that is trained here.", default=True)
    format: Literal[
        "auto",
        "dump",
        "wikiextractor",
        "kilt",
        "json-lines",
        "squad",
        "dpr",
        "table",
        "ms-marco",
        "parquet",
        "doc-text",
        "trec",
        "text",
    ] = setting(
        "Format of the corpus files; auto detects it.",
        default="auto",
    )
    id_field: str = setting(
        "Field or column of JSON lines, CSV, TSV or Parquet that holds the id.",
        default="",
    )
    title_field: str = setting(
        "Field or column that holds the title.",
        default="",
    )
    text_field: str = setting(
        "Field or column that holds the text.",
        default="",
    )
    keep_lists: bool = setting("Keep pages whose title begins with List of, Index of or Outline of.", default=False)
    page_seconds: float = setting(
        "Time limit for cleaning one page, in seconds of CPU time. A page that takes longer is set aside.",
        default=10.0,
        above=0,
        at_most=86_400,
    )
    workers: int = runtime(help_texts.WORKERS, default=0, at_least=0)
    executor: Executor = runtime(help_texts.EXECUTOR, default="local")

    def check(self) -> None:
        if not self.corpus:
            raise ConfigError("chunk needs a corpus: name at least one file or folder.")
        if self.long_titles == "keep" and self.long_sentences != "keep":
            raise ConfigError(
                "--long-titles keep may leave no room for sentences, so none could be split to fit. Add --long-sentences keep."
            )
        self._check_splitter()
        size = self.tokenizer.removeprefix("train:")
        if size == self.tokenizer and not self.lowercase:
            raise ConfigError(
                "--no-lowercase is for a tokenizer that is trained here (train:N). An existing "
                "tokenizer has its own casing. Leave out --no-lowercase."
            )
        if size != self.tokenizer and not (size.isdecimal() and 100 <= int(size) <= 1_000_000):
            raise ConfigError(
                f"--tokenizer {self.tokenizer}: write the number of wordpieces to learn, 100 to 1000000, "
                f"such as train:30522."
            )

    def _check_splitter(self) -> None:
        from realmctl.corpus.sentences import PUNKT_FILES

        folder = self._punkt()
        if folder is None and self.sentence_splitter not in ("rules", "spacy"):
            raise ConfigError(f"--sentence-splitter {self.sentence_splitter}: use rules, spacy or punkt:FOLDER.")
        if folder is not None:
            require_package("nltk", "punkt", "--sentence-splitter punkt")
            if missing := [name for name in PUNKT_FILES if not (folder / name).is_file()]:
                raise InputError(
                    f"{folder} is not a Punkt model: it has no {', '.join(missing)}. Name a language's folder of nltk_data's punkt_tab."
                )

    def _punkt(self) -> Path | None:
        kind, _, folder = self.sentence_splitter.partition(":")
        return Path(folder) if kind == "punkt" and folder else None

    def origin(self) -> Origin:
        """Return the origin. A Punkt model is identified by its content instead of its path."""
        from realmctl.artifacts.hashing import digest_source

        origin, folder = super().origin(), self._punkt()
        if folder is None:
            return origin
        settings = {**origin.settings, "sentence_splitter": "punkt"}
        inputs = {**origin.inputs, "sentence_splitter": digest_source(folder)}
        return dataclasses.replace(origin, settings=settings, inputs=inputs)

    def estimate(self) -> dict[str, float]:
        """Estimate the disk space: text is compressed to a third, and a wordpiece takes two bytes for about five characters."""
        from realmctl.corpus.work_units import expanded_bytes

        return {"disk_bytes": 0.7 * sum(map(expanded_bytes, self.corpus))}

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.artifacts.records import RecordWriter
        from realmctl.corpus.blocks_file import BlocksWriter
        from realmctl.corpus.reading import PageCounts

        wordpiece = self._tokenizer()
        wordpiece.save(out.file("tokenizer/tokenizer.json").parent)
        tally, counts = PageCounts(), Counter[str]()
        with (
            BlocksWriter(out.file, wordpiece.dtype) as blocks,
            RecordWriter(out.file("quarantine.jsonl.zst")) as quarantine,
            progress(None, "chunk", "documents") as bar,
        ):
            for chunked in self._chunked(out.path / "tokenizer", tally):
                for block in chunked.blocks:
                    blocks.write(block)
                for page in chunked.quarantined:
                    warn(f"page {page.id} {page.title!r} is set aside: {page.reason}")
                    quarantine.write({"id": page.id, "title": page.title, "reason": page.reason})
                counts.update(chunked.counts)
                bar.advance(chunked.counts["documents"])
        if shortened := counts["shortened_passages"]:
            verb = "passage is" if shortened == 1 else "passages are"
            warn(f"{shortened} {verb} longer than a block and lost the end. A larger --max-wordpieces keeps it.")
        return self._metrics(out, tally, counts)

    def _tokenizer(self) -> WordPiece:
        from realmctl.corpus.work_units import expanded_bytes
        from realmctl.tokens import wordpiece, wordpiece_training

        if not self.tokenizer.startswith("train:"):
            return wordpiece.load(Path(self.tokenizer))
        size = int(self.tokenizer.removeprefix("train:"))
        stride = max(1, -(-sum(map(expanded_bytes, self.corpus)) // TRAINING_BYTES))
        say(f"chunk: learning {size} wordpieces from {'all documents' if stride == 1 else f'one document in {stride}'}")
        return wordpiece_training.train(self._training_texts(stride), size, self.lowercase)

    def _training_texts(self, stride: int) -> Iterator[str]:
        from realmctl.corpus.chunking import texts_of
        from realmctl.corpus.reading import PageCounts, documents
        from realmctl.corpus.work_units import units
        from realmctl.execution.shards import map_units

        pages = documents(self.corpus, PageCounts(), self.keep_lists, self.format, self._names())
        chosen = (page for number, page in enumerate(pages) if number % stride == 0)
        for texts in map_units(texts_of, units(chosen), self.workers, executor=self.executor):
            yield from texts

    def _chunked(self, tokenizer: Path, tally: PageCounts) -> Iterator[ChunkedUnit]:
        from realmctl.corpus.chunking import ChunkingSettings, chunk_unit, prepare
        from realmctl.corpus.reading import CorpusFiles
        from realmctl.corpus.work_units import corpus_units
        from realmctl.execution.shards import map_units

        setup = ChunkingSettings(
            tokenizer=tokenizer,
            splitter=self.sentence_splitter,
            max_wordpieces=self.max_wordpieces,
            long_sentences=self.long_sentences,
            page_seconds=self.page_seconds,
            long_titles=self.long_titles,
            keep_passages=self.keep_passages,
        )
        said = self.tokenizer.startswith("train:")  # by the pass that learned the wordpieces
        corpus = CorpusFiles(self.corpus, tally, self.keep_lists, self.format, self._names(), say_formats=not said)
        for chunked in map_units(
            chunk_unit,
            corpus_units(corpus, local=self.executor == "local"),
            self.workers,
            initializer=prepare,
            initargs=(setup,),
            executor=self.executor,
        ):
            if chunked.read:
                chunked.read.add_to(corpus)
            yield chunked
        corpus.finish()

    def _names(self) -> FieldNames:
        from realmctl.corpus.formats.records import FieldNames

        return FieldNames(self.id_field, self.title_field, self.text_field)

    def _metrics(self, out: Writer, tally: PageCounts, counts: Counter[str]) -> Mapping[str, Any]:
        import numpy as np

        ends = np.load(out.path / "offsets.npy", allow_pickle=False)
        if len(ends) < 2:
            raise InputError(
                f"{', '.join(map(str, self.corpus))}: none of its {tally.pages} pages holds text to keep. Name a corpus "
                f"with articles."
            )
        dropped = tally.dropped + Counter(no_prose=counts.pop("no_prose", 0))
        if tally.pages != counts["documents"] + counts["quarantined"] + dropped.total():
            raise RuntimeError(f"pages were lost: {tally.pages} came in, {counts}, dropped {dropped}")
        uids = np.load(out.path / "uids.npy", allow_pickle=False)
        return {
            "pages": tally.pages,
            "dropped": dict(sorted(dropped.items())),
            **dict(sorted(counts.items())),
            "blocks": len(uids),
            "duplicate_blocks": len(uids) - len(np.unique(uids)),
            "wordpieces": int(ends[-1]),
            "mean_wordpieces": round(int(ends[-1]) / len(uids), 1),
            "longest_wordpieces": int(np.diff(ends).max()),
        }

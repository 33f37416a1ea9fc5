"""`realmctl chunk`: a corpus becomes blocks of whole sentences, with their wordpieces."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from realmctl.artifacts import Origin, Writer
from realmctl.errors import ConfigError, InputError, require_package
from realmctl.log import progress, say, warn
from realmctl.stage import Stage, runtime, setting, source

FormatName = Literal[
    "auto", "dump", "wikiextractor", "json-lines", "squad", "dpr", "table", "ms-marco", "doc-text", "trec", "text"
]

if TYPE_CHECKING:
    from realmctl.text.corpus.chunking import Chunked
    from realmctl.text.corpus.formats import PageCounts
    from realmctl.text.tokens.wordpiece import WordPiece

TRAINING_BYTES = 200_000_000


class Chunk(Stage):
    """Cut documents into blocks of whole sentences.

    Reads MediaWiki dumps, WikiExtractor's output, JSON lines (BEIR, KILT, Pyserini), CSV and TSV with named columns,
    DPR's and MS MARCO's TSV, TREC text, SQuAD-layout JSON and plain text; as they are or compressed by gzip, bzip2,
    xz or zstd. `--tokenizer train:N` learns a vocabulary in a first pass over the corpus (a sample of
    about 200 MB of it).
    """

    makes = "blocks"
    version = 2  # 2: no sentence, and no part of a split sentence, starts with a closing bracket

    corpus: tuple[Path, ...] = source("Dump, JSON lines, TSV or text; files or folders.", positional=True)
    tokenizer: str = source(
        "Folder or hub id of a BERT, or train:N to learn N wordpieces.",
        default="train:30522",
        literals=("train:",),
        hub=True,
    )
    max_wordpieces: int = setting("Longest block, [CLS], two [SEP] and the title included.", default=288)
    long_sentences: Literal["split", "keep"] = setting(
        "A sentence longer than a block: split, or keep as a block too long.", default="split"
    )
    long_titles: Literal["cut", "keep"] = setting(
        "A title of more than half a block: cut, or keep, which leaves each sentence a block to itself.",
        default="cut",
        later=True,
    )
    sentence_splitter: str = setting(
        "Who finds the sentences: rules, spacy, or punkt:FOLDER, NLTK's with a model such as nltk_data's punkt_tab/english.",
        default="rules",
    )
    lowercase: bool = setting("Lower-case the text for a tokenizer trained here.", default=True)
    format: FormatName = setting(
        "Format of the corpus files; auto tells it from their first bytes.", default="auto", later=True
    )
    keep_lists: bool = setting("Keep pages titled List of, Index of or Outline of.", default=False)
    page_seconds: float = setting("A page that takes longer to clean is set aside.", default=10.0)
    workers: int = runtime("Processes; 0 = all cores.", default=0)

    def check(self) -> None:
        if not self.corpus:
            raise ConfigError("chunk needs a corpus: name at least one file or folder.")
        if self.max_wordpieces < 32:
            raise ConfigError(
                f"--max-wordpieces {self.max_wordpieces} leaves no room for sentences; use 32 or more (288 is REALM's)."
            )
        if self.long_titles == "keep" and self.long_sentences != "keep":
            raise ConfigError(
                "--long-titles keep may leave no room for sentences, so none could be split to fit. Add --long-sentences keep."
            )
        self._check_splitter()
        if self.page_seconds <= 0:
            raise ConfigError(f"--page-seconds {self.page_seconds:g} must be positive.")
        size = self.tokenizer.removeprefix("train:")
        if size == self.tokenizer and not self.lowercase:
            raise ConfigError(
                "--no-lowercase is for a tokenizer trained here (train:N); a tokenizer that is given has "
                "its own casing."
            )
        if size != self.tokenizer and not (size.isdecimal() and 100 <= int(size) <= 1_000_000):
            raise ConfigError(
                f"--tokenizer {self.tokenizer}: write the number of wordpieces to learn, 100 to 1000000, "
                f"such as train:30522."
            )

    def _check_splitter(self) -> None:
        from realmctl.text.tokens.sentences import PUNKT_FILES

        folder = self._punkt()
        if folder is None and self.sentence_splitter not in ("rules", "spacy"):
            raise ConfigError(f"--sentence-splitter {self.sentence_splitter}: use rules, spacy or punkt:FOLDER.")
        if folder is not None:
            require_package("nltk", "punkt", "--sentence-splitter punkt")
            if missing := [name for name in PUNKT_FILES if not (folder / name).is_file()]:
                raise InputError(
                    f"{folder} is no Punkt model: it has no {', '.join(missing)}. Name a language's folder of nltk_data's punkt_tab."
                )

    def _punkt(self) -> Path | None:
        kind, _, folder = self.sentence_splitter.partition(":")
        return Path(folder) if kind == "punkt" and folder else None

    def origin(self) -> Origin:
        """A Punkt model counts by its content, not by its name."""
        from realmctl.storage.hashing import digest_source

        origin, folder = super().origin(), self._punkt()
        if folder is None:
            return origin
        settings = {**origin.settings, "sentence_splitter": "punkt"}
        inputs = {**origin.inputs, "sentence_splitter": digest_source(folder)}
        return dataclasses.replace(origin, settings=settings, inputs=inputs)

    def estimate(self) -> dict[str, float]:
        """Text is compressed about three times, wordpieces are two bytes for about five characters of text."""
        from realmctl.text.corpus.chunking import expanded_bytes

        return {"disk_bytes": 0.7 * sum(map(expanded_bytes, self.corpus))}

    def run(self, out: Writer) -> Mapping[str, Any]:
        from realmctl.storage.records import RecordWriter
        from realmctl.text.corpus.blocks_file import BlocksWriter
        from realmctl.text.corpus.formats import PageCounts

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
        return self._metrics(out, tally, counts)

    def _tokenizer(self) -> WordPiece:
        from realmctl.text.corpus.chunking import expanded_bytes
        from realmctl.text.tokens import wordpiece, wordpiece_training

        if not self.tokenizer.startswith("train:"):
            return wordpiece.load(Path(self.tokenizer))
        size = int(self.tokenizer.removeprefix("train:"))
        stride = max(1, -(-sum(map(expanded_bytes, self.corpus)) // TRAINING_BYTES))
        say(f"chunk: learning {size} wordpieces from {'all documents' if stride == 1 else f'one document in {stride}'}")
        return wordpiece_training.train(self._training_texts(stride), size, self.lowercase)

    def _training_texts(self, stride: int) -> Iterator[str]:
        from realmctl.execution.shards import map_units
        from realmctl.text.corpus.chunking import texts_of, units
        from realmctl.text.corpus.documents import raw_documents
        from realmctl.text.corpus.formats import PageCounts

        raws = raw_documents(self.corpus, PageCounts(), self.keep_lists, self.format)
        chosen = (raw for number, raw in enumerate(raws) if number % stride == 0)
        for texts in map_units(texts_of, units(chosen), self.workers):
            yield from texts

    def _chunked(self, tokenizer: Path, tally: PageCounts) -> Iterator[Chunked]:
        from realmctl.execution.shards import map_units
        from realmctl.text.corpus.chunking import ChunkingSettings, chunk_unit, prepare, units
        from realmctl.text.corpus.documents import raw_documents

        setup = ChunkingSettings(
            tokenizer,
            self.sentence_splitter,
            self.max_wordpieces,
            self.long_sentences,
            self.page_seconds,
            self.long_titles,
        )
        raws = raw_documents(self.corpus, tally, self.keep_lists, self.format)
        return map_units(chunk_unit, units(raws), self.workers, initializer=prepare, initargs=(setup,))

    def _metrics(self, out: Writer, tally: PageCounts, counts: Counter[str]) -> Mapping[str, Any]:
        import numpy as np

        ends = np.load(out.path / "offsets.npy", allow_pickle=False)
        if len(ends) < 2:
            raise InputError(
                f"{', '.join(map(str, self.corpus))}: no text is left of {tally.pages} pages. Name a corpus "
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

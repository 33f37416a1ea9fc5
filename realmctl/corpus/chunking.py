"""Cut a corpus into blocks: what `realmctl chunk` does, and what `realmctl revise` does alike.

The documents are dealt out to workers in units (work_units.py). The result of a unit depends only on the unit and the settings,
so it is the same for any number of workers.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from realmctl.artifacts import Writer
from realmctl.artifacts.records import RecordWriter
from realmctl.corpus.blocks import Block, Cutter, cutter
from realmctl.corpus.blocks_file import BlocksWriter
from realmctl.corpus.corpus_file import corpus_files
from realmctl.corpus.document import Document, SkippedPage, cleaned
from realmctl.corpus.fields_file import TYPES, types_in
from realmctl.corpus.formats.detect import format_of
from realmctl.corpus.languages import AUTO, language_codes, plain_language
from realmctl.corpus.reading import CorpusFiles, PageCounts
from realmctl.corpus.settings import ChunkSettings
from realmctl.corpus.wiki.dump import stated_language
from realmctl.corpus.work_units import CorpusUnit, Pages, ReadFiles, corpus_units, expanded_bytes, units
from realmctl.errors import AccessError, InputError
from realmctl.execution.shards import LOCAL, map_units, worker_count
from realmctl.log import progress, say, warn
from realmctl.pipeline.trial import Trial
from realmctl.tokens import training
from realmctl.tokens.recipes import TokenizerRecipe, trained_kind
from realmctl.tokens.tokenizer import Tokenizer

TRAINING_BYTES = 200_000_000
"""Text from which a tokenizer is learned, about."""
FEWEST_OF_FOLDER, NEARLY_ALL = 3, 0.9
"""Of so many documents one is named that has a larger share of the text."""
NAMED = 3
"""Files that are set aside, of which each is named."""
WARNED_UNKNOWN = 0.02
"""Share of unknown wordpieces above which a warning is given."""
WARNED_PIECES = 1.2
"""Wordpieces of a character above which a warning is given. An encoder has at most about one where it knows the language: Chinese."""
TRIAL_SECONDS = 3.0
TRIAL_CHARS = 2**22
"""A trial reads some documents, for so long or so many characters."""
GOLDEN = 0.618034
"""Multiples of it, without their whole part, spread evenly from the first few on."""


@dataclass
class ChunkedUnit:
    """The blocks of a unit, its skipped pages, and counts. `read`: what was found in files that the worker read.

    `counts` has documents, sentences, words, characters (but spaces), anchors, split_sentences and quarantined. `pages` has the documents that made no
    block.
    """

    blocks: list[Block] = field(default_factory=list)
    quarantined: list[SkippedPage] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    pages: PageCounts = field(default_factory=PageCounts)
    read: ReadFiles | None = None

    def add(self, source: Document, blocks: list[Block], was_empty: bool = False) -> None:
        """Add the blocks of one document. A document without blocks is dropped: its text was empty, or no prose was in it."""
        if not blocks:
            self.pages.drop("empty" if was_empty else "no_prose", source.id)
            return
        self.blocks += blocks
        self.counts["documents"] += 1
        spaces = source.text.count(" ") + source.text.count("\n")
        self.counts["words"] += spaces + 1
        self.counts["characters"] += len(source.text) - spaces
        self.counts["sentences"] += sum(len(block.sentences) for block in blocks)
        self.counts["anchors"] += sum(len(block.anchors) for block in blocks)


def chunk_corpus(
    corpus: Sequence[Path],
    tokenizer: str,
    settings: ChunkSettings,
    out: Writer,
    workers: int = 0,
    executor: str = LOCAL,
) -> dict[str, object]:
    """Write the blocks of a corpus, its quarantined pages and the tokenizer, and return the metrics.

    Args:
        corpus: files and folders.
        tokenizer: folder of a tokenizer, or train:N, train:bpe:N or train:unigram:N to learn N wordpieces from the corpus.
        settings: how the corpus is read and cut.
        out: the folder to write to.
        workers: processes; 0 means one for each core.
        executor: where the workers run.

    Raises:
        InputError: a file is damaged, or no page holds text to keep.
    """
    settings = in_its_language(corpus, settings)
    first_pass = None
    if tokenizer.startswith("train:"):
        first_pass = CorpusFiles(corpus, settings, PageCounts())
        words = _learned(recipe_of(tokenizer, settings), first_pass, workers, executor)
    else:
        words = Tokenizer.load(Path(tokenizer))
    words.save(out.file("tokenizer/tokenizer.json").parent)
    pages = PageCounts()
    files = CorpusFiles(corpus, settings, pages, first_pass)

    def chunked() -> Iterator[ChunkedUnit]:
        given = corpus_units(files, local=executor == LOCAL)
        for unit in map_chunks(given, out.path / "tokenizer", settings, workers, executor, words):
            if unit.read:
                unit.read.add_to(files)
            yield unit
        files.finish()

    counts = write_blocks(chunked(), out, words, "chunk", pages)
    if shortened := counts["shortened_passages"]:
        verb = "passage is" if shortened == 1 else "passages are"
        warn(f"{shortened} {verb} longer than a block and lost the end. A larger --max-wordpieces keeps it.")
    pages.tell()
    fields = types_in(out.path / TYPES)
    if lacking := [name for name in settings.kept_fields if name.lower() not in fields]:
        warn(f"no document has a value of {' or '.join(lacking)}, which --keep-fields names.")
    if pages.pages != counts["documents"] + counts["quarantined"] + pages.dropped.total():
        raise RuntimeError(f"pages were lost: {pages.pages} came in, {counts}, dropped {pages.dropped}")
    if not counts["documents"]:
        raise InputError(
            f"{', '.join(map(str, corpus))}: none of its {pages.pages} pages holds text to keep. Name a corpus with articles."
        )
    tokens = np.load(out.path / "tokens.npy", mmap_mode="r", allow_pickle=False)
    unknown = int(np.count_nonzero(tokens == words.unk))
    another = "Use the tokenizer of an encoder that knows the language, or train one (train:30522)."
    if unknown > WARNED_UNKNOWN * len(tokens):
        warn(
            f"{unknown} of {len(tokens)} wordpieces are {words.names[1]}: {tokenizer} lacks characters of this text. {another}"
        )
    elif first_pass is None and len(tokens) > WARNED_PIECES * counts["characters"]:
        warn(
            f"{tokenizer} cuts a character into {len(tokens) / counts['characters']:.1f} wordpieces: it does not know this writing. {another}"
        )
    return {
        "pages": pages.pages,
        "language": settings.language,
        "unknown_wordpieces": unknown,
        "bad_files": pages.bad_files,
        **({"incomplete": len(pages.incomplete)} if pages.incomplete else {}),
        "dropped": dict(sorted(pages.dropped.items())),
        **dict(sorted(counts.items())),
        **size_metrics(out.path),
    }


def in_its_language(corpus: Sequence[Path], settings: ChunkSettings) -> ChunkSettings:
    """Return the settings with the language of the corpus: the one named, or what the first file says if it is a dump, or English.

    What is no file, such as a named pipe, is not opened: where such entries of a folder are skipped, the first file is the first that can be read.
    """
    if settings.language != AUTO:
        return settings
    first = next((file for file in corpus_files(corpus, settings) if not file.problem), None)
    try:
        stated = stated_language(first.path) if first and settings.format in ("auto", "dump") else ""
    except (InputError, AccessError):  # the file cannot be read, which its reader reports or skips
        stated = ""
    return ChunkSettings.of({**vars(settings), "language": stated if stated in language_codes() else "en"})


def try_to_chunk(corpus: Sequence[Path], tokenizer: str, settings: ChunkSettings, workers: int = 0) -> Trial:
    """Tell how long `chunk_corpus` takes on this machine, from documents of files that are spread over all, since a folder holds many kinds.

    They are read, cleaned and cut in this process. Their share of the corpus follows from its size and compression. Cleaning and cutting
    count as divided among the workers, and reading does not. What a tokenizer takes is extrapolated from half of them and all.
    """
    settings = in_its_language(corpus, settings)
    files = CorpusFiles(corpus, settings, PageCounts())
    files.say_formats = False
    files.files = [file for _, file in sorted(enumerate(files.files), key=lambda each: each[0] * GOLDEN % 1)]
    pages, chars, tried, is_enough, start = Pages(), 0, 0, False, time.monotonic()
    for file in files.files:
        kind, before = format_of(file), chars
        for page in files.read(file, kind):
            pages.append(page)
            chars += len(page.text) if isinstance(page, Document) else 0
            if is_enough := chars >= TRIAL_CHARS or time.monotonic() - start >= TRIAL_SECONDS:
                break
        tried += chars - before if is_enough and not kind.is_one else expanded_bytes(file.path)
        if is_enough:
            break
    else:
        files.finish()
    times = max(1.0, sum(expanded_bytes(file.path) for file in files.files) / max(1, tried))
    read = times * (time.monotonic() - start)
    together = worker_count(workers)
    if not tokenizer.startswith("train:"):
        words, learning = Tokenizer.load(Path(tokenizer)), 0.0
    else:
        recipe = recipe_of(tokenizer, settings)
        chosen = min(times, max(1.0, TRAINING_BYTES / max(1, chars)))
        start = time.monotonic()
        texts = texts_of(pages)
        cleaning = time.monotonic() - start
        start = time.monotonic()
        training.train(texts[::2], recipe)
        half = time.monotonic() - start
        words = training.train(texts, recipe)
        whole = time.monotonic() - start - half
        learning = read + chosen * cleaning / together + whole + 2 * (chosen - 1) * max(0.0, whole - half)
    cut, start = cutter(words, settings), time.monotonic()
    for page in pages:
        found = cleaned(page)
        if isinstance(found, Document):
            for _ in cut.blocks(found):
                pass
    cutting = times * (time.monotonic() - start) / together
    return Trial(learning, (read + cutting) / max(1.0, times * chars), times * chars, "characters")


def recipe_of(tokenizer: str, settings: ChunkSettings) -> TokenizerRecipe:
    """Return how the tokenizer named train:N, train:bpe:N or train:unigram:N is learnt from a corpus with these settings."""
    found = trained_kind(tokenizer)
    assert found, tokenizer  # the stage has checked it
    kind, size = found
    return TokenizerRecipe(kind, size, settings.lowercase, keep_marks=plain_language(settings.language) != "en")


def _learned(recipe: TokenizerRecipe, corpus: CorpusFiles, workers: int, executor: str) -> Tokenizer:
    """Learn a tokenizer from the corpus, or from documents that are evenly spaced in a large one."""
    stride = max(1, -(-sum(map(expanded_bytes, corpus.paths)) // TRAINING_BYTES))
    say(
        f"chunk: learning {recipe.size} wordpieces from {'all documents' if stride == 1 else f'one document in {stride}'}"
    )
    chosen = (page for number, page in enumerate(corpus.documents()) if number % stride == 0)
    texts = map_units(texts_of, units(chosen), workers, executor=executor, here=True)
    return training.train((text for unit in texts for text in unit), recipe)


def texts_of(unit: Pages) -> list[str]:
    """Return the titles and texts of a unit, for training a tokenizer."""
    found = [page for page in map(cleaned, unit) if isinstance(page, Document)]
    return [text for document in found for text in (document.title, document.text)]


def map_chunks(
    given: Iterable[CorpusUnit],
    tokenizer: Path,
    settings: ChunkSettings,
    workers: int,
    executor: str,
    loaded: Tokenizer | None = None,
) -> Iterator[ChunkedUnit]:
    """Yield the blocks of each unit in order, made by workers with the tokenizer of a folder. `loaded` is the same, for workers that have the memory of this process."""
    global _loaded
    _loaded = (tokenizer, loaded) if loaded else None
    args = tokenizer, settings
    return map_units(chunk_unit, given, workers, initializer=prepare, initargs=args, executor=executor, here=True)


_loaded: tuple[Path, Tokenizer] | None = None
_cutter: Cutter


def prepare(tokenizer: Path, settings: ChunkSettings) -> None:
    """Build the cutter of this process, since a cutter cannot be sent to one. `map_units` calls this once in each worker."""
    global _cutter
    words = _loaded[1] if _loaded and _loaded[0] == tokenizer else Tokenizer.load(tokenizer)
    _cutter = cutter(words, settings)


def chunk_unit(unit: CorpusUnit) -> ChunkedUnit:
    """Return the blocks of a unit, made by the cutter that `prepare` built."""
    chunked = ChunkedUnit()
    split, shortened = _cutter.split_sentences, _cutter.shortened_passages
    if isinstance(unit, list):
        pages: Iterable[Document | SkippedPage] = unit
    else:
        chunked.read = ReadFiles()
        pages = chunked.read.pages(unit)
    for page in pages:
        found = cleaned(page)
        if isinstance(found, SkippedPage):
            chunked.quarantined.append(found)
        else:
            was_empty = isinstance(page, Document) and not page.text.strip()
            chunked.add(found, list(_cutter.blocks(found)), was_empty)
    chunked.counts["quarantined"] = len(chunked.quarantined)
    chunked.counts["split_sentences"] = _cutter.split_sentences - split
    if _cutter.settings.keep_passages:
        chunked.counts["shortened_passages"] = _cutter.shortened_passages - shortened
    return chunked


def write_blocks(
    chunked: Iterable[ChunkedUnit],
    out: Writer,
    words: Tokenizer,
    label: str,
    pages: PageCounts,
    on_block: Callable[[Block], None] = lambda block: None,
) -> Counter[str]:
    """Write blocks and quarantined pages, and return the counts of all units together.

    Args:
        chunked: the units in order.
        out: the folder to write to.
        words: the tokenizer of the blocks.
        label: the name of the stage, for its progress.
        pages: receives the documents that made no block.
        on_block: called with each block.
    """
    counts, bad_files = Counter[str](), 0
    texts, longest, own = array("Q"), (0, ""), (0, "")  # characters and id of a document
    with (
        BlocksWriter(out.file, words.dtype) as blocks,
        RecordWriter(out.file("quarantine.jsonl.zst")) as quarantine,
        progress(None, label, "documents") as bar,
    ):
        for unit in chunked:
            for block in unit.blocks:
                blocks.write(block)
                on_block(block)
                texts.append(int.from_bytes(hashlib.blake2b(block.text.encode(), digest_size=8).digest()))
                before = own[0] if own[1] == block.document else 0
                own = (before + len(block.text), block.document)
                longest = max(longest, own)
                counts["of_documents"] += len(block.text)
            for page in unit.quarantined:
                named = (
                    f"page {page.id} {page.title!r}"
                    if page.title
                    else f"{'file' if page.is_file else 'page'} {page.id}"
                )
                bad_files += page.is_file
                if not page.is_file or bad_files <= NAMED:
                    warn(f"{named} is set aside: {page.reason}")
                quarantine.write({"id": page.id, "title": page.title, "reason": page.reason})
            counts.update(unit.counts)
            pages.add(unit.pages)
            bar.advance(unit.counts["documents"])
    if bad_files > NAMED:
        warn(f"{bad_files - NAMED:,} further files are set aside. quarantine.jsonl.zst of the blocks lists all.")
    all_text = counts.pop("of_documents", 0)
    if counts["documents"] >= FEWEST_OF_FOLDER and longest[0] > NEARLY_ALL * all_text:
        share = f"{longest[0] / all_text:.0%} of the text"
        warn(f"{longest[1]} is {share}. Leave it out if people do not look for what it says: most blocks are of it.")
    if copies := len(texts) - len(np.unique(np.frombuffer(texts, np.uint64))):
        counts["copied_blocks"] = copies
    return counts


def size_metrics(folder: Path) -> dict[str, object]:
    """Return the metrics that describe the blocks in a folder. There must be at least one."""
    ends, uids = (np.load(folder / name, allow_pickle=False) for name in ("offsets.npy", "uids.npy"))
    return {
        "blocks": len(uids),
        "duplicate_blocks": len(uids) - len(np.unique(uids)),
        "wordpieces": int(ends[-1]),
        "mean_wordpieces": round(int(ends[-1]) / len(uids), 1),
        "longest_wordpieces": int(np.diff(ends).max()),
        **({"fields": fields} if (fields := types_in(folder / TYPES)) else {}),
    }

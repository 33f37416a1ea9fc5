"""Find the salient spans of all blocks: what `realmctl tag` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.languages import plain_language
from realmctl.corpus.settings import language_of
from realmctl.errors import ConfigError, InputError
from realmctl.execution.shards import LOCAL, map_units
from realmctl.log import progress, say, warn
from realmctl.spans.dates import has_date_rules
from realmctl.spans.salient import Tagger
from realmctl.spans.settings import TAGGERS, TagSettings
from realmctl.spans.spans_file import SpansWriter
from realmctl.spans.tagged_sentences import COUNTED, TaggedSentence, tagged_sentences
from realmctl.spans.taggers import (
    NameFinder,
    SentenceTagger,
    by_document,
    has_anchors,
    spacy_finder,
)
from realmctl.tokens.tokenizer import Tokenizer

BLOCKS_PER_UNIT = 512


def tag_blocks(
    blocks: Artifact,
    settings: TagSettings,
    out: Writer,
    workers: int = 0,
    executor: str = LOCAL,
    recognizer: Callable[[], NameFinder] | None = None,
) -> dict[str, object]:
    """Write the sentences of blocks that have salient spans, and return the metrics.

    Args:
        blocks: the blocks.
        settings: which spans are found and kept.
        out: the folder to write to.
        workers: processes; 0 means one for each core.
        executor: where the workers run.
        recognizer: loads the model of the tagger hf, in each worker.

    Raises:
        InputError: no span is found.
        ConfigError: the rules of capital letters are asked for in a language other than English.
    """
    corpus, language = Corpus(blocks), language_of(blocks)
    _tell_rules(settings, language)
    tagged = map_units(
        _tag_unit,
        ((start, start + BLOCKS_PER_UNIT) for start in range(0, len(corpus), BLOCKS_PER_UNIT)),
        workers,
        initializer=_start_worker,
        initargs=(blocks, settings, recognizer),
        executor=executor,
        here=":" not in settings.tagger,  # a model takes memory in each process
    )
    counts: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
    with (
        SpansWriter(out.file, Tokenizer.load(blocks.path).dtype) as spans,
        progress(len(corpus), "tag", "blocks") as bar,
    ):
        for sentences, unit_counts in tagged:
            for sentence in sentences:
                spans.write(sentence, corpus.uid[sentence.block])
            counts.update(unit_counts)
            bar.advance(unit_counts["blocks"])
    tagger = settings.tagger
    if tagger == "auto":
        linked, others = counts["documents_with_anchors"], counts["documents_without_anchors"]
        rest = "rules" if plain_language(language) == "en" else "titles"
        say(f"tag: --tagger auto tagged {linked} documents by their link anchors, and {others} without any by {rest}")
        tagger = f"anchors and {rest}" if linked and others else "anchors" if linked else rest
    if not counts["spans"]:
        dropped = [f"{name} {count}" for name, count in counts.items() if name.startswith("dropped_") and count]
        raise InputError(
            f"--tagger {tagger} finds no salient span in the {counts['blocks']} blocks of {blocks} "
            f"({', '.join(dropped) or 'none dropped'}), so there is nothing to pre-train on. "
            "Try another --tagger, or other --labels, --max-masks or --query-length."
        )
    for name in filter(lambda name: name.startswith("tokenizer/"), blocks.manifest.files):
        out.link(name, blocks.file(name))
    return {"tagger": tagger, **counts, "spans_per_block": counts["spans"] / counts["blocks"]}


def _tell_rules(settings: TagSettings, language: str) -> None:
    """Say which rules a language does not have. Raises ConfigError where nothing but such a rule is asked for."""
    if settings.tagger == "rules" and plain_language(language) != "en":
        raise ConfigError(
            f"--tagger rules finds names by the capital letters of English, and the blocks are in {language} (chunk --language). Use --tagger "
            "anchors for a corpus with links, or --tagger hf:NAME_OR_PATH for a model of that language."
        )
    if settings.dates and not has_date_rules(language):
        warn(
            f"there are no rules for dates in {language}, so only names are found, by --tagger {settings.tagger}. anchors finds them by "
            "the links of a wiki, hf:NAME_OR_PATH by a model of that language, which may find dates too."
        )


class _Worker:
    """The tagger and the tokenizer of one process, which tags units of `blocks`."""

    def __init__(self, blocks: Artifact, settings: TagSettings, recognizer: Callable[[], NameFinder] | None) -> None:
        self.corpus, self.settings, self.wordpiece = Corpus(blocks), settings, Tokenizer.load(blocks.path)
        self.language = language_of(blocks)
        kind, _, model = settings.tagger.partition(":")
        if recognizer is not None:
            self.tagger: Tagger = SentenceTagger(recognizer())
        else:
            self.tagger = (
                SentenceTagger(spacy_finder(model)) if kind == "spacy" else TAGGERS.load(kind, Tagger)(self.language)
            )

    def tag(self, start: int, stop: int) -> tuple[list[TaggedSentence], Counter[str]]:
        """Return the spans of the documents that begin in blocks `start` to `stop`, and counts by outcome."""
        counts: Counter[str] = Counter()
        first, blocks = documents_beginning_in(self.corpus, start, stop)
        found = list(tagged_sentences(blocks, self.tagger, self.wordpiece, self.settings, counts, first, self.language))
        for document in by_document(blocks):
            counts["documents_with_anchors" if has_anchors(document) else "documents_without_anchors"] += 1
        return found, counts


_worker: _Worker


def _start_worker(blocks: Artifact, settings: TagSettings, recognizer: Callable[[], NameFinder] | None) -> None:
    global _worker
    _worker = _Worker(blocks, settings, recognizer)


def _tag_unit(unit: tuple[int, int]) -> tuple[list[TaggedSentence], Counter[str]]:
    return _worker.tag(*unit)


def documents_beginning_in(corpus: Corpus, start: int, stop: int) -> tuple[int, list[Block]]:
    """Return the row of the first document that begins in rows `start` to `stop`, and all blocks of such documents.

    So a map over ranges of rows receives each complete document once, wherever the ranges are cut.
    """
    stop = min(stop, len(corpus))
    first = next(_beginnings(corpus, start, stop), stop)
    last = next(_beginnings(corpus, stop, len(corpus)), len(corpus)) if first < stop else stop
    return first, [corpus.block(row) for row in range(first, last)]


def _beginnings(corpus: Corpus, start: int, stop: int) -> Iterator[int]:
    before = corpus.block(start - 1).document if start else None
    for row in range(start, stop):
        document = corpus.block(row).document
        if document != before:
            yield row
        before = document

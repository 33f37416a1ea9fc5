"""Taggers that find names: by link anchors, by capital letters, or with a spaCy pipeline.

Anchors need no model, because the authors of a Wikipedia page have marked its names as links. The tagger that
classifies tokens is in `realmctl.models.ner`, because it needs torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import regex

from realmctl.corpus.blocks import Block
from realmctl.corpus.languages import plain_language
from realmctl.errors import InputError, as_realmctl_error
from realmctl.spans.proper_names import DocumentCasing, looks_like_name, name_runs, trimmed
from realmctl.spans.salient import ENTITY, SalientSpan, Tagger
from realmctl.spans.settings import find_spacy_model
from realmctl.tokens.scripts import JOINED

NameFinder = Callable[[Sequence[str]], Iterable[Iterable[tuple[int, int, str]]]]
"""A function from sentences to the (start, end, label) of the names in each."""

ENTITY_PIPES = {"ner", "entity_ruler"}
INPUT_PIPES = {"tok2vec", "transformer", "curated_transformer"}
"""The spaCy pipes that find entities, and the pipes whose output they may need."""

_DISAMBIGUATION = regex.compile(r"\s*\([^)]*\)$")
_WORD = regex.compile(r"(?<![\w'’-])\w+")
_JOINED = regex.compile(f"[{JOINED}]")
_INSIDE_A_RUN = "(?<![\uac00-\ud7af](?=[\uac00-\ud7af]))(?<![\u30a1-\u30ff](?=[\u30a1-\u30ff]))"
_GOES_ON = "(?!(?<=[\u30a1-\u30ff])[\u30a1-\u30ff])"


def by_document(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Group consecutive blocks of the same document."""
    for _, document in groupby(blocks, key=lambda block: block.document):
        yield list(document)


class RuleTagger(Tagger):
    """Tag runs of capitalised words, with the casing of the whole document as evidence. For text without links."""

    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        found = []
        for document in by_document(blocks):
            casing = DocumentCasing(sentence for block in document for sentence in block.sentence_texts())
            found += [list(_runs(block, casing)) for block in document]
        return found


def _runs(block: Block, casing: DocumentCasing) -> Iterator[SalientSpan]:
    for offset, end in block.sentences:
        for run_start, run_end in name_runs(block.text[offset:end], casing):
            yield SalientSpan(offset + run_start, offset + run_end, ENTITY)


class AnchorTagger(Tagger):
    """Tag links whose label is written as a name, and further mentions of these names and of the title.

    Wikipedia links a name only at its first mention, and never links the title of the page itself. Dates of the language are
    no names.
    """

    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        return [spans for document in by_document(blocks) for spans in _tag_document(document, self.language)]


class AutoTagger(Tagger):
    """Tag each document by its links if it has some, or else by capital letters, in English. For a corpus of several sources.

    In another language a document without links is tagged by its title alone, since the rules of capital letters are those of English.
    """

    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        by_anchors = AnchorTagger(self.language)
        by_rules = RuleTagger() if plain_language(self.language) == "en" else by_anchors
        return [
            spans
            for document in by_document(blocks)
            for spans in (by_anchors if has_anchors(document) else by_rules).tag(document)
        ]


def has_anchors(document: Iterable[Block]) -> bool:
    """Return whether a block of a document has a link."""
    return any(block.anchors for block in document)


def _tag_document(document: Sequence[Block], language: str) -> Iterator[list[SalientSpan]]:
    casing = DocumentCasing((sentence for block in document for sentence in block.sentence_texts()), language)
    names = _NameList()
    title = _DISAMBIGUATION.sub("", document[0].title)
    if looks_like_name(title, title, 0, casing):
        names.add(title)
    for block in document:
        linked = list(_linked_names(block, casing))
        for span in linked:
            names.add(block.text[span.start : span.end])
        yield [*linked, *names.mentions(block.text)]


def _linked_names(block: Block, casing: DocumentCasing) -> Iterator[SalientSpan]:
    for first, last, _ in block.anchors:
        start, end = trimmed(block.text, first, last)
        offset = max((s for s, _ in block.sentences if s <= start), default=0)
        if looks_like_name(block.text[start:end], block.text[offset:end], start - offset, casing):
            yield SalientSpan(start, end, ENTITY)


class _NameList:
    """The names to look for in a text, by their first word; those in a script that does not part words by blanks by their letters."""

    def __init__(self) -> None:
        self._by_first_word: dict[str, set[str]] = defaultdict(set)
        self._joined: set[str] = set()

    def add(self, name: str) -> None:
        if _JOINED.match(name):
            self._joined |= {name} if len(name) > 1 else set()
        elif first := _WORD.search(name):
            self._by_first_word[first[0]].add(name[first.start() :])

    def mentions(self, text: str) -> Iterator[SalientSpan]:
        """Yield every occurrence of a name in its own spelling: as whole words, or where scripts join words, not inside a run of Hangul
        or katakana that begins before it or, for katakana, goes on.
        """
        if self._joined:
            longest_first = sorted(self._joined, key=lambda name: (-len(name), name))
            names = "|".join(map(regex.escape, longest_first))
            for match in regex.finditer(rf"{_INSIDE_A_RUN}(?:{names}){_GOES_ON}", text):
                yield SalientSpan(match.start(), match.end(), ENTITY)
        for word in _WORD.finditer(text):
            for name in self._by_first_word.get(word[0], ()):
                end = word.start() + len(name)
                if text.startswith(name, word.start()) and not text[end : end + 1].isalnum():
                    yield SalientSpan(word.start(), end, ENTITY)


class SentenceTagger(Tagger):
    """A tagger of blocks made from a function that finds names in single sentences."""

    def __init__(self, find: NameFinder) -> None:
        super().__init__()
        self._find = find

    def tag(self, blocks: Sequence[Block]) -> list[list[SalientSpan]]:
        places = [(row, start) for row, block in enumerate(blocks) for start, _ in block.sentences]
        texts = [text for block in blocks for text in block.sentence_texts()]
        found: list[list[SalientSpan]] = [[] for _ in blocks]
        for (row, offset), spans in zip(places, self._find(texts), strict=True):
            found[row] += [SalientSpan(offset + start, offset + end, label) for start, end, label in spans]
        return found


def spacy_finder(model: str, batch_size: int = 256) -> NameFinder:
    """Return a function that finds the entities of a spaCy pipeline. Only NER and entity rulers run; nothing is
    downloaded.

    Args:
        model: name of an installed pipeline, or its folder.
        batch_size: sentences in a batch.

    Raises:
        InputError: the pipeline cannot be loaded, or it finds no entities.
    """
    import spacy

    find_spacy_model(model)
    try:
        pipeline = spacy.load(model)
    except (OSError, ValueError, ImportError) as error:
        raise as_realmctl_error(error, model) or InputError(
            f"tagger spacy:{model}: spaCy cannot load this pipeline ({str(error).splitlines()[0]}). "
            "Name a folder saved by nlp.to_disk(), or a pipeline made for the installed spaCy."
        ) from None
    pipeline.select_pipes(enable=[name for name in pipeline.pipe_names if name in ENTITY_PIPES | INPUT_PIPES])
    if not ENTITY_PIPES & set(pipeline.pipe_names):
        raise InputError(
            f"tagger spacy:{model}: this pipeline has no pipe {' or '.join(sorted(ENTITY_PIPES))}. Name a pipeline that has one."
        )

    def find(texts: Sequence[str]) -> Iterator[list[tuple[int, int, str]]]:
        for document in pipeline.pipe(texts, batch_size=batch_size):
            yield [(entity.start_char, entity.end_char, entity.label_) for entity in document.ents]

    return find

"""Taggers that find names: by link anchors, by capital letters, or with a spaCy pipeline.

Anchors need no model, because the authors of a Wikipedia page have marked its names as links. The tagger that
classifies tokens is in `realmctl.models.ner`, because it needs torch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import regex

from realmctl.corpus.blocks import Block
from realmctl.corpus.languages import plain_language
from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.spans.proper_names import DocumentCasing, looks_like_name, name_runs, trimmed
from realmctl.spans.salient import ENTITY, SalientSpan, Tagger
from realmctl.spans.settings import find_spacy_model
from realmctl.tokens.scripts import JOINED

NameFinder = Callable[[Sequence[str]], Iterable[Iterable[tuple[int, int, str]]]]
"""A function from sentences to the (start, end, label) of the names in each."""

ENTITY_PIPES = {"ner", "beam_ner", "entity_ruler", "span_ruler", "future_entity_ruler"}
INPUT_PIPES = {"tok2vec", "transformer", "curated_transformer"}
"""The factories of spaCy's pipes that find entities, and of those whose output all of them may need."""
OF_TEXT = {
    "ORTH",
    "TEXT",
    "NORM",
    "LOWER",
    "SHAPE",
    "PREFIX",
    "SUFFIX",
    "LENGTH",
    "OP",
    "REGEX",
    "FUZZY",
    "SPACY",
    "LANG",
}
"""What a pattern of a ruler asks of a token that its text alone says, beside what begins with `IS_` or `LIKE_`. Other pipes work out the rest."""

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
    """Return a function that finds the entities of a spaCy pipeline. Only NER and entity rulers run, and what they need; nothing is
    downloaded.

    Args:
        model: name of an installed pipeline, or its folder.
        batch_size: sentences in a batch.

    Raises:
        InputError: the pipeline cannot be loaded, or it finds no entities. So does the function where the pipeline fails.
    """
    import spacy

    find_spacy_model(model)
    try:
        pipeline = spacy.load(model)
    except Exception as error:  # what its parts raise
        raise as_realmctl_error(error, model) or InputError(
            f"tagger spacy:{model}: spaCy cannot load this pipeline ({one_line(error)}). "
            "Name a folder saved by nlp.to_disk(), or a pipeline made for the installed spaCy."
        ) from None
    enabled = _needed_pipes(pipeline)
    if not enabled:
        raise InputError(
            f"tagger spacy:{model}: this pipeline has no pipe {' or '.join(sorted(ENTITY_PIPES))}. Name a pipeline that has one."
        )
    pipeline.select_pipes(enable=enabled)

    def find(texts: Sequence[str]) -> Iterator[list[tuple[int, int, str]]]:
        try:
            for document in pipeline.pipe(texts, batch_size=batch_size):
                yield [(entity.start_char, entity.end_char, entity.label_) for entity in document.ents]
        except Exception as error:  # what its parts raise
            raise as_realmctl_error(error, model) or InputError(
                f"tagger spacy:{model}: this pipeline fails at a sentence ({one_line(error)}). Name another pipeline."
            ) from None

    return find


def _needed_pipes(pipeline: Any) -> list[str]:
    """Return the names of the pipes that find entities and of those whose output they need; none if no pipe finds any.

    A ruler whose patterns ask for parts of speech, lemmas and the like needs every pipe before it.
    """
    factories = {name: pipeline.get_pipe_meta(name).factory for name in pipeline.pipe_names}
    finders = [name for name, factory in factories.items() if factory in ENTITY_PIPES]
    needed = {*finders, *(name for name, factory in factories.items() if factory in INPUT_PIPES and finders)}
    for place, name in enumerate(pipeline.pipe_names):
        if name in finders and "ruler" in factories[name] and _looks_beyond_text(pipeline.get_pipe(name)):
            needed |= {*pipeline.pipe_names[:place]}
    return [name for name in pipeline.pipe_names if name in needed]


def _looks_beyond_text(ruler: Any) -> bool:
    """Whether a pattern of a ruler asks of tokens what their text alone does not say."""
    asked = {str(getattr(ruler, "phrase_matcher_attr", None) or "ORTH").upper()}
    for token in (each for entry in ruler.patterns for each in entry["pattern"] if isinstance(each, dict)):
        asked |= {str(name).upper() for name in token}
    return not all(name in OF_TEXT or (name.startswith(("IS_", "LIKE_")) and name != "IS_SENT_START") for name in asked)

"""The models of a server, in memory once, over one version of the blocks at a time, and their replies."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from realmctl.artifacts import version_numbers
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, MismatchError
from realmctl.extras.serve.closeness import Closeness
from realmctl.extras.serve.marks import Marks
from realmctl.extras.serve.messages import (
    AnswerReply,
    Ask,
    AskReply,
    CandidateReply,
    Fill,
    FillReply,
    HitReply,
    LeaveOut,
    LeaveOutReply,
    MaskReply,
    Search,
    SearchReply,
    WithoutRetrieval,
    described,
)
from realmctl.extras.serve.vectors import TextEncoder
from realmctl.extras.serve.versions import ServedVersion, Versions
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index, RowIds
from realmctl.pipeline.choosing import fitting
from realmctl.retrieval.answering.answerer import Answer, Answerer
from realmctl.retrieval.answering.asking import answered_without, named_rows
from realmctl.retrieval.answering.pretrained_model import MASK, MaskPrediction, PretrainedModel
from realmctl.retrieval.answering.qa_model import QaModel
from realmctl.retrieval.names import HYBRID
from realmctl.retrieval.search.block_search import BlockSearch, SearchInputs
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.filters import filter_of, filtered
from realmctl.retrieval.search.methods import FUSED, hybrid, start_method
from realmctl.retrieval.search.opening import require_blocks
from realmctl.retrieval.search.postings import Bm25Ranking
from realmctl.retrieval.search.profile import SearchProfile, default_method
from realmctl.retrieval.search.reranking import Reranking
from realmctl.retrieval.search.searcher import Searcher
from realmctl.retrieval.search.text_search import TextSearch

COMPARED_CANDIDATES = 8
MOST_MASKS = 16
LONGEST_EXAMPLE = 120
"""Characters of a block that an example of the page is made of."""
MOST_WORDS = 8
"""Words of an example of a search."""
OF_BM25 = (BM25Searcher, Bm25Ranking)
SPREAD, EXAMPLES = 12, 3
"""An example of a search comes from one of so many blocks, and so many are shown."""
WORD = re.compile(r"[^\W\d_]{2}")


class Searches:
    """What finds blocks, by method, as the search profile of the blocks says.

    BM25 and hybrid search stand beside dense retrieval, and are made at the first search that asks for them. first: the searcher that was opened.
    reranking: what reads the first hits again, if anything does.
    """

    def __init__(self, first: BlockSearch, reranking: Reranking | None = None) -> None:
        self.reranking = reranking
        self._first = "dense" if isinstance(first, DenseSearcher) else "bm25" if isinstance(first, OF_BM25) else "own"
        self._made = {self._first: first}
        self.blocks = first.corpus
        beside = [HYBRID, "bm25"] if self._first == "dense" else []
        best = default_method(len(self.blocks))
        self.names = sorted([self._first, *beside], key=lambda name: name != best)
        """The methods, the one that is taken by default first."""
        self._profiles = {name: self._profile(name) for name in self.names}

    def _profile(self, name: str) -> SearchProfile:
        if isinstance(first := self._made[self._first], OF_BM25):  # a qa-model may hold it
            if first.stems is None:
                return SearchProfile(method=name, bm25_tokens="pieces")
            return SearchProfile(method=name, bm25_stemmer=first.stems.language, bm25_tokens="words")
        if name == "own":
            return SearchProfile(method=name)
        retriever = first.made_of[0] if isinstance(first, DenseSearcher) else None
        return SearchProfile.of(self.blocks.artifact, name, retriever=retriever)

    @cached_property
    def marks(self) -> Marks:
        """What finds the words of a query in a text."""
        return Marks(
            self.blocks, next((each.bm25_stemmer for each in self._profiles.values() if each.bm25_stemmer), None)
        )

    @cached_property
    def closeness(self) -> Closeness | None:
        """What tells whether anything close was found; None without an encoder."""
        return Closeness(first) if isinstance(first := self._made[self._first], DenseSearcher) else None

    @cached_property
    def encoder(self) -> TextEncoder | None:
        """What embeds texts; None without a retriever."""
        return TextEncoder(first) if isinstance(first := self._made[self._first], DenseSearcher) else None

    def by(self, method: str | None, rerank: bool = True) -> TextSearch:
        """Return the search by a method, without the reranker if so. Raises ConfigError for a method that this server does not have."""
        name = method or self.names[0]
        if name not in self.names:
            raise ConfigError(f"This server searches by {' or '.join(self.names)}, not by {name}.")
        reranking = self.reranking if rerank else None
        search = TextSearch(self._searcher(name), self.blocks, self._profiles[name].reranked(reranking))
        search.reranking = reranking
        return search

    def _searcher(self, name: str) -> BlockSearch:
        profile = self._profiles[name]
        if name not in self._made:
            if name == HYBRID:
                self._made[name] = hybrid([*map(self._searcher, FUSED)], profile)
            else:
                self._made[name] = start_method(profile, SearchInputs(blocks=self.blocks.artifact))
        return self._made[name]

    def over(self, version: ServedVersion, opener: Callable[[Path, str], Index]) -> Searches:
        """Return the same over other blocks."""
        return Searches(self._made[self._first].over(version.blocks, version.index, opener), self.reranking)


@dataclass(frozen=True)
class Models:
    """What answers: a qa-model, a pre-trained model, and a closed-book model, each optional, over one version of blocks.

    searches: what finds blocks; None where the qa-model retrieves none. row_of: the row of each block by its id.
    """

    version: ServedVersion
    corpus: Corpus
    row_of: Mapping[str, int]
    qa: QaModel | None
    filler: PretrainedModel | None
    closed_book: QaModel | None
    searches: Searches | None

    @classmethod
    def of(
        cls,
        version: ServedVersion,
        qa: QaModel | None,
        filler: PretrainedModel | None,
        closed_book: QaModel | None,
        searches: Searches | None = None,
    ) -> Models:
        """Return the models over a version, with the rows of its blocks. All blocks are read once.

        searches: what finds blocks, where there is neither a qa-model nor a pre-trained model.
        """
        reads = qa if qa is not None and qa.answerer.searcher is not None else None
        if searches is None and (model := filler or reads) is not None:
            searches = Searches(model.searcher, model.reranking)
        corpus = next(one.blocks for one in (qa, filler, searches) if one is not None)
        rows = {block.id: row for row, block in enumerate(corpus)}
        return cls(version, corpus, rows, qa, filler, closed_book, searches)

    def over(self, version: ServedVersion) -> Models:
        """Return the same models over another version. Only its index is read, and BM25 is computed anew."""
        opener = open_once()
        qa = self.qa and self.qa.over(version.blocks, version.index, opener)
        filler = self.filler and self.filler.over(version.blocks, version.index, opener)
        alone = None if qa or filler else self.searches and self.searches.over(version, opener)
        return Models.of(version, qa, filler, self.closed_book, alone)

    def check_edits(self) -> None:
        """Raise ConfigError if the models cannot follow an edit of the blocks."""
        if self.qa is None or self.qa.answerer.searcher is None:
            return
        kinds = type(self.qa.answerer), type(self.qa.answerer.searcher)
        if kinds[0].with_searcher is Answerer.with_searcher or kinds[1].over is Searcher.over:
            raise ConfigError("This qa-model cannot search edited blocks. Leave out --allow-edits.")

    def rows_of_document(self, row: int) -> range:
        """Rows of the document that a block belongs to. The blocks of a document are consecutive."""
        document, first, stop = self.corpus.block(row).document, row, row + 1
        while first > 0 and self.corpus.block(first - 1).document == document:
            first -= 1
        while stop < len(self.corpus) and self.corpus.block(stop).document == document:
            stop += 1
        return range(first, stop)

    def examples(self) -> list[str]:
        """A few questions, sentences with a mask, or words to search for, made of some blocks, for those who see the page for the first time."""
        count = len(self.corpus)
        blocks = [self.corpus.block(row) for row in dict.fromkeys((0, count // 3, 2 * count // 3)) if row < count]
        found = []
        if self.qa is None and self.filler is None:
            blocks = [self.corpus.block(row) for row in dict.fromkeys(count * step // SPREAD for step in range(SPREAD))]
            words = [
                " ".join((block.title if block.title.strip() else block.text).split()[:MOST_WORDS]) for block in blocks
            ]
            usable = [*dict.fromkeys(text for text in words if WORD.search(text))]
            return usable[:: max(1, len(usable) // EXAMPLES)][:EXAMPLES]
        if self.qa is not None:
            found += [f"What is known about {block.title}?" for block in blocks if block.title.strip()]
        if self.filler is not None:
            for block in blocks[: 1 if found else None]:
                words = block.text[:LONGEST_EXAMPLE].partition(". ")[0].split()
                if len(words) > 3:
                    found.append(" ".join([*words[:-1], f"{MASK}."]))
        return found

    def ask(self, asked: Sequence[Ask]) -> list[AskReply]:
        """Answer questions, all with the same `top`, in one batch. Raises ConfigError if there is no qa-model."""
        found = self._qa_model().answer([one.question for one in asked], asked[0].top)
        return [
            AskReply(
                version=self.version.name,
                search=answered.searched(),
                answers=[*map(_answer, answered.answers)],
                candidates=[
                    CandidateReply(**described(hit.block), probability=hit.probability) for hit in answered.hits
                ],
                without_retrieval=self._without_retrieval(one, answered.answers) if one.compare else None,
            )
            for one, answered in zip(asked, found, strict=True)
        ]

    def unread(self, within: Sequence[str]) -> set[str]:
        """The fields that filters name and that are not in memory yet. Raises ConfigError."""
        return self.corpus.columns.unread({name for each in within for name in filter_of(each, self.corpus).names})

    def passing(self, within: Sequence[str]) -> RowIds:
        """Rows of the blocks that pass filters, rising. Raises ConfigError."""
        found = filtered(within, self.corpus)
        assert found is not None
        return found

    def search(self, asked: Sequence[Search], within: Sequence[str] = ()) -> list[SearchReply]:
        """Find blocks for queries, all with the same `top`, `method` and `filter`, in one batch. within: further filters. Raises ConfigError if there is
        no such method here, and for what is no filter of these blocks.
        """
        if self.searches is None:
            raise ConfigError("This server's qa-model was fine-tuned with --retrieval none and retrieves no blocks.")
        search, marks = self.searches.by(asked[0].method, asked[0].rerank), self.searches.marks
        queries = [one.query for one in asked]
        filters = [each for each in (*within, asked[0].filter) if each is not None]
        found = search.search_together(queries, asked[0].top, filters or None)
        closeness = self.searches.closeness
        is_dense = search.profile is not None and search.profile.method == "dense"
        judged = closeness if not filters else None  # by all blocks
        far = judged.nothing_close(queries, found, marks, is_dense) if judged else [False] * len(queries)
        return [
            SearchReply(
                version=self.version.name,
                nothing_close=is_far,
                search=({} if search.profile is None else search.profile.told())
                | ({"filter": one.filter} if one.filter else {}),
                hits=[
                    HitReply(
                        **described(hit.block),
                        score=hit.score,
                        copies=[other.id for other in hit.copies],
                        marks=marks.of(one.query, hit.block.text),
                    )
                    for hit in hits
                ],
            )
            for one, hits, is_far in zip(asked, found, far, strict=True)
        ]

    @property
    def encoder(self) -> TextEncoder:
        """What embeds texts. Raises ConfigError without a retriever."""
        if self.searches is None or self.searches.encoder is None:
            raise ConfigError("This server has no retriever, so it embeds nothing. Serve a workspace with an index.")
        return self.searches.encoder

    @property
    def reranking(self) -> Reranking | None:
        """What reranks, if anything does."""
        return self.searches.reranking if self.searches else None

    def fill(self, asked: Sequence[Fill]) -> list[FillReply]:
        """Fill the masks of sentences, one at a time.

        Raises ConfigError if there is no pre-trained model, or a sentence has no mask or is too long.
        """
        return [self._fill(one) for one in asked]

    def leave_out(self, asked: Sequence[LeaveOut]) -> list[LeaveOutReply]:
        """Answer questions again without some blocks, one at a time.

        Raises:
            ConfigError: there is no qa-model, or it reads no blocks.
            InputError: a name is that of no block and no document.
        """
        return [self._leave_out(one) for one in asked]

    def _qa_model(self) -> QaModel:
        if self.qa is None:
            instead = "Fill a [MASK] instead." if self.filler else "Search instead."
            raise ConfigError(f"This server has no qa-model, so it answers no question. {instead}")
        return self.qa

    def _without_retrieval(self, asked: Ask, answers: Sequence[Answer]) -> WithoutRetrieval | None:
        """What the weights say: the closed-book model's answers, or the pre-trained model's filling beside the null document.

        The pre-trained model reads the question with as many masks as the best answer has wordpieces.
        """
        filled = None
        if self.filler is not None and answers:
            [wordpieces] = self.filler.dense.tokens([answers[0].text])
            masks = " ".join([MASK] * max(1, min(len(wordpieces), MOST_MASKS)))
            sentence = f"{asked.question.replace(MASK, ' ')} {masks}"
            filled = self.filler.fill_beside_null(sentence, COMPARED_CANDIDATES)
        share = None if filled is None else filled.probability
        if self.closed_book is not None:
            told = [*map(_answer, self.closed_book.ask(asked.question, asked.top).answers)]
            return WithoutRetrieval(source="closed-book model", answers=told, null_document=share)
        if self.filler is None or filled is None:
            return None
        # The filling as one answer, with its mean log-probability as for a closed-book answer.
        log_probs = [math.log(max(mask.probability, sys.float_info.min)) for mask in filled.masks]
        text = " ".join(mask.wordpiece for mask in filled.masks).replace(" ##", "").strip()
        answer = AnswerReply(text=text, score=sum(log_probs) / len(log_probs))
        return WithoutRetrieval(source="null document", answers=[answer], null_document=share)

    def _fill(self, asked: Fill) -> FillReply:
        if self.filler is None:
            instead = "Ask a question instead." if self.qa else "Search instead."
            raise ConfigError(f"This server has no pre-trained model, so it fills no [MASK]. {instead}")
        if (count := asked.sentence.count(MASK)) > MOST_MASKS:
            raise ConfigError(f"The sentence has {count} masks, and at most {MOST_MASKS} are filled.")
        filled = self.filler.fill_mask(asked.sentence, asked.candidates)
        candidates = []
        for one in filled.candidates:
            null = {"block": None, "document": None, "title": one.title, "text": ""}
            told = null if one.row is None else described(self.filler.blocks[one.row])
            candidates.append(CandidateReply(**told, probability=one.probability, masks=_masks(one.masks)))
        return FillReply(
            version=self.version.name,
            with_retrieval=_masks(filled.with_retrieval),
            without_retrieval=_masks(filled.without_retrieval),
            candidates=candidates,
        )

    def _leave_out(self, asked: LeaveOut) -> LeaveOutReply:
        qa = self._qa_model()
        rows = sorted({self.row_of[name] for name in asked.without if name in self.row_of})
        if not self.row_of.keys() >= set(asked.without):  # a document's name: every record is read
            rows = named_rows(self.corpus, asked.without)
        found = answered_without(qa, asked.question, rows, asked.top)
        return LeaveOutReply(
            version=self.version.name,
            left_out=list(found.blocks),
            answer=found.text,
            probability_before=found.probability_before,
            probability_after=found.probability_after,
            still_held_by=list(found.blocks_with_answer),
            answers=[*map(_answer, found.answers)],
        )


def open_models(
    qa_model: Path | None,
    model: Path | None,
    closed_book: Path | None,
    blocks: Path,
    embeddings: Path,
    indexes: Path,
    retriever: Path | None = None,
    later: tuple[Path, ...] = (),
    reranking: Reranking | None = None,
) -> tuple[Models, Versions]:
    """Open the models over the newest version of the blocks that has an index.

    Args:
        qa_model: a fine-tuned model, which answers questions.
        model: a pre-trained model, which fills masks and embeds edited blocks.
        closed_book: a qa-model that was fine-tuned with --retrieval none.
        blocks: a version of the blocks, or their series.
        embeddings, indexes: the series of embeddings and of indexes, to which edits write.
        retriever: where there is neither a qa-model nor a pre-trained model, the retriever that searches; without one BM25 does.
        later: series that are not there, and that another start would take if they were.
        reranking: what reads the first hits of a search again, and chooses the blocks that a qa-model reads.

    Raises:
        InputError: something is missing or damaged.
        MismatchError: the models, the blocks and the index do not belong together.
    """
    if qa_model is None and model is None:
        return _open_search(closed_book, blocks, embeddings, indexes, retriever, later, reranking)
    found = Versions(
        blocks=blocks,
        embeddings=embeddings,
        indexes=indexes,
        qa_model=qa_model,
        model=model,
        trained=(*_series(qa_model, model, closed_book), *later),
    )
    version, asked, filled = found.fitting()
    versions, opener = replace(found, qa_model=asked, model=filled), open_once()
    qa = filler = weights = None
    if asked is not None:
        uses_index = "index" in asked.manifest.parts
        qa = QaModel.open(asked, blocks=version.blocks, index=version.index if uses_index else None)
        if isinstance(qa.answerer.searcher, DenseSearcher):
            opener = open_once(qa.answerer.searcher.index)
    if filled is not None:
        if filled.kind != "model":
            raise MismatchError(f"{filled} is not a pre-trained model with an index. Name one with --model.")
        filler = PretrainedModel.open(filled, blocks=version.blocks, index=version.index, opener=opener)
    for answers in filter(None, (qa, filler)):
        answers.reranking = reranking
    if closed_book is not None:
        weights = QaModel.open(closed_book, blocks=version.blocks)
        if weights.answerer.searcher is not None:
            raise MismatchError(
                f"--closed-book {closed_book} retrieves blocks. Name a qa-model that was fine-tuned with --retrieval none."
            )
    return Models.of(version, qa, filler, weights), versions


def _open_search(
    closed_book: Path | None,
    blocks: Path,
    embeddings: Path,
    indexes: Path,
    retriever: Path | None,
    later: tuple[Path, ...],
    reranking: Reranking | None,
) -> tuple[Models, Versions]:
    if closed_book is not None:
        raise ConfigError("--closed-book shows answers beside those of a qa-model. Name one with --qa-model.")
    require_blocks(blocks)
    chosen = fitting(blocks, retriever=retriever, index=indexes if retriever else None, blocks_first=True)
    of_blocks, made_by, index = (chosen.get(kind) for kind in ("blocks", "retriever", "index"))
    assert of_blocks is not None
    opened = SearchProfile.of(of_blocks, "dense" if index else "bm25")
    exact = SearchInputs(
        blocks=of_blocks, retriever=made_by, index=index, precision="fp32"
    )  # scores as `search` has them
    searcher = start_method(opened, exact)
    versions = Versions(
        blocks=blocks,
        embeddings=embeddings,
        indexes=indexes,
        qa_model=None,
        model=made_by,
        trained=(*_series(retriever), *later),
    )
    return Models.of(ServedVersion(of_blocks, index), None, None, None, Searches(searcher, reranking)), versions


def _series(*models: Path | None) -> tuple[Path, ...]:
    """The models that were named as series, of which another version may be made later."""
    return tuple(model for model in models if model is not None and version_numbers(model))


def open_once(index: Index | None = None) -> Callable[[Path, str], Index]:
    """Return an opener that opens an index at its first call, and returns the same one at the next."""
    held = [] if index is None else [index]

    def opener(path: Path, device: str) -> Index:
        if not held:
            held.append(open_index(path, device))
        return held[0]

    return opener


def _answer(answer: Answer) -> AnswerReply:
    block = answer.hit.block.id if answer.hit else None
    return AnswerReply(text=answer.text, score=answer.score, block=block, start=answer.start, end=answer.end)


def _masks(masks: Sequence[MaskPrediction]) -> list[MaskReply]:
    return [MaskReply(wordpiece=mask.wordpiece, probability=mask.probability) for mask in masks]

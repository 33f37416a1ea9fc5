"""Hard negatives: passages that a ranking puts high and that are not relevant, as training data for retrievers.

A passage that is too close to the positive one is often an unjudged answer, so it may be left out by a margin between the scores,
absolute or relative (NV-Retriever, arXiv:2407.15831, section 3). A cross-encoder may give the scores in place of the ranking.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.description import RANKING, RankingDescription, read_description
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.extras.ir.ranking.trec import read_run, trec_name
from realmctl.lab.dpr.mining_settings import MiningSettings
from realmctl.log import progress
from realmctl.retrieval.search.reranking import Reranking

LAST_RANK = 100
"""Rank up to which negatives are taken: `rank` writes as many by default, and what stands behind is easy to tell apart."""
QUERIES_AT_ONCE = 512
"""Queries whose blocks are looked up together."""
SCORED_AT_ONCE = 32
"""Candidates that a cross-encoder scores before it is seen whether they are enough."""
TRAINING = "train.jsonl"


@dataclass
class FoundPassage:
    """A passage of a question: its row in the blocks, its rank and score, if it was found."""

    row: int
    rank: int | None = None
    score: float | None = None


def mine(
    ranking: Artifact,
    blocks: Artifact,
    relevant: Mapping[str, set[str]],
    settings: MiningSettings,
    scorer: Reranking | None,
    out: Writer,
    *,
    has_its_scores: bool = False,
) -> dict[str, float]:
    """Write train.jsonl: questions with positive and negative passages, in the layout of Tevatron, which `dpr-finetune` reads.

    Args:
        ranking: a ranking of blocks.
        blocks: the blocks that were ranked.
        relevant: {query: ids of relevant blocks or documents}, without white space, as `trec_name` writes them.
        settings: which passages are taken.
        scorer: gives scores in place of the ranking's.
        has_its_scores: whether the ranking's are the scorer's. It then reads only what has none, such as a positive passage that was not found.
        out: the artifact to write to.

    Returns:
        Numbers of questions, negatives, judged questions that were left out because they have no hits in the ranking, or no positive or no negative passage, and
        passages that were too close; the share of questions whose positive passage is in the ranking.

    Raises:
        MismatchError: the ranking is one of documents.
        InputError: no question has a positive and a negative passage.
    """
    described = read_description(ranking.file(RANKING), RankingDescription)
    if described.unit != "block":
        raise MismatchError(f"{ranking} ranks documents, and negatives are blocks. Rank with --unit block.")
    with ranking.file("queries.jsonl").open(encoding="utf-8") as lines:
        texts = {trec_name(query["id"]): query["text"] for query in map(json.loads, lines)}
    places, known = (
        _Places(blocks, ranking, relevant, described.reranked, scorer is None or has_its_scores),
        _known(texts, relevant),
    )
    counts: Counter[str] = Counter()
    counts["without_hits"] = len(relevant)
    asked = ((query, found) for query, found in read_run(ranking.file("run.trec")) if query in relevant)
    with (
        out.file(TRAINING).open("w", encoding="utf-8") as file,
        progress(len(relevant), "mining negatives", "questions") as bar,
    ):
        while part := list(islice(asked, QUERIES_AT_ONCE)):
            sorted_out = [
                (query, *places.split(relevant[query], known[query], found, settings)) for query, found in part
            ]
            rows = {one.row for _, good, others in sorted_out for one in (*good, *others)}
            held = places.corpus.blocks(rows)
            for query, good, others in sorted_out:
                bar.advance(1)
                counts["without_hits"] -= 1
                if not good:
                    counts["without_positive"] += 1
                    continue
                chosen = _chosen(texts[query], good, others, held, settings, scorer, counts)
                if not chosen:
                    counts["without_negative"] += 1
                    continue
                counts["questions"] += 1
                counts["negatives"] += len(chosen)
                counts["found"] += good[0].rank is not None
                record = {
                    "query_id": query,
                    "query": texts[query],
                    "positive_passages": [_record(one, held) for one in good],
                    "negative_passages": [_record(one, held) for one in chosen],
                }
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    if not counts["questions"]:
        raise InputError(
            f"{ranking}: no question has a positive and a negative passage ({counts['without_positive']} without a positive one, "
            f"{counts['without_negative']} without a negative one, {counts['without_hits']} without hits). Name the judgements of these queries, or a smaller margin."
        )
    return {
        **{
            name: counts[name]
            for name in ("questions", "negatives", "without_positive", "without_negative", "without_hits", "too_close")
        },
        "positive_found": counts["found"] / counts["questions"],
    }


def _known(texts: Mapping[str, str], relevant: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """{query: what answers it}: what is relevant to any query of its text."""
    by_text = defaultdict[str, set[str]](set)
    for query, names in relevant.items():
        by_text[_plain(texts.get(query, query))] |= names
    return {query: by_text[_plain(texts.get(query, query))] for query in relevant}


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


class _Places:
    """Rows and documents of the blocks that a ranking or the judgements name. All blocks are read once."""

    def __init__(
        self, blocks: Artifact, ranking: Artifact, relevant: Mapping[str, set[str]], reranked: int | None, keeps: bool
    ) -> None:
        self.corpus, self.reranked, self.keeps = Corpus(blocks), reranked, keeps
        named = {name for query, found in read_run(ranking.file("run.trec")) if query in relevant for name in found}
        judged = {name for names in relevant.values() for name in names}
        self.rows: dict[str, int] = {}
        self.documents: dict[str, str] = {}
        self.first: dict[str, int] = {}
        self.uids: dict[str, set[int]] = {}
        with progress(len(self.corpus), "looking up blocks", "blocks") as bar:
            for row, block in enumerate(self.corpus):
                name, document = trec_name(block.id), trec_name(block.document)
                if name in named:
                    self.rows[name], self.documents[name] = row, document
                for each in {name, document} & judged:
                    self.first.setdefault(each, row)
                    self.uids.setdefault(each, set()).add(int(self.corpus.uid[row]))
                bar.advance(1)

    def split(
        self, relevant: set[str], known: set[str], found: Mapping[str, float], settings: MiningSettings
    ) -> tuple[list[FoundPassage], list[FoundPassage]]:
        """Return positive passages, one of each relevant block or document, and candidates for negatives, both best first.

        Nothing in `known`, and no copy of a block in it, is a negative. Of a ranking that was reranked, what stands behind the reranked hits has no score and is no
        negative.
        """
        good: dict[str, FoundPassage] = {}
        others = []
        uid = self.corpus.uid
        copies = set[int]().union(*(self.uids.get(name, ()) for name in known))
        for rank, (name, score) in enumerate(sorted(found.items(), key=lambda item: -item[1]), start=1):
            is_scored = self.reranked is None or rank <= self.reranked
            one = FoundPassage(self.rows[name], rank, score if is_scored and self.keeps else None)
            if judged := {name, self.documents[name]} & relevant:
                good.setdefault(min(judged), one)
            elif rank <= LAST_RANK and is_scored and int(uid[one.row]) not in copies:
                others.append(one)
        for name in sorted(relevant - good.keys()):
            if name in self.first:
                good[name] = FoundPassage(self.first[name])
        return [*good.values()][: settings.positives], others


def _chosen(
    question: str,
    good: Sequence[FoundPassage],
    others: Sequence[FoundPassage],
    held: Mapping[int, Block],
    settings: MiningSettings,
    scorer: Reranking | None,
    counts: Counter[str],
) -> list[FoundPassage]:
    """Return the negatives of a question. With a scorer, it also gives the passages their scores."""
    if scorer is not None:
        _score(question, good, held, scorer)
    best = max((one.score for one in good if one.score is not None), default=None)
    chosen: list[FoundPassage] = []
    rest: Iterator[FoundPassage] = iter(others)
    while len(chosen) < settings.negatives and (part := list(islice(rest, SCORED_AT_ONCE))):
        if scorer is not None:
            _score(question, part, held, scorer)
        for one in part:
            if len(chosen) == settings.negatives:
                break
            if settings.far_enough(one.score, best):
                chosen.append(one)
            else:
                counts["too_close"] += 1
    return sorted(chosen, key=lambda one: one.rank or 0)


def _score(question: str, passages: Sequence[FoundPassage], held: Mapping[int, Block], scorer: Reranking) -> None:
    """Give a score to the passages that have none."""
    without = [one for one in passages if one.score is None]
    [scores] = scorer.scores([question], [[held[one.row] for one in without]])
    for one, score in zip(without, scores.tolist(), strict=True):
        one.score = score


def _record(one: FoundPassage, held: Mapping[int, Block]) -> dict[str, str | float | None]:
    block = held[one.row]
    return {"docid": block.id, "title": block.title, "text": block.text, "score": one.score}

"""Answers as relevance judgements: a ranked block is relevant to a question if it holds one of its answers as words."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import RANKING, RankingDescription, read_description
from realmctl.corpus.corpus import Corpus
from realmctl.errors import MismatchError
from realmctl.extras.ir.ranking.trec import TrecNames, read_run
from realmctl.log import progress
from realmctl.questions.answer_search import AnswerSearch
from realmctl.questions.questions import Question


def answer_relevance(ranking: Artifact, blocks: Artifact, questions: Sequence[Question]) -> dict[str, dict[str, int]]:
    """Return {question: {ranked block or document: 0 or 1}}, by the test that `eval-em` applies (DPR's).

    A document is relevant if one of its blocks holds an answer. Every record of the blocks is read once, so memory is needed
    for the ranking alone.

    Raises:
        MismatchError: a query of the ranking has the id of a question and another text.
        InputError: two ids are one without white space.
    """
    _require_same_texts(ranking, questions)
    by_block = read_description(ranking.file(RANKING), RankingDescription).unit == "block"
    queries, names = TrecNames(), TrecNames()
    tests = {queries(question.id): AnswerSearch(question, "tokens") for question in questions}
    judged: dict[str, dict[str, int]] = {name: {} for name in tests}
    asking: defaultdict[str, list[str]] = defaultdict(list)
    for query, found in read_run(ranking.file("run.trec")):
        for name in found if query in tests else ():
            asking[name].append(query)
            judged[query][name] = 0
    corpus = Corpus(blocks)
    with progress(len(corpus), "looking for answers", "blocks") as bar:
        for block in corpus:
            name = names(block.id if by_block else block.document)
            for query in asking.get(name, ()):
                judged[query][name] = judged[query][name] or int(tests[query](block.text))
            bar.advance()
    return judged


def _require_same_texts(ranking: Artifact, questions: Sequence[Question]) -> None:
    texts = {question.id: question.question for question in questions}
    with ranking.file("queries.jsonl").open(encoding="utf-8") as lines:
        for query in map(json.loads, lines):
            if texts.get(query["id"], query["text"]) != query["text"]:
                raise MismatchError(
                    f"{ranking} ranks blocks for {query['text'][:80]!r}, and the question with the same id {query['id']!r} "
                    f"is {texts[query['id']][:80]!r}. Name the questions that were searched."
                )

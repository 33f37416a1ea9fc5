"""Two measures of a retriever that need no people: questions that a language model wrote for blocks, and what it judges of what they find.

The questions are frozen: one set for each domain, whatever the arm and the seed. `generated` is nDCG@10 where the block that a question was written for is
relevant. `judged` lets the model grade the first blocks of the arm and of its start in one pool, and is the difference of their nDCG@10.
"""

import json
from statistics import fmean

from ways import Bench, index_of

from realmctl.artifacts import Artifact

GENERATED, JUDGED = "generated", "judged"
MEASURE = "nDCG@10"
QUESTIONS, DEPTH = 300, 5
"""Blocks that questions are written for, and how many of the first blocks of a ranking are judged."""


def generated(bench: Bench, retriever: Artifact, name: str) -> float | None:
    """nDCG@10 of the blocks that questions were written for; None without a language model."""
    if bench.lm is None:
        return None
    return _ndcg(bench, _ranking(bench, retriever, name), _questions(bench), name)


def judged(bench: Bench, retriever: Artifact, name: str) -> float | None:
    """The difference of nDCG@10 to the start, by the judgements of the language model; None without a server that has one."""
    if bench.lm is None or bench.endpoint is None:
        return None
    rankings = [_ranking(bench, bench.start, "encoder"), _ranking(bench, retriever, name)]
    judgements = bench.made(
        "judge", f"told-judgements-{name}", rankings=tuple(each.path for each in rankings), blocks=bench.blocks, lm=bench.lm, endpoint=bench.endpoint,
        depth=DEPTH, sample=0,
    )  # fmt: skip
    start, own = (_ndcg(bench, each, judgements, f"{name}-{number}-judged") for number, each in enumerate(rankings))
    return own - start


def _questions(bench: Bench) -> Artifact:
    return bench.made(
        "generate-queries", "told-questions", blocks=bench.blocks, lm=bench.lm, endpoint=bench.endpoint, sample=QUESTIONS, seed=0
    )  # fmt: skip


def _ranking(bench: Bench, retriever: Artifact, name: str) -> Artifact:
    return bench.made(
        "rank", f"told-ranking-{name}", blocks=bench.blocks, queries=_questions(bench).path, retriever=retriever,
        index=index_of(bench, retriever, name), top=10,
    )  # fmt: skip


def _ndcg(bench: Bench, ranking: Artifact, judgements: Artifact, name: str) -> float:
    [qrels] = judgements.path.glob("qrels/*.tsv")
    scores = bench.made("eval-run", f"told-scores-{name}", ranking=ranking, qrels=qrels, measures=MEASURE)
    lines = scores.file("per-query.jsonl").read_text(encoding="utf-8").splitlines()
    return fmean(json.loads(line)[MEASURE] for line in lines)

"""Pool what rankings found, have it judged, and measure how far the judge is to be trusted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from realmctl.artifacts import Artifact, Writer, open_artifact
from realmctl.artifacts.hashing import digest
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.extras.chat.asking import Asker, Request
from realmctl.extras.chat.texts import shortened
from realmctl.extras.ir.ranking.beir import qrels_file
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.extras.ir.ranking.trec import read_run, trec_name, trec_named
from realmctl.lab.judging.agreement import agreement
from realmctl.lab.judging.rubric import AGAIN, GRADES, RELEVANT, RUBRIC, Verdict, prompt_of, verdict_in
from realmctl.lab.judging.settings import JudgeSettings
from realmctl.log import progress, say, warn

LONGEST_ANSWER = 256
"""Tokens of an answer."""
ROUNDS = 3
"""How often a pair is asked for whose answer has no grade."""
LONGEST_REPEATED = 500
"""Characters of an answer without a grade that are shown to the model again."""
LONGEST_PASSAGE = 4 * 512
"""Characters of a passage in a prompt: some 512 tokens, more than a block has. A longer one is cut at its end."""
Pair = tuple[str, str]
"""Ids of a query and of a passage, as a TREC run has them."""


@dataclass(frozen=True)
class JudgedText:
    """A block, or a document, with its title."""

    title: str
    text: str


def judge(settings: JudgeSettings, out: Writer) -> dict[str, object]:
    """Judge the pool, and write it as a BEIR folder with the split test, with reasons, all answers, and agreement.json.

    Returns:
        Numbers of pairs that were judged and were not, of queries, of each grade, of requests; kappas with their intervals.

    Raises:
        InputError: A ranking, or the judgements of people, has no query with a text, the blocks have none of the passages, or no answer has a grade.
        MismatchError: Two rankings have two texts for one query.
    """
    texts = _texts_of_queries(settings)
    people = trec_named(read_qrels(qrels_file(settings.qrels, "test"))) if settings.qrels else {}
    pool = _pool(settings, texts, people)
    passages = _passages(settings, {name for _, name in pool})
    pairs = [pair for pair in pool if pair[1] in passages]
    if not pairs:
        raise InputError(
            f"{settings.blocks} has no block and no document with an id of the rankings, such as {pool[0][1]!r}. Name the blocks that were searched."
        )
    if missing := len(pool) - len(pairs):
        warn(
            f"judge: {missing:,} of {len(pool):,} pairs are left out, because {settings.blocks.path} does not have the passage"
        )
    chosen = np.random.default_rng(settings.seed).permutation(len(pairs))[: settings.repeated]
    again = [pairs[number] for number in np.sort(chosen)]
    kinds = {"first": pairs, "repeated": again, "swapped": again}
    told = f"{len(pairs):,} pairs of query and passage"
    with Asker(settings, settings.lm, out, told) as asker:
        found: dict[str, dict[Pair, Verdict]] = {kind: {} for kind in kinds}
        talks = {
            (kind, pair): [
                prompt_of(texts[pair[0]], passages[pair[1]].title, passages[pair[1]].text, kind == "swapped")
            ]
            for kind, some in kinds.items()
            for pair in some
        }
        retried = 0
        for number in range(ROUNDS):
            requests = {each: _request(settings, *each, talk, number) for each, talk in talks.items()}
            retried += len(requests) if number else 0
            with progress(len(requests), "asking again" if number else "judging", "pairs") as bar:
                replies = asker.answers([*requests.values()], bar)
            for (kind, pair), request in requests.items():
                answer = replies[request.id].text
                if verdict := verdict_in(answer):
                    found[kind][pair] = verdict
                    del talks[kind, pair]
                else:
                    talks[kind, pair] += [answer[:LONGEST_REPEATED], AGAIN]
            if not talks:
                break
            say(
                f"judge: {len(talks):,} of {len(requests):,} answers have no grade"
                + ", and are asked for again" * (number + 1 < ROUNDS)
            )
        counts = asker.keep()
    judged = found["first"]
    if not judged:
        asker.forget()
        raise InputError(
            f"{settings.lm} gave no answer with a grade for any of {len(pairs):,} pairs. Use a larger model: it has to write a JSON object. All are asked again then."
        )
    report = _agreement(found, people)
    unjudged = [pair for pair in pairs if pair not in judged]
    _write(out, texts, passages, judged, unjudged, report)
    grades = Counter(verdict.grade for verdict in judged.values())
    return {
        "judged": len(judged),
        "unjudged": len(unjudged),
        "without_text": missing,
        "judged_queries": len({query for query, _ in judged}),
        **{f"grade_{grade}": grades[grade] for grade in GRADES},
        "asked_again": retried,
        **counts,
        **{
            f"{kind}_{name}": value
            for kind, values in report.items()
            for name, value in values.items()
            if isinstance(value, int | float)
        },
    }


def _texts_of_queries(settings: JudgeSettings) -> dict[str, str]:
    """The texts of the queries by their ids in a run."""
    if settings.queries is not None:
        return {trec_name(query.id): query.question for query in read_queries(settings.queries)}
    texts: dict[str, str] = {}
    for path in settings.rankings:
        if (ranking := _ranking(path)) is None:
            continue
        for query in read_queries(ranking.file("queries.jsonl")):
            if texts.setdefault(trec_name(query.id), query.question) != query.question:
                raise MismatchError(
                    f"{path}: another ranking has another text for the query {query.id!r}. Name rankings of the same queries."
                )
    if not texts:
        raise InputError("A TREC run has no texts of queries. Name their file with --queries.")
    return texts


def _ranking(path: Path) -> Artifact | None:
    if not path.is_dir():
        return None
    ranking = open_artifact(path)
    if ranking.kind != "ranking":
        raise MismatchError(f"{path} is of kind {ranking.kind}, but a ranking is needed. Name artifacts of rank.")
    return ranking


def _pool(settings: JudgeSettings, texts: Mapping[str, str], people: Mapping[str, Mapping[str, int]]) -> list[Pair]:
    """The best of each ranking, and what people judged, of the queries that are drawn: by query, then by passage."""
    best: dict[str, set[str]] = defaultdict(set)
    for path in settings.rankings:
        ranking = _ranking(path)
        for query, scores in read_run(ranking.file("run.trec") if ranking else path):
            best[query] |= {*sorted(scores, key=lambda name: (-scores[name], name))[: settings.depth]}
    known = sorted(query for query in best if query in texts and (not people or query in people))
    if not known:
        judged = " that people judged" if people else ""
        raise InputError(
            f"The rankings have no query{judged} with a text. Name its queries with --queries, or other judgements."
        )
    drawn = np.random.default_rng(settings.seed).permutation(len(known))[: settings.sample or None]
    for query in known:
        best[query] |= {*sorted(people.get(query, ()))[: settings.depth]}
    return [(known[number], name) for number in np.sort(drawn) for name in sorted(best[known[number]])]


def _passages(settings: JudgeSettings, wanted: set[str]) -> dict[str, JudgedText]:
    """The texts of blocks and documents with these ids. Of a document its blocks, in order, up to the longest passage."""
    titles, pieces = dict[str, str](), defaultdict[str, list[str]](list)
    for block in Corpus(settings.blocks):
        for name in {trec_name(block.id), trec_name(block.document)} & wanted:
            titles.setdefault(name, block.title)
            if sum(map(len, pieces[name])) <= LONGEST_PASSAGE:
                pieces[name].append(block.text)
    return {
        name: JudgedText(titles[name], shortened("\n".join(texts), LONGEST_PASSAGE)) for name, texts in pieces.items()
    }


def _request(settings: JudgeSettings, kind: str, pair: Pair, talk: Sequence[str], number: int) -> Request:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(talk)]
    name = json.dumps([*pair, kind, number], ensure_ascii=False)
    seed = int(digest([settings.seed, name])[:8], 16) & 0x7FFFFFFF
    return Request(name, messages, LONGEST_ANSWER, settings.temperature, seed)


def _agreement(
    found: Mapping[str, Mapping[Pair, Verdict]], people: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, object]]:
    """Agreement of the model with itself, and with people: whether a passage is relevant, and the grade where people gave grades up to 3."""
    judged = found["first"]
    report = {}
    for kind in ("repeated", "swapped"):
        both = [(pair[0], judged[pair].grade, other.grade) for pair, other in found[kind].items() if pair in judged]
        if both:
            report[kind] = agreement(both, len(GRADES))
    both = [
        (query, people[query][name], verdict.grade)
        for (query, name), verdict in judged.items()
        if name in people.get(query, ())
    ]
    if both:
        report["human"] = _with_people([(query, int(one > 0), int(two >= RELEVANT)) for query, one, two in both], 2)
        relevant = [two >= RELEVANT for _, one, two in both if one > 0]
        if relevant:
            report["human"]["recall"] = round(sum(relevant) / len(relevant), 6)
        if any(one > 1 for _, one, _ in both) and all(one in GRADES for _, one, _ in both):
            report["human_grades"] = _with_people(both, len(GRADES))
    return report


def _with_people(both: Sequence[tuple[str, int, int]], grades: int) -> dict[str, object]:
    """Agreement of people (first) and the model. Where people gave one grade alone, kappa is 0 whatever the model says, so it is left out."""
    found = agreement(both, grades)
    if len({one for _, one, _ in both}) > 1:
        return found
    return {name: value for name, value in found.items() if "kappa" not in name}


def _write(
    out: Writer,
    texts: Mapping[str, str],
    passages: Mapping[str, JudgedText],
    judged: Mapping[Pair, Verdict],
    unjudged: Iterable[Pair],
    report: Mapping[str, object],
) -> None:
    lines = [f"{query}\t{name}\t{verdict.grade}\n" for (query, name), verdict in judged.items()]
    out.file("qrels/test.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *lines]), encoding="utf-8")
    files: Mapping[str, Iterable[Mapping[str, object]]] = {
        "queries.jsonl": ({"_id": name, "text": texts[name]} for name in dict.fromkeys(query for query, _ in judged)),
        "corpus.jsonl": (
            {"_id": name, "title": passages[name].title, "text": passages[name].text}
            for name in dict.fromkeys(name for _, name in judged)
        ),
        "judgements.jsonl": (
            {"query": query, "document": name, "grade": verdict.grade, "reason": verdict.reason}
            for (query, name), verdict in judged.items()
        ),
        "unjudged.jsonl": ({"query": query, "document": name} for query, name in unjudged),
    }
    for file, records in files.items():
        with out.file(file).open("w", encoding="utf-8") as stream:
            stream.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    out.file("agreement.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    out.file("rubric.txt").write_text(RUBRIC.format(first="Query: …", second="Passage: …") + "\n", encoding="utf-8")

"""`mine-negatives` beside negatives that are found by hand in the ranking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError, MismatchError
from realmctl.extras.ir.labelled import read_labelled
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run, trec_name
from realmctl.extras.rerank.cross_encoder import CrossEncoder
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.questions.questions import read_questions
from realmctl.retrieval.search.reranking import Pair
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain


@pytest.fixture(scope="module")
def ranking(chain: Chain, tmp_path_factory) -> Artifact:
    inputs = {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}
    return Rank(queries=chain.questions, top=30, **inputs).make(tmp_path_factory.mktemp("mined") / "ranking")


@pytest.fixture(scope="module")
def judged(chain: Chain, tmp_path_factory):
    """Relevant is the document of the person. The first question's judgement names what the corpus does not hold."""
    file = tmp_path_factory.mktemp("judged") / "qrels"
    names = {
        question.id: question.question.split("was ")[1].removesuffix(" born?")
        for question in read_questions(chain.questions)
    }
    documents = {block.title: block.document for block in Corpus(chain.blocks)}
    relevant = {query: trec_name(documents[name]) for query, name in names.items()} | {next(iter(names)): "nobody"}
    file.write_text("".join(f"{query} 0 {name} 1\n" for query, name in relevant.items()))
    return file


def records(made: Artifact) -> list[dict]:
    return [*map(json.loads, made.file("train.jsonl").read_text(encoding="utf-8").splitlines())]


@pytest.mark.parametrize(
    ("settings", "keeps"),
    [
        ({}, lambda rank, score, best: True),
        ({"relative_margin": 0.1}, lambda rank, score, best: best is not None and score <= best - 0.1 * abs(best)),
    ],
)
def test_negatives_are_those_of_the_ranking_that_the_settings_keep(
    chain: Chain, ranking, judged, tmp_path, settings, keeps
):
    made = MineNegatives(ranking=ranking, blocks=chain.blocks, qrels=judged, negatives=3, **settings).make(
        tmp_path / "n"
    )
    owner = {block.id: block.document for block in Corpus(chain.blocks)}
    relevant = {line.split()[0]: line.split()[2].replace("%20", " ") for line in judged.read_text().splitlines()}
    expected = {}
    for query, found in read_run(ranking.file("run.trec")):
        ranked = sorted(found.items(), key=lambda item: -item[1])
        good = [score for name, score in ranked if owner[name] == relevant[query]]
        if relevant[query] == "nobody":
            continue
        kept = [
            name
            for rank, (name, score) in enumerate(ranked, start=1)
            if owner[name] != relevant[query] and keeps(rank, score, max(good, default=None))
        ]
        if kept:
            expected[query] = kept[:3]
    found = {record["query_id"]: [one["docid"] for one in record["negative_passages"]] for record in records(made)}
    assert found == expected and made.metrics["without_positive"] == 1
    assert made.metrics["questions"] == len(expected) and made.metrics["negatives"] == sum(map(len, expected.values()))
    for record in records(made):
        assert {owner[one["docid"]] for one in record["positive_passages"]} == {relevant[record["query_id"]]}


def test_answers_say_what_is_relevant_and_three_programs_read_it(realmctl, chain: Chain, ranking, tmp_path):
    made = MineNegatives(ranking=ranking, blocks=chain.blocks, questions=chain.questions).make(tmp_path / "n")
    answers = {question.question: question.answers for question in read_questions(chain.questions)}
    for record in records(made):
        scores = [one["score"] for one in record["negative_passages"]]
        assert scores == sorted(scores, reverse=True), "the best of the ranking come first"
    labelled = [*read_labelled(made.file("train.jsonl"))]
    assert [*read_labelled(made.path)] == labelled
    assert len(labelled) == made.metrics["questions"] > 10
    for question in labelled:
        for passages, has in ((question.positives, True), (question.negatives, False)):
            assert passages and all((answers[question.question][0] in one.text) is has for one in passages)
    code, _, err = realmctl("export", made.path, "triplets.jsonl", "--form", "triplets")
    triplets = [*map(json.loads, Path("triplets.jsonl").read_text().splitlines())]
    assert code == 0 and len(triplets) == sum(len(one.positives) * len(one.negatives) for one in labelled), err
    assert triplets[0] == {
        "anchor": labelled[0].question,
        **{
            kind: f"{passages[0].title} {passages[0].text}"
            for kind, passages in (("positive", labelled[0].positives), ("negative", labelled[0].negatives))
        },
    }
    code, _, err = realmctl(
        "dpr-finetune",
        "--retriever",
        chain.retriever.path,
        "--passages",
        made.path.parent,
        "--steps",
        1,
        "--batch-size",
        4,
    )
    assert code == 0, err


def test_its_scores_stand_in_place_of_those_of_the_ranking(chain: Chain, ranking, judged, cross_encoder, tmp_path):
    values = {
        "ranking": ranking,
        "blocks": chain.blocks,
        "qrels": judged,
        "relative_margin": 0.01,
        "cross_encoder": str(cross_encoder),
    }
    made, scorer = MineNegatives(**values).make(tmp_path / "n"), CrossEncoder.open(cross_encoder, "cpu")
    for record in records(made)[:4]:
        best = max(one["score"] for one in record["positive_passages"])
        for one in (*record["positive_passages"], *record["negative_passages"]):
            assert one["score"] == pytest.approx(
                scorer.scores([Pair(record["query"], one["title"], one["text"])])[0], abs=1e-5
            )
        assert all(one["score"] <= best - 0.01 * abs(best) for one in record["negative_passages"])
    assert made.metrics["too_close"] > 0


def test_every_judged_question_is_counted(chain: Chain, judged, tmp_path):
    """One was not ranked, one has no hits, and one is judged 0 alone."""
    rows = chain.questions.read_text().splitlines()
    asked = tmp_path / "asked.jsonl"
    asked.write_text(
        "\n".join([*rows[1:], json.dumps({**json.loads(rows[1]), "id": "strange", "question": "zzz qqq"})]) + "\n"
    )
    ranking = Rank(blocks=chain.blocks, queries=asked, method="bm25").make(tmp_path / "ranking")
    lines = judged.read_text().splitlines()
    zero = lines[2].split()
    qrels = tmp_path / "qrels"
    qrels.write_text("\n".join([*lines[:2], " ".join([*zero[:3], "0"]), *lines[3:], "strange 0 nobody 1"]) + "\n")
    counts = MineNegatives(ranking=ranking, blocks=chain.blocks, qrels=qrels).make(tmp_path / "n").metrics
    assert (
        counts["without_hits"] == 2 and counts["without_positive"] == 2
    )  # the first is judged by what the corpus does not hold
    told = sum(counts[name] for name in ("questions", "without_positive", "without_negative", "without_hits"))
    assert told == len(lines) + 1


def test_what_is_refused(chain: Chain, ranking, judged, tmp_path):
    documents = Rank(queries=chain.questions, blocks=chain.blocks, method="bm25", unit="document").make(tmp_path / "r")
    inputs = {"blocks": chain.blocks, "qrels": judged}
    with pytest.raises(MismatchError, match="--unit block"):
        MineNegatives(ranking=documents, **inputs).make(tmp_path / "n")
    with pytest.raises(InputError):
        MineNegatives(ranking=ranking, relative_margin=1.0, **inputs).make(tmp_path / "n")


def test_a_copy_of_a_relevant_block_is_no_negative(tmp_path):
    bodies = [f"Passage {n} tells of town {n}." for n in range(6)]
    blocks = make_blocks(tmp_path / "blocks", {"T": [[body] for body in bodies + bodies[:1]]})
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels"
    queries.write_text(json.dumps({"id": "q", "question": "town 0 passage 0"}) + "\n")
    qrels.write_text("q 0 0-0 1\n")
    ranking = Rank(queries=queries, blocks=blocks, method="bm25", top=7).make(tmp_path / "ranking")
    [record] = records(MineNegatives(ranking=ranking, blocks=blocks, qrels=qrels, negatives=7).make(tmp_path / "mined"))
    assert record["positive_passages"][0]["text"] == bodies[0]
    assert bodies[0] not in [passage["text"] for passage in record["negative_passages"]]


@pytest.mark.parametrize(("relevant", "found"), [(("0-0", "0-5"), 1), (("0-5",), 0)])
def test_a_question_counts_as_found_if_one_of_its_positives_is_in_the_ranking(tmp_path, relevant, found):
    blocks = make_blocks(tmp_path / "blocks", {"T": [[f"Passage {n} tells of town {n}."] for n in range(6)]})
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels"
    queries.write_text(json.dumps({"id": "q", "question": "town 0 passage 0"}) + "\n")
    qrels.write_text("".join(f"q 0 {name} 1\n" for name in relevant))
    ranking = Rank(queries=queries, blocks=blocks, method="bm25", top=3).make(tmp_path / "ranking")
    made = MineNegatives(ranking=ranking, blocks=blocks, qrels=qrels).make(tmp_path / "mined")
    assert made.metrics["positive_found"] == found
    assert len(records(made)[0]["positive_passages"]) == len(relevant)


def test_the_margin_is_below_the_best_of_several_positives(chain: Chain, ranking, tmp_path):
    """Each question has its document's first block and the block that the ranking puts tenth as relevant."""
    run = read_run(ranking.file("run.trec"))
    qrels, best = tmp_path / "qrels", {}
    lines = []
    for query, found in run:
        order = sorted(found, key=lambda name: -found[name])
        lines += [f"{query} 0 {order[0]} 1\n", f"{query} 0 {order[9]} 1\n"]
        best[query] = found[order[0]]
    qrels.write_text("".join(lines))
    made = MineNegatives(
        ranking=ranking, blocks=chain.blocks, qrels=qrels, negatives=30, positives=2, relative_margin=0.1
    ).make(tmp_path / "mined")
    scores = dict(read_run(ranking.file("run.trec")))
    names = {block.id: trec_name(block.id) for block in Corpus(chain.blocks)}
    assert records(made)
    for record in records(made):
        kept = {names[passage["docid"]] for passage in record["negative_passages"]}
        query = trec_name(record["query_id"])
        assert len(record["positive_passages"]) == 2
        assert kept == {
            name
            for name, score in scores[query].items()
            if score <= best[query] - 0.1 * abs(best[query]) and f"{query} 0 {name} 1\n" not in lines
        }

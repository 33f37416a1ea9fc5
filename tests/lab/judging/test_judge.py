"""`judge` with a server in this process whose grades are known: the pool, the judgements, agreement, and what has no grade."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, MismatchError, ResourceError
from realmctl.extras.chat import endpoint as client
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.qrels import read_qrels
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.lab.judging.judge import Judge
from realmctl.questions.questions import read_questions
from tests.fixtures.chain import Chain
from tests.fixtures.chat_server import Answer, chat_server

metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)


@pytest.fixture(scope="module")
def rankings(chain: Chain, tmp_path_factory) -> list[Path]:
    folder, inputs = tmp_path_factory.mktemp("rankings"), {"blocks": chain.blocks, "queries": chain.questions, "top": 8}
    dense = Rank(retriever=chain.retriever, index=chain.index, **inputs).make(folder / "dense")
    return [dense.path, Rank(method="bm25", **inputs).make(folder / "bm25").path]


def parts(body: dict) -> tuple[str, str, bool]:
    """Query, passage, and whether the passage came first."""
    prompt = body["messages"][0]["content"]
    query = re.search(r"^Query: (.*)$", prompt, re.MULTILINE)[1]
    passage = re.search(r"^Passage: (.*?)(?=\n\nQuery: |\n\nSay in one)", prompt, re.MULTILINE | re.DOTALL)[1]
    return query, passage, prompt.index("Passage: ") < prompt.index("Query: ")


def grade_of(query: str, passage: str) -> int:
    """3 for a passage with the name that is asked for and a year or a town, as letters are: any fixed rule will do."""
    name = re.search(r"[A-Z]\w+ [A-Z]\w+", query)
    return (2 if name and name[0] in passage else 0) + len(passage) % 2


def told(grade: int, reason: str = "so") -> str:
    return json.dumps({"reason": reason, "grade": grade})


def stage(chain: Chain, url: str, rankings: list[Path], **settings: object) -> Judge:
    given = {
        "blocks": chain.blocks,
        "lm": "m",
        "endpoint": url,
        "rankings": tuple(rankings),
        "depth": 3,
        "repeated": 20,
    }
    return Judge(**{**given, **settings})


def lines(made: Artifact, name: str) -> list[dict]:
    return [*map(json.loads, made.file(name).read_text().splitlines())]


def test_the_pool_is_judged_once_with_reasons(chain: Chain, rankings, tmp_path):
    with chat_server(lambda number, body: told(grade_of(*parts(body)[:2]), f"no. {number}")) as server:
        made = stage(chain, server.url, rankings, repeated=0).make(tmp_path / "judgements")
    blocks = {block.id: block for block in Corpus(chain.blocks)}
    asked = {question.id: question.question for question in read_questions(chain.questions)}
    pool = {
        (query, name)
        for path in rankings
        for query, found in read_run(path / "run.trec")
        for name in sorted(found, key=lambda name: -found[name])[:3]
    }
    qrels = read_qrels(made.path / "qrels" / "test.tsv")
    assert {(query, name) for query, judged in qrels.items() for name in judged} == pool
    assert len(server.asked) == made.metrics["judged"] == made.metrics["requests"] == len(pool)
    for line in lines(made, "judgements.jsonl"):
        block = blocks[line["document"]]
        grade = grade_of(asked[line["query"]], f"{block.title}\n{block.text}".strip())
        assert qrels[line["query"]][line["document"]] == line["grade"] == grade and line["reason"].startswith("no. ")
    assert sum(made.metrics[f"grade_{grade}"] for grade in range(4)) == len(pool) and made.metrics["unjudged"] == 0
    assert "repeated_kappa" not in made.metrics and not any(parts(body)[2] for _, _, body in server.asked)


def test_eval_run_takes_the_judgements(realmctl, chain: Chain, rankings):
    pytest.importorskip("ir_measures")
    with chat_server(lambda number, body: told(grade_of(*parts(body)[:2]))) as server:
        given = ("--endpoint", server.url, "--lm", "m", "--blocks", chain.blocks.path, "--depth", 3, "--repeated", 0)
        code, out, err = realmctl("judge", rankings[0], rankings[1].parent, *given)  # a series is its newest version
        assert code == 0, err
        assert realmctl("judge", rankings[0], rankings[1], *given)[1] == out
    measured = ("eval-run", "--qrels", out.strip(), "--measures", "nDCG@3 RR(rel=2)@3 Judged@3")
    code, out, err = realmctl(*measured, "--ranking", rankings[0], "--baseline", rankings[1])
    assert code in (0, 6) and "Judged@3 1, queries 20" in err and "nDCG@3" in err, err


def test_agreement_with_itself_is_that_of_its_answers(chain: Chain, rankings, tmp_path):
    """A judge that gives one grade more where the passage comes first and is long, and every seventh time another one."""
    given = list[tuple[str, str, bool, int]]()

    def judge(number: int, body: dict) -> str:
        query, passage, swapped = parts(body)
        grade = min(3, grade_of(query, passage) + (swapped and len(passage) > 60) + (number % 7 == 0))
        given.append((query, passage, swapped, grade))
        return told(grade)

    with chat_server(judge) as server:
        made = stage(chain, server.url, rankings, parallel=1).make(tmp_path / "judgements")
    count = made.metrics["judged"]
    first, repeated, swapped = given[:count], given[count : count + 20], given[count + 20 :]
    grades = {(query, passage): grade for query, passage, _, grade in first}
    assert len(swapped) == 20 and all(each[2] for each in swapped) and not any(each[2] for each in first + repeated)
    for kind, some in (("repeated", repeated), ("swapped", swapped)):
        two = [grades[query, passage] for query, passage, _, _ in some], [grade for *_, grade in some]
        assert made.metrics[f"{kind}_kappa"] == pytest.approx(metrics.cohen_kappa_score(*two), abs=1e-6)
        weighted = metrics.cohen_kappa_score(*two, weights="quadratic")
        assert made.metrics[f"{kind}_weighted_kappa"] == pytest.approx(weighted, abs=1e-6)
        assert made.metrics[f"{kind}_kappa_low"] < made.metrics[f"{kind}_kappa"] <= made.metrics[f"{kind}_kappa_high"]
    seeds = [body["seed"] for _, _, body in server.asked]
    assert len(set(seeds)) == len(seeds)
    assert json.loads(made.file("agreement.json").read_text())["repeated"]["pairs"] == 20


def test_agreement_with_people(chain: Chain, rankings, tmp_path):
    """People judged five queries, and a block that no ranking found: it is judged too."""
    queries = [*dict(read_run(rankings[0] / "run.trec"))][:5]
    blocks = [block.id for block in Corpus(chain.blocks)]
    people = {(query, name): number % 3 for query in queries for number, name in enumerate(blocks[:6])}
    (tmp_path / "people").write_text("".join(f"{query} 0 {name} {value}\n" for (query, name), value in people.items()))
    with chat_server(lambda number, body: told(grade_of(*parts(body)[:2]))) as server:
        made = stage(chain, server.url, rankings, qrels=tmp_path / "people", depth=6, repeated=0).make(tmp_path / "out")
    judged = {(line["query"], line["document"]): line["grade"] for line in lines(made, "judgements.jsonl")}
    assert {query for query, _ in judged} == set(queries) and people.keys() <= judged.keys()
    one, two = [int(people[pair] > 0) for pair in people], [int(judged[pair] >= 2) for pair in people]
    assert made.metrics["human_kappa"] == pytest.approx(metrics.cohen_kappa_score(one, two), abs=1e-6)
    graded = [[*people.values()], [judged[pair] for pair in people]]
    weighted = metrics.cohen_kappa_score(*graded, weights="quadratic", labels=range(4))
    assert made.metrics["human_grades_weighted_kappa"] == pytest.approx(weighted, abs=1e-6)
    relevant = [judged[pair] >= 2 for pair, value in people.items() if value]
    assert made.metrics["human_recall"] == pytest.approx(sum(relevant) / len(relevant), abs=1e-6)


def test_people_who_named_relevant_passages_alone_give_no_kappa(chain: Chain, rankings, tmp_path):
    """It would be 0 for any judge."""
    (query, found), *_ = dict(read_run(rankings[0] / "run.trec")).items()
    (tmp_path / "people").write_text("".join(f"{query} 0 {name} 2\n" for name in [*found][:4]))
    grades = iter([3, 0, 2, 1])
    with chat_server(lambda number, body: told(next(grades, 0))) as server:
        given = {"qrels": tmp_path / "people", "depth": 4, "repeated": 0, "parallel": 1}
        made = stage(chain, server.url, rankings[:1], **given).make(tmp_path / "out")
    assert not [name for name in made.metrics if "kappa" in name]
    assert made.metrics["human_pairs"] == 4 and made.metrics["human_recall"] == 0.5


def test_an_answer_without_a_grade_is_asked_for_again_and_never_guessed(chain: Chain, rankings, tmp_path):
    def judge(number: int, body: dict) -> str:
        query, passage, _ = parts(body)
        tries = (len(body["messages"]) + 1) // 2
        needed = (
            1 + len(passage) % 5
        )  # of five passages one answers at once, one when asked again, one at the third time
        return told(grade_of(query, passage)) if tries >= needed else "I would say 3."

    with chat_server(judge) as server:
        made = stage(chain, server.url, rankings, repeated=0).make(tmp_path / "judgements")
    unjudged = lines(made, "unjudged.jsonl")
    assert made.metrics["unjudged"] == len(unjudged) > 0 and made.metrics["asked_again"] > len(unjudged)
    assert len(server.asked) == made.metrics["judged"] + len(unjudged) + made.metrics["asked_again"]
    texts = {block.id: f"{block.title}\n{block.text}".strip() for block in Corpus(chain.blocks)}
    assert all(len(texts[line["document"]]) % 5 > 2 for line in unjudged)
    assert all(len(texts[line["document"]]) % 5 <= 2 for line in lines(made, "judgements.jsonl"))
    again = [body["messages"] for _, _, body in server.asked if len(body["messages"]) == 3]
    assert again and all([each["role"] for each in talk] == ["user", "assistant", "user"] for talk in again)
    assert all(talk[1]["content"] == "I would say 3." for talk in again)
    with chat_server(lambda number, body: "3") as server, pytest.raises(InputError, match="no answer with a grade"):
        stage(chain, server.url, rankings, sample=2).make(tmp_path / "none")
    with chat_server(lambda number, body: told(2)) as server:  # another model of the same name
        made = stage(chain, server.url, rankings, sample=2).make(tmp_path / "none")
    assert made.metrics["unjudged"] == 0 and len(server.asked) == made.metrics["requests"]


def test_a_killed_run_asks_nothing_twice_and_ends_alike(chain: Chain, rankings, tmp_path, monkeypatch):
    def judge(number: int, body: dict) -> str:
        return told(grade_of(*parts(body)[:2]))

    with chat_server(judge) as server:
        whole = stage(chain, server.url, rankings).make(tmp_path / "whole")
    count = len(server.asked)
    monkeypatch.setattr(client, "TRIES", 1)
    with (
        chat_server(lambda number, body: judge(number, body) if number <= 10 else Answer("", 503)) as server,
        pytest.raises(ResourceError),
    ):
        stage(chain, server.url, rankings).make(tmp_path / "judgements")
    with chat_server(judge) as server:
        made = stage(chain, server.url, rankings).make(tmp_path / "judgements")
    assert len(server.asked) == count - 10
    assert {name: file.sha256 for name, file in made.manifest.files.items()} == {
        name: file.sha256 for name, file in whole.manifest.files.items()
    }


def test_runs_of_other_systems_and_of_documents(chain: Chain, tmp_path):
    blocks = [*Corpus(chain.blocks)]
    document = blocks[0].document
    (tmp_path / "run").write_text(f"7 Q0 {document} 1 2 x\n7 Q0 {blocks[5].id} 2 1 x\n7 Q0 gone 3 0.5 x\n")
    (tmp_path / "queries.tsv").write_text("7\tWho was she?\n")
    settings = {"rankings": [tmp_path / "run"], "repeated": 0}
    with chat_server(lambda number, body: told(1)) as server:
        with pytest.raises(InputError, match="--queries"):
            stage(chain, server.url, **settings).make(tmp_path / "j")
        made = stage(chain, server.url, queries=tmp_path / "queries.tsv", **settings).make(tmp_path / "j")
    assert made.metrics["judged"] == 2 and made.metrics["without_text"] == 1
    texts = {line["_id"]: line["text"] for line in lines(made, "corpus.jsonl")}
    assert texts[document] == "\n".join(block.text for block in blocks if block.document == document)


def test_what_cannot_be_judged_is_refused(chain: Chain, rankings, tmp_path):
    with pytest.raises(ConfigError, match="judge needs --endpoint"):
        Judge(blocks=chain.blocks, lm="m", rankings=tuple(rankings)).check()
    with pytest.raises(ConfigError, match="needs a ranking"):
        stage(chain, "http://localhost:1", []).check()
    with pytest.raises(MismatchError, match="is of kind blocks"):
        stage(chain, "http://localhost:1", [chain.blocks.path]).make(tmp_path / "j")
    (tmp_path / "people").write_text("nobody 0 x 1\n")
    with pytest.raises(InputError, match="no query that people judged"):
        stage(chain, "http://localhost:1", rankings, qrels=tmp_path / "people").make(tmp_path / "j")
    (tmp_path / "run").write_text("1 Q0 elsewhere 1 2 x\n")
    (tmp_path / "queries.tsv").write_text("1\tWho was she?\n")
    with pytest.raises(InputError, match=r"'elsewhere'[.] Name the blocks"):
        stage(chain, "http://localhost:1", [tmp_path / "run"], queries=tmp_path / "queries.tsv").make(tmp_path / "j")
    assert not [*(tmp_path / "j").glob("v*/manifest.json")]

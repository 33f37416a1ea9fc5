"""`generate-queries --endpoint`: the model of a server writes, each answer is kept with its prompt, and nothing is asked twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from realmctl.artifacts import Artifact, open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.extras.chat import endpoint as client
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.lab.language_models.generate_queries import GenerateQueries
from realmctl.lab.language_models.generation import asked_in, drawn
from realmctl.pipeline.trial import Trial
from realmctl.training import budget
from stages.embed import Embed
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, documents
from tests.fixtures.chat_server import Answer, ChatServer, chat_server
from tests.fixtures.encoder_folders import folder_for


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    for name in (client.KEY, client.PROVIDERS_KEY):
        monkeypatch.delenv(name, raising=False)


def write(number: int, body: dict) -> str:
    """A question about the block, which is the last text of the prompt."""
    name = re.findall(r"[A-Z]\w+ [A-Z]\w+", body["messages"][-1]["content"].rpartition("Text:")[2])
    return f"Question: Where was {name[0] if name else 'she'} in year {body['seed'] % 1000}?"


def stage(chain: Chain, server: ChatServer, **settings: object) -> GenerateQueries:
    given = {"blocks": chain.blocks, "lm": "some-model:1b", "endpoint": server.url, "sample": 12, "parallel": 3}
    return GenerateQueries(**{**given, **settings})


def lines(made: Artifact, name: str) -> list[dict]:
    return [*map(json.loads, made.file(name).read_text().splitlines())]


def test_queries_and_every_answer_with_its_prompt(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setenv(client.KEY, "top-secret-key")
    with chat_server(write) as server:
        made = stage(chain, server).make(tmp_path / "queries")
        again = stage(chain, server, endpoint="http://127.0.0.1:1/v1", parallel=1).make(tmp_path / "queries")
    assert again.path == made.path and len(server.asked) == 12  # where it was asked is no part of the recipe
    answers = {line["id"]: line for line in lines(made, "answers.jsonl")}
    blocks = {block.id: block for block in Corpus(chain.blocks)}
    assert sorted(line["messages"][0]["content"] for line in answers.values()) == sorted(server.prompts)
    for line in lines(made, "queries.jsonl"):
        answer, block = answers[line["_id"]], blocks[line["_id"].partition(":")[0]]
        assert block.text in answer["messages"][0]["content"] and answer["answer"] == f"Question: {line['text']}"
        assert answer["model"] == "some-model:1b" and "metadata" not in line
    assert [question.positives[0].text for question in training_questions(made.path)]
    assert made.metrics["requests"] == 12 and made.metrics["prompt_tokens"] == 84 and "log_prob" not in made.metrics
    assert made.manifest.inputs["lm"] == "served:some-model:1b"
    assert all(headers["Authorization"] == "Bearer top-secret-key" for _, headers, _ in server.asked)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"top-secret-key" not in path.read_bytes()


def test_a_killed_run_asks_nothing_twice_and_ends_alike(chain: Chain, tmp_path, monkeypatch):
    with chat_server(write) as server:
        whole = stage(chain, server, queries_per_block=2).make(tmp_path / "whole")
    monkeypatch.setattr(client, "TRIES", 1)
    fails = pytest.raises(ResourceError, match=r"failed 1 times: 503 down.*goes on with what is not")
    with chat_server(lambda number, body: write(number, body) if number <= 9 else Answer("down", 503)) as server, fails:
        stage(chain, server, queries_per_block=2).make(tmp_path / "queries")
    [journal] = (tmp_path / "queries").rglob("answers.jsonl")
    journal.write_bytes(journal.read_bytes()[:-9])  # a kill cut the last line short
    with chat_server(write) as server:
        made = stage(chain, server, queries_per_block=2).make(tmp_path / "queries")
    assert len(server.asked) == 24 - 8
    for name in ("queries.jsonl", "answers.jsonl", "dropped.jsonl", "qrels/train.tsv"):
        assert made.file(name).read_bytes() == whole.file(name).read_bytes()


def test_answers_of_which_none_is_of_use_are_asked_for_again(chain: Chain, tmp_path, capsys):
    with (
        chat_server(lambda number, body: "") as server,
        pytest.raises(InputError, match=r"none is left.*All are asked again then"),
    ):
        stage(chain, server).make(tmp_path / "queries")
    with chat_server(write) as server:
        made = stage(chain, server).make(tmp_path / "queries")
        assert len(server.asked) == 12 == made.metrics["asked_blocks"]
        assert f"12 blocks go to {server.url}" in capsys.readouterr().err


def test_queries_that_no_round_trip_finds_are_asked_for_again(chain: Chain, tmp_path, monkeypatch):
    given = {"round_trip": chain.retriever, "index": chain.index}
    monkeypatch.setattr("realmctl.lab.language_models.generation._found_again", lambda kept, settings: set())
    with chat_server(write) as server, pytest.raises(InputError, match=r"none is left \(not_found 12\)"):
        stage(chain, server, **given).make(tmp_path / "queries")
    monkeypatch.setattr("realmctl.lab.language_models.generation._found_again", lambda kept, settings: {*kept})
    with chat_server(write) as server:
        stage(chain, server, **given).make(tmp_path / "queries")
    assert len(server.asked) == 12


def test_nothing_is_asked_of_documents_whose_questions_measure_nor_of_copies(chain: Chain, tmp_path):
    corpus = Corpus(chain.blocks)
    with chat_server(write) as server:
        judge = stage(chain, server, sample=4).make(tmp_path / "judge")
        rest = stage(chain, server, sample=1000, held_out=judge).make(tmp_path / "rest")
    of = {block.id: block.document for block in corpus}
    asked = [{of[line["_id"].partition(":")[0]] for line in lines(made, "queries.jsonl")} for made in (judge, rest)]
    assert asked[0] and asked[1] and not asked[0] & asked[1]
    with chat_server(write) as server:
        few = stage(chain, server, sample=1000, documents=0.3).make(tmp_path / "few")
        more = stage(chain, server, sample=1000, documents=0.3, held_out=few).make(
            tmp_path / "more"
        )  # of the same seed
    asked = [{of[line["_id"].partition(":")[0]] for line in lines(made, "queries.jsonl")} for made in (few, more)]
    assert asked[0] and asked[1] and not asked[0] & asked[1]
    copied = SimpleNamespace(lengths=np.full(4, 20), uid=np.array([7, 8, 7, 9], np.uint64))
    assert drawn(copied, 9, 0) == [0, 1, 3]  # type: ignore[arg-type]


def test_no_more_requests_are_under_way_than_were_asked_for(chain: Chain, tmp_path):
    import threading
    import time

    lock, under_way, most = threading.Lock(), 0, 0

    def counted(number: int, body: dict) -> str:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.01)
        with lock:
            under_way -= 1
        return write(number, body)

    with chat_server(counted) as server:
        stage(chain, server, parallel=2, sample=10).make(tmp_path / "queries")
    assert most == 2


def test_a_long_block_is_cut_between_words(chain: Chain, tmp_path):
    with chat_server(write) as server:
        stage(chain, server, block_length=8, sample=3).make(tmp_path / "queries")
    texts = [prompt.rpartition("Text:")[2].removesuffix("\nQuestion:").split("\n", 1)[1] for prompt in server.prompts]
    whole = [block.text for block in Corpus(chain.blocks)]
    assert all(len(text) <= 32 and any(f"{text} " in each for each in whole) for text in texts)


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("Who was Ada?", "Who was Ada?"),
        ("**Question:** Who was Ada?\n\nAnswer: a writer", "Who was Ada?"),
        ("Sure! Here is one:\n\n\"Who was Ada?\"", "Who was Ada?"),
        ("<think>\nWhich? Let me see.\n</think>\n\nWho was Ada? What else?", "Who was Ada?"),
        ("<think> I never end?", ""),
        ("ada of lovelace", "ada of lovelace"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_query_in_an_answer(answer, query):
    assert asked_in(answer) == query


def test_answers_without_a_query_are_dropped_for_a_reason(chain: Chain, tmp_path):
    answers = [
        Answer("It was never", ended=False),
        Answer(""),
        Answer("?!"),
        Answer("Where was she?"),
        Answer("where was SHE"),
    ]
    with chat_server(lambda number, body: answers[(number - 1) % 5]) as server:
        made = stage(chain, server, sample=5, parallel=1).make(tmp_path / "queries")
    assert {line["reason"] for line in lines(made, "dropped.jsonl")} == {"unfinished", "empty", "repeated"}
    assert [line["text"] for line in lines(made, "queries.jsonl")] == ["Where was she?"]
    with chat_server(lambda number, body: "") as server, pytest.raises(InputError, match="wrote 5 queries, and none"):
        stage(chain, server, sample=5).make(tmp_path / "none")


def test_what_says_nothing_is_refused(chain: Chain, realmctl, tmp_path):
    with pytest.raises(ConfigError, match="--keep"):
        GenerateQueries(blocks=chain.blocks, lm="m", endpoint="http://localhost:1", keep=0.5).check()
    with pytest.raises(ConfigError, match="--endpoint"):
        GenerateQueries(blocks=chain.blocks, lm="m", endpoint="localhost")
    given = ("generate-queries", "--blocks", chain.blocks.path, "--lm", "llama3.2:1b")
    code, _, err = realmctl(*given, "--endpoint", "http://127.0.0.1:9/v1")
    assert (
        code == 5 and "there is no server at http://127.0.0.1:9/v1" in err and not Path("artifacts/queries/v1").exists()
    )
    code, _, err = realmctl(*given, "--endpoint", "http://127.0.0.1:9/v1", "--dry-run")
    assert code == 0, err
    code, _, err = realmctl(*given)  # without a server it is a folder
    assert code in (2, 3) and "llama3.2:1b" in err
    code, _, err = realmctl("generate-queries", "--lm", "llama3.2:1b", "--endpoint", "http://127.0.0.1:9/v1")
    assert code == 3 and "--blocks" in err


def test_whole_documents_are_drawn_for_questions_that_a_training_leaves_out(chain: Chain, tmp_path):
    """A fifth of the documents, and all their blocks are asked of."""
    corpus = Corpus(make_blocks(tmp_path / "blocks", documents()))
    rows = drawn(corpus, 1000, 0, 0.2)
    asked = {corpus.block(row).document for row in rows}
    whole = [row for row in drawn(corpus, 1000, 0) if corpus.block(row).document in asked]
    assert rows == whole and 0 < sum(block.document in asked for block in corpus) <= 0.2 * len(corpus)
    assert len(drawn(corpus, 3, 0, 0.2)) == 3 and drawn(corpus, 1000, 1, 0.2) != rows
    with pytest.raises(InputError, match="no document with text enough has at most 1% of the blocks"):
        drawn(corpus, 3, 0, 0.01)


def test_adapt_is_measured_by_questions_of_documents_that_it_leaves_out(realmctl, chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(60.0))
    monkeypatch.setattr(budget, "_seconds", lambda *given: 0.2)  # twenty steps fit, and some more
    rows = [
        {"id": f"{title} {number}", "title": title, "text": " ".join(block).replace("[[", "").replace("]]", "")}
        for title, own in documents().items()
        for number, block in enumerate(own)
    ]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    given = (
        "adapt",
        tmp_path / "corpus.jsonl",
        "--encoder",
        encoder,
        "--minutes",
        1,
        "--sentences",
        12,
        "--language",
        "en",
    )
    with chat_server(write) as server:
        words = (*given, "--endpoint", server.url, "--lm", "some-model", "--workspace", tmp_path / "w", "--json")
        code, out, err = realmctl(*words)
        count = len(server.asked)
        again = realmctl(*words)
    assert code == 0 and again[:2] == (0, out) and len(server.asked) == count == 12, err  # three tenths of 40 blocks
    assert "12 questions can hardly show a gain" in err
    found, questions = json.loads(out), open_artifact(tmp_path / "w/held-out-questions")
    assert (
        found["held_out_questions"] == questions.metrics["queries"]
        and "last_question_gain" in found
        and "last_title_gain" not in found
    )
    trained = open_artifact(found["made"]["retriever"])
    assert trained.manifest.inputs["held_out"] == questions.content and trained.settings["cloze_titles"] == 0
    code, out, err = realmctl(*words[:-1])
    assert code == 0 and f"{found['held_out_questions']} questions" in out, out
    code, _, err = realmctl(*given, "--endpoint", "http://127.0.0.1:1")
    assert code == 2 and "--endpoint needs --lm" in err

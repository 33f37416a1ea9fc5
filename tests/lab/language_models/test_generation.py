"""`generate-queries` with a tiny language model, beside plain generation of transformers, and the stages that read what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.judged import training_questions
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.lab.dpr.dpr_finetune import DprFinetune
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.lab.language_models import generation
from realmctl.lab.language_models.generate_queries import GenerateQueries
from realmctl.lab.language_models.generation import GeneratedQuery, sorted_out
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.retrieval.search.opening import load_search
from tests.fixtures.chain import Chain
from tests.fixtures.language_models import make_babbler, make_bert_with_lm_head, make_llama, make_t5

PROMPT = "Text: {title}\n{block}\nQuestion:"
SAMPLED = {"temperature": 1.0, "queries_per_block": 3, "sample": 30, "query_length": 24, "precision": "fp32"}


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    return str(make_babbler(tmp_path_factory.mktemp("lm") / "babbler"))


@pytest.fixture(scope="module")
def prompt(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompt") / "prompt.txt"
    path.write_text(PROMPT + "\n")
    return path


@pytest.fixture(scope="module")
def stage(chain: Chain, lm, prompt):
    return lambda **settings: GenerateQueries(
        **{"blocks": chain.blocks, "lm": lm, "prompt": prompt, **SAMPLED, **settings}
    )


@pytest.fixture(scope="module")
def made(stage, tmp_path_factory) -> Artifact:
    return stage().make(tmp_path_factory.mktemp("made") / "queries")


def lines(made: Artifact, name: str) -> list[dict]:
    return [*map(json.loads, made.file(name).open(encoding="utf-8"))]


def test_greedy_queries_are_those_of_plain_generation(chain: Chain, stage, lm, tmp_path):
    greedy = {"temperature": 0.0, "queries_per_block": 1, "block_length": 40, "sample": 8}
    made = stage(**greedy).make(tmp_path / "queries")
    net, model = AutoModelForCausalLM.from_pretrained(lm), load_language_model(Path(lm))
    kept, dropped = lines(made, "queries.jsonl"), lines(made, "dropped.jsonl")
    written = {line["_id"].partition(":")[0]: line for line in kept} | {line["block"]: line for line in dropped}
    for block in Corpus(chain.blocks):
        if line := written.get(block.id):
            asked = PROMPT.replace("{title}", block.title).replace("{block}", block.text[:40].rstrip())
            ids = torch.tensor([[1, *model.ids(asked)]])  # the token that begins a text, and a token for each byte
            plain = net.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
            text, mark, _ = model.text(plain[0, ids.shape[1] :].tolist()).partition("?")
            assert line["text"] == " ".join((text + mark).split())
    assert kept and len(written) == made.metrics["written"] == 8


def test_the_queries_are_a_training_set_of_their_blocks(chain: Chain, made):
    blocks = {block.id: block for block in Corpus(chain.blocks)}
    asked = [query.id.partition(":")[0] for query in read_queries(made.path)]
    questions = [*training_questions(made.path)]
    assert len(questions) == made.metrics["queries"] >= 10
    for name, question in zip(asked, questions, strict=True):
        (passage,) = question.positives
        assert (passage.title, passage.text) == (blocks[name].title, blocks[name].text)


def test_dpr_finetune_rank_and_mine_negatives_read_them(chain: Chain, made, tmp_path):
    few = {"retriever": chain.retriever, "steps": 2, "batch_size": 4}
    assert DprFinetune(passages=made.path, hard_negatives=0, **few).make(tmp_path / "dpr").metrics["questions"] > 9
    parts = {"blocks": chain.blocks, "retriever": chain.retriever, "index": chain.index}
    ranking = Rank(queries=made.path, top=20, **parts).make(tmp_path / "ranking")
    mined = MineNegatives(ranking=ranking, blocks=chain.blocks, qrels=made.path).make(tmp_path / "negatives")
    assert mined.metrics["questions"] == made.metrics["queries"]
    assert DprFinetune(passages=mined.file("train.jsonl"), **few).make(tmp_path / "hard").metrics["steps"] == 2


def test_every_query_is_kept_or_dropped_for_a_reason(made):
    kept, dropped = lines(made, "queries.jsonl"), lines(made, "dropped.jsonl")
    assert len(kept) + len(dropped) == made.metrics["written"] == 90
    assert {f"dropped_{line['reason']}" for line in dropped} == {name for name in made.metrics if "dropped_" in name}
    assert len({line["text"] for line in kept}) == len(kept)


def test_a_killed_run_goes_on_where_it_stopped_and_ends_with_the_same_bytes(stage, made, tmp_path, monkeypatch):
    plain, batches = generation.PromptWriter.write, []

    def counted(writer, prompts, uniform):
        batches.append(len(prompts))
        if len(batches) == 3:
            raise KeyboardInterrupt
        return plain(writer, prompts, uniform)

    monkeypatch.setattr(generation.PromptWriter, "write", counted)
    with pytest.raises(KeyboardInterrupt):
        stage().make(tmp_path / "queries")
    [journal] = (tmp_path / "queries").rglob("queries.jsonl")
    journal.write_bytes(journal.read_bytes()[:-9])  # the last line was cut short
    again = stage().make(tmp_path / "queries")
    assert batches == [10] * 5
    for name in ("queries.jsonl", "qrels/train.tsv", "corpus.jsonl", "dropped.jsonl"):
        assert again.file(name).read_bytes() == made.file(name).read_bytes()


def test_the_seed_decides_which_blocks_are_asked_of_and_what_is_written(stage, made, tmp_path):
    other = stage(seed=1, sample=10).make(tmp_path / "queries")
    assert other.metrics["asked_blocks"] == 10
    long = [{line["text"] for line in lines(each, "queries.jsonl") if len(line["text"]) > 8} for each in (made, other)]
    assert all(long) and not long[0] & long[1]


def test_the_likeliest_are_kept(stage, made, tmp_path):
    half = stage(keep=0.5).make(tmp_path / "queries")
    by_score = sorted(lines(made, "queries.jsonl"), key=lambda line: -line["metadata"]["log_prob"])
    count = -(-len(by_score) // 2)
    assert {line["_id"] for line in lines(half, "queries.jsonl")} == {line["_id"] for line in by_score[:count]}
    assert half.metrics["dropped_unlikely"] == len(by_score) - count


def test_a_query_must_find_its_block_again(chain: Chain, stage, made, tmp_path):
    found = stage(round_trip=chain.retriever, index=chain.index, round_trip_top=5).make(tmp_path / "queries")
    search = load_search(blocks=chain.blocks, retriever=chain.retriever, index=chain.index)
    wanted = [
        line["_id"]
        for line in lines(made, "queries.jsonl")
        if line["_id"].partition(":")[0] in {hit.block.id for hit in search.search(line["text"], 5)}
    ]
    assert [line["_id"] for line in lines(found, "queries.jsonl")] == wanted
    assert found.metrics["dropped_not_found"] == made.metrics["queries"] - len(wanted) > 0


@pytest.mark.parametrize(
    ("text", "ended", "reason"),
    [
        ("Where was the poet born?", True, None),
        ("Where was the poet", False, "unfinished"),
        ("?!", True, "empty"),
        ("Question?", True, "prompt"),
        ("The FAMILY  was poor?", True, "copied"),
        ("where was THE poet born", True, "repeated"),
    ],
)
def test_what_is_useless_is_dropped(chain: Chain, text, ended, reason):
    first = GeneratedQuery(0, 0, "Where was the poet born?", -1.0, True)
    other = GeneratedQuery(0 if reason != "repeated" else 2, 1, text, -1.0, ended)
    kept, dropped = sorted_out([first, other] if reason else [other], Corpus(chain.blocks), PROMPT)
    assert [why for _, why in dropped] == ([reason] if reason else []) and len(kept) == 1


def test_a_sequence_to_sequence_model_writes_too(chain: Chain, stage, tmp_path):
    t5 = str(make_t5(tmp_path / "t5"))
    with pytest.raises(InputError, match="none is left"):  # its weights are random: no query ends
        stage(lm=t5, prompt=None, temperature=0.0, queries_per_block=1, sample=2).make(tmp_path / "queries")
    assert not [*(tmp_path / "queries").rglob("queries.jsonl")]  # the same command writes all again


@pytest.mark.parametrize("text", ["No place.", "{block} {block}", "{title} {title} {block}"])
def test_a_prompt_has_one_place_for_the_block(stage, tmp_path, text):
    (tmp_path / "odd.txt").write_text(text)
    with pytest.raises(ConfigError, match=r"odd\.txt"):
        stage(prompt=tmp_path / "odd.txt").make(tmp_path / "queries")


def test_what_does_not_fit_together_is_refused(stage, tmp_path):
    with pytest.raises(ConfigError, match="--temperature"):
        stage(temperature=0.0).make(tmp_path / "queries")
    llama = str(make_llama(tmp_path / "llama"))
    with pytest.raises(ConfigError, match="256 positions"):
        stage(lm=llama, prompt=None).make(tmp_path / "queries")


def test_a_model_that_sees_what_follows_is_refused(stage, tmp_path):
    with pytest.raises(InputError, match="type bert"):
        stage(lm=str(make_bert_with_lm_head(tmp_path / "bert"))).make(tmp_path / "queries")


def test_a_trial_counts_the_blocks_that_are_asked_of_and_writes_nothing(stage, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    found = stage(sample=8).trial()
    assert (found.unit, found.count) == ("blocks", 8) and found.each > 0
    assert sorted(tmp_path.rglob("*")) == before

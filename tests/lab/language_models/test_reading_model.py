"""A language model that reads the blocks of a search: its mixture against a loop over transformers, and the commands that use it."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from realmctl.corpus.blocks import Block
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.lab.language_models import reading_model
from realmctl.lab.language_models.reading_model import ReadingModel, ReadingOptions
from realmctl.retrieval.search.block_search import Hit
from realmctl.retrieval.search.opening import load_search
from stages.eval_em import EvalEm
from tests.fixtures.language_models import byte_tokenizer, make_gpt2, make_t5

PROMPT = "Question: {}\nAnswer:"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {make.__name__: make(tmp_path_factory.mktemp("lm"), width=64) for make in (make_gpt2, make_t5)}


def ids(text):
    return byte_tokenizer().encode(text, add_special_tokens=False).ids


def reading_of(chain, folder, **options):
    search = load_search(chain.folder, index=chain.index, blocks=chain.blocks)
    return ReadingModel.open(folder, search, ReadingOptions(length=250, answer_length=8, **options), "cpu", "fp32")


def hits_of(question, reading, count):
    return reading.searcher.search(reading.tokens([question]), count)[0]


def test_every_token_is_the_likeliest_of_the_mixture(chain, folders):
    folder, question = folders["make_gpt2"], "Where was Ada Lorn born?"
    reading, net = reading_of(chain, folder, blocks=3), AutoModelForCausalLM.from_pretrained(folder)
    hits = hits_of(question, reading, 3)
    heads = [[1, *ids(f"{hit.block.title}\n{hit.block.text}\n\n"), *ids(PROMPT.format(question))] for hit in hits]
    written, log_probs = [], []
    for _ in range(8):
        each = [net(torch.tensor([[*head, *written]])).logits[0, -1].softmax(0) for head in heads]
        mixed = sum(hit.probability * own for hit, own in zip(hits, each, strict=True))
        written.append(int(mixed.argmax()))
        log_probs.append(mixed.max().log().item())
    sources = [torch.tensor([hit.probability]).log() for hit in hits]
    found = reading.reader.model.generate(heads, 1, 8, 1, torch.cat(sources))
    assert found[0][0] == (written[: written.index(1)] if 1 in written else written)
    assert all(own == found[0] for own in found)


def test_an_answer_has_the_mixtures_probability_and_the_block_that_speaks_for_it(chain, folders):
    folder, question, text = folders["make_gpt2"], "Where was Ada Lorn born?", "Velford"
    reading, net = reading_of(chain, folder, blocks=3), AutoModelForCausalLM.from_pretrained(folder)
    hits, target = hits_of(question, reading, 3), ids(f" {text}")
    own = []
    for hit in hits:
        row = [1, *ids(f"{hit.block.title}\n{hit.block.text}\n\n"), *ids(PROMPT.format(question)), *target]
        log_prob = net(torch.tensor([row])).logits[0].log_softmax(-1)[-len(target) - 1 : -1]
        own.append(log_prob.gather(1, torch.tensor(target)[:, None])[:, 0].detach())
    prior = torch.tensor([hit.probability for hit in hits])
    mixed = (prior[:, None] * torch.stack(own).exp()).sum(0).log().mean().item()
    passages, weights = reading._passages(hits)
    source = tuple(ids(PROMPT.format(question)))
    blocks = [reading.reader.fitted(passage, source, 8) for passage in passages]
    with torch.no_grad():
        answer = reading._scored(text, tuple(target), blocks, source, torch.tensor(weights).log(), hits)
    assert answer.score == pytest.approx(mixed, abs=1e-4)
    likeliest = max(zip(hits, own, prior, strict=True), key=lambda one: one[2].log() + one[1].sum())[0]
    assert answer.hit == likeliest
    if answer.start is not None:
        assert answer.hit.block.text[answer.start : answer.end] == text


@pytest.mark.parametrize("name", ["make_gpt2", "make_t5"])
@pytest.mark.parametrize("reading", ["mixed", "together"])
def test_several_answers_are_different_and_the_best_first(chain, folders, name, reading):
    found = reading_of(chain, folders[name], reading=reading).ask("Where was Ada Lorn born?", top=3)
    texts, scores = [answer.text for answer in found.answers], [answer.score for answer in found.answers]
    assert len(set(texts)) == len(texts) <= 3 and scores == sorted(scores, reverse=True)
    assert all(answer.hit in found.hits for answer in found.answers)


@pytest.mark.parametrize(
    ("name", "written", "kept"),
    [
        ("make_gpt2", "\nVelford\nQuestion:", "\nVelford"),
        ("make_t5", "<extra_id_0> Velford<extra_id_1> town", "<extra_id_0> Velford"),
    ],
)
def test_an_answer_ends_with_its_line_or_its_sentinel(chain, folders, name, written, kept):
    reading = reading_of(chain, folders[name])
    assert list(reading._first_line(ids(written))) == ids(kept) and reading.reader.model.text(ids(kept)) == "Velford"


def test_together_one_prompt_has_all_blocks_the_best_first(chain, folders):
    reading = reading_of(chain, folders["make_gpt2"], reading="together")
    hits = [Hit(row, Block(str(row), str(row), f"T{row}", f"text {row}", (), (), None), 1.0, 0.5) for row in range(2)]
    [passage], _ = reading._passages(hits)
    block = reading.reader.fitted(passage, (), 8)
    assert list(block) == ids("T0\ntext 0\n\nT1\ntext 1\n\n")


@pytest.mark.parametrize("name", ["make_gpt2", "make_t5"])
def test_eval_em_reads_what_the_searcher_finds(chain, folders, name, tmp_path):
    inputs = {"retriever": chain.retriever, "index": chain.index, "blocks": chain.blocks, "questions": chain.questions}
    stage = EvalEm(**inputs, reader_lm=str(folders[name]), reader_length=250, answer_length=4, limit=3, hits=5)
    stage.check()
    scores = json.loads(stage.make(tmp_path / "scores").file("scores.json").read_text())
    assert scores["questions"] == 3 and 0 <= scores["em"] <= 1 and "recall@5" in scores and scores["cut_blocks"] == 0


def test_eval_utility_of_a_language_model(chain, folders, tmp_path):
    inputs = {"retriever": chain.retriever, "index": chain.index, "blocks": chain.blocks, "spans": chain.spans}
    stage = EvalUtility(**inputs, reader_lm=str(folders["make_gpt2"]), reader_length=80, queries=6)
    stage.check()
    found = json.loads(stage.make(tmp_path / "utility").file("utility.json").read_text())
    assert found["queries"] == 6 and found["log_prob"] < 0 and "own_utility" in found and found["cut_blocks"] > 0


def test_ask_with_a_language_model(chain, folders, realmctl):
    command = ("ask", "Where was Ada Lorn born?", "--workspace", chain.folder, "--reader-lm", folders["make_gpt2"])
    code, out, _ = realmctl(*command, "--json")
    found = json.loads(out)
    assert code == 0 and found["question"] and isinstance(found["answers"], list)
    code, _, err = realmctl(*command, "--without", "x")
    assert code == 2 and "--without is for a fine-tuned model" in err


@pytest.mark.parametrize(
    "given", [("--reading", "together"), ("--prompt", "{question}?"), ("--block-prompt", "{title} {block}")]
)
def test_what_only_a_language_model_obeys_is_refused_without_one(chain, realmctl, given):
    asked = ("ask", "Where was Ada Lorn born?", "--workspace", chain.folder, *given)
    scored = ("eval-em", "--retrieval", "bm25", "--questions", chain.questions, "--workspace", chain.folder, *given)
    for command in (asked, scored):
        code, _, err = realmctl(*command)
        assert code == 2 and f"{given[0]} needs --reader-lm" in err


def test_an_index_inside_a_model_is_searched_by_its_retriever(chain, model, folders, realmctl):
    command = ("ask", "Where was Ada Lorn born?", "--workspace", chain.folder, "--reader-lm", folders["make_gpt2"])
    code, _, err = realmctl(*command, "--index", model.path, "--json")
    assert code == 0, err


def test_a_chat_model_reads_the_prompt_that_is_named(chain, tmp_path, realmctl):
    folder = make_gpt2(tmp_path / "chat")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    command = ("ask", "Where was Ada Lorn born?", "--workspace", chain.folder, "--reader-lm", folder)
    code, out, err = realmctl(*command)
    assert (code, out) == (2, "") and "--prompt" in err and len(err.strip().splitlines()) <= 2
    assert realmctl(*command, "--prompt", "Question: {question} Answer:")[0] == 0


def test_ask_refuses_what_is_no_language_model(chain, tmp_path, realmctl):
    (tmp_path / "empty").mkdir()
    command = ("ask", "Who?", "--workspace", chain.folder, "--reader-lm", tmp_path / "empty")
    code, _, err = realmctl(*command)
    assert code == 3 and str(tmp_path / "empty") in err and len(err.strip().splitlines()) <= 2


def test_the_place_of_an_answer_is_one_in_the_text_as_it_is_written():
    text = "Die Großstädte hießen früher anders; die größte STRASSE führt nach Berlin. \u0130zmir"
    for answer, written in (("Berlin", "Berlin"), ("BERLIN", "Berlin"), ("straße", "STRASSE"), ("grosstädte", None)):
        place = reading_model._place(answer, text)
        assert (place and text[slice(*place)]) == written

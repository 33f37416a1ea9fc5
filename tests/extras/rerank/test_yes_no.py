"""Language models that answer yes or no, beside sentence-transformers' LogitScore."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen3Config

from realmctl.errors import InputError
from realmctl.extras.rerank.cross_encoder import CrossEncoder
from realmctl.extras.rerank.yes_no import INSTRUCT, QWEN
from realmctl.retrieval.search.reranking import Pair
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures.chain import Chain

QUESTION = "Where was Ada Lorn born?"
TEXTS = ["Ada Lorn was born in Velford.", "The family was poor. " * 12, "", "That firm is in Harrow."]
TEMPLATE = (
    "{% set asked = messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first %}"
    "{% for message in messages %}{% if message.role == 'system' %}Task: {{ message.content | trim }} {% endif %}{% endfor %}"
    "Question: {{ asked }} Text: {{ messages[-1]['content'] }} Answer yes or no:"
)


@pytest.fixture(scope="module")
def plain(chain: Chain, tmp_path_factory):
    """A tiny Qwen3 with the words of the chain, of which two are yes and no."""
    folder, words = tmp_path_factory.mktemp("qwen") / "plain", Tokenizer.load(chain.blocks.path)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=32,
        max_position_embeddings=512,
        initializer_range=0.4,
        pad_token_id=words.pad,
        eos_token_id=words.sep,
        bos_token_id=None,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    library = json.loads(words.tokenizer.to_str())
    library["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(library))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"),
        pad_token="[PAD]",
        unk_token="[UNK]",
        eos_token="[SEP]",
        model_max_length=64,
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(plain, tmp_path_factory):
    """Returns a folder that sentence-transformers saved, and its own scores."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.cross_encoder.modules import LogitScore

    def make(template: str | None, no: int | None = 8, **options):
        base = tmp_path_factory.mktemp("saved")
        shutil.copytree(plain, base / "plain")
        if template:
            (base / "plain" / "chat_template.jinja").write_text(template)
        modules = [Transformer(str(base / "plain"), transformer_task="text-generation"), LogitScore(7, no)]
        library.CrossEncoder(modules=modules, device="cpu", **options).save(
            str(base / "saved"), create_model_card=False
        )
        theirs = library.CrossEncoder(str(base / "saved"), device="cpu")
        return base / "saved", np.array([float(theirs.predict([(QUESTION, text.strip())])[0]) for text in TEXTS])

    return make


@pytest.mark.parametrize(
    ("template", "options"),
    [
        (None, {}),
        (None, {"no": None, "activation_fn": torch.nn.Identity()}),
        (TEMPLATE, {}),
        (
            TEMPLATE,
            {"prompts": {"web": " Find it. "}, "default_prompt_name": "web", "activation_fn": torch.nn.Identity()},
        ),
    ],
)
def test_scores_are_those_of_sentence_transformers(saved, template, options):
    folder, theirs = saved(template, **options)
    model = CrossEncoder.open(folder, "cpu")
    found = model.scores([Pair(QUESTION, "", text) for text in TEXTS])
    assert np.ptp(theirs) > 0.01 and found == pytest.approx(theirs, abs=1e-5)
    assert (model.around is None) is (template is None)


def test_a_cut_keeps_the_end_that_asks_for_the_answer(saved):
    model = CrossEncoder.open(saved(TEMPLATE)[0], "cpu")
    [(ids, _)] = model.encoded([Pair(QUESTION, "", TEXTS[1] * 9)])
    assert len(ids) == 64 and model.around is not None
    end = model.tokenizer(" Answer yes or no:", add_special_tokens=False)["input_ids"]
    assert ids[-len(end) :] == end == [*model.around.kept]


def test_a_folder_of_transformers_is_read_as_qwen3_reranker(plain, tmp_path):
    folder = tmp_path / "qwen"
    shutil.copytree(plain, folder)
    with pytest.raises(InputError, match="no LogitScore says"):
        CrossEncoder.open(folder, "cpu")
    library = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = library["model"]["vocab"]
    old = sorted(vocabulary, key=vocabulary.get)[7:9]
    for name, word in zip(("yes", "no"), old, strict=True):
        vocabulary[name] = vocabulary.pop(word)
    (folder / "tokenizer.json").write_text(json.dumps(library))
    model = CrossEncoder.open(folder, "cpu")
    before, between, behind = QWEN
    whole = before.replace("{instruct}", INSTRUCT) + QUESTION + between + TEXTS[0] + behind
    ids = model.tokenizer(whole, add_special_tokens=False, return_tensors="pt")["input_ids"]
    model.length = 512
    with torch.no_grad():
        logits = model.net.net(input_ids=ids).logits[0, -1]
    expected = torch.sigmoid(logits[7] - logits[8]).item()
    assert model.scores([Pair(QUESTION, "", TEXTS[0])])[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "template",
    [
        "{% for a in messages %}{% for b in messages %}x{% endfor %}{% endfor %}",
        "{{ 'a' * 10000000000 }}",
        "{{ range(10) }}",
        "{% set x = messages[0].content ~ messages[0].content %}{{ x }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ messages | pprint }}",
        "{{ messages[0].content.__class__ }} {{ messages[1].content }}",
        "{{ messages[0].content }} alone",
        "{% if %}",
        "x" * 70_000,
    ],
)
def test_a_template_that_is_a_program_is_refused_and_not_run(saved, template):
    folder, _ = saved(TEMPLATE)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(InputError, match="chat template"):
        CrossEncoder.open(folder, "cpu")


def test_tokens_outside_of_the_vocabulary_are_refused(saved):
    folder, _ = saved(None)
    for ids in ({"true_token_id": 10**6, "false_token_id": 1}, {"true_token_id": "7"}, {"true_token_id": -1}):
        (folder / "1_LogitScore" / "config.json").write_text(json.dumps(ids))
        with pytest.raises(InputError, match="LogitScore"):
            CrossEncoder.open(folder, "cpu")

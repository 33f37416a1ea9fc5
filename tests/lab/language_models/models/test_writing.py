"""What a language model writes after prompts, beside plain generation of transformers, one prompt at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.writing import PromptWriter
from tests.fixtures.language_models import make_babbler, make_llama, make_t5

BEGINNING = "Ask about it. "
TEXTS = ("Ada was born.", "A much longer text, of which the others say nothing.", "Ben", "Ask")
LONGEST = 12


def ends(text: str) -> bool:
    return "?" in text


@pytest.fixture(scope="module", params=[make_babbler, make_llama, make_t5], ids=["gpt2", "llama", "t5"])
def model(request, tmp_path_factory):
    return load_language_model(request.param(tmp_path_factory.mktemp("lm") / "lm"))


def prompts_of(model):
    """One of them leaves the common beginning early."""
    return [model.ids(BEGINNING + text) for text in TEXTS[:3]] + [model.ids(TEXTS[3])]


def next_log_prob(model, prompt, written):
    """log p of each token that may follow, by one plain forward pass."""
    with torch.no_grad():
        if model.reads_source_apart:
            ids, decoded = torch.tensor([[*prompt, 1]]), torch.tensor([[0, *written]])
            return model.net(input_ids=ids, decoder_input_ids=decoded).logits[0, -1].float().log_softmax(-1)
        return model.net(torch.tensor([[*prompt, *written]])).logits[0, -1].float().log_softmax(-1)


def test_greedy_texts_are_those_of_plain_generation_and_their_log_probability_is_the_models(model):
    writer, prompts = PromptWriter(model, model.ids(BEGINNING), LONGEST, ends), prompts_of(model)
    for prompt, (written,) in zip(prompts, writer.write(prompts, np.zeros((4, 1, LONGEST))), strict=True):
        source = torch.tensor([[*prompt, *([1] if model.reads_source_apart else [])]])
        config = GenerationConfig(
            max_new_tokens=LONGEST, do_sample=False, eos_token_id=1, pad_token_id=0, decoder_start_token_id=0
        )
        plain = model.net.generate(source, attention_mask=torch.ones_like(source), generation_config=config)[0]
        plain = plain[1 if model.reads_source_apart else len(prompt) :].tolist()
        count = next(
            (n for n in range(1, len(plain) + 1) if plain[n - 1] == 1 or ends(model.tokenizer.decode(plain[:n]))), None
        )
        assert written.tokens == tuple(plain[:count]) and written.ended == (count is not None)
        each = [float(next_log_prob(model, prompt, plain[:n])[plain[n]]) for n in range(len(written.tokens))]
        assert written.log_prob == pytest.approx(np.mean(each), abs=1e-5)


def test_a_random_number_chooses_by_the_cumulated_probabilities_at_the_temperature(model):
    prompts, uniform = prompts_of(model), np.random.default_rng(0).random((4, 3, LONGEST))
    texts = PromptWriter(model, model.ids(BEGINNING), LONGEST, ends, temperature=0.7).write(prompts, uniform)
    for prompt, own, numbers in zip(prompts, texts, uniform, strict=True):
        for written, number in zip(own, numbers, strict=True):
            for place, token in enumerate(written.tokens):
                log_prob_V = next_log_prob(model, prompt, written.tokens[:place]).double()
                upto_V = np.array([0.0, *(log_prob_V / 0.7).softmax(-1).cumsum(-1).tolist()])
                assert upto_V[token] - 1e-5 <= number[place] <= upto_V[token + 1] + 1e-5
    assert len({written.tokens for own in texts for written in own}) > 4


def test_neither_the_batch_nor_what_is_shared_changes_a_text(model):
    prompts, uniform = prompts_of(model), np.random.default_rng(1).random((4, 2, LONGEST))
    writer = PromptWriter(model, model.ids(BEGINNING), LONGEST, ends, temperature=1.0)

    def tokens(texts):
        return [[one.tokens for one in own] for own in texts]

    together = tokens(writer.write(prompts, uniform))
    alone = [tokens(writer.write([prompt], uniform[[n]]))[0] for n, prompt in enumerate(prompts)]
    writer.shares = False
    assert together == alone == tokens(writer.write(prompts, uniform))

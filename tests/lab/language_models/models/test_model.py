"""Loss and generation against transformers itself, on tiny random models."""

from __future__ import annotations

import json

import pytest
import torch

from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.models.prompts import answer_ids, prompt_ids
from realmctl.lab.language_models.objective import LanguageModelObjective
from realmctl.training.settings.base import TrainSettings
from tests.fixtures.language_models import make_gpt2, make_t5

MAKERS = {"t5": make_t5, "gpt2": make_gpt2}
ASKED = [("Where was Ada born?", "Velford"), ("Who?", "Ben Mott"), ("When did it begin?", "1900")]


@pytest.fixture(params=MAKERS)
def model(request, tmp_path):
    return load_language_model(MAKERS[request.param](tmp_path / request.param))


class Fixed:
    ended = True

    def __init__(self, pairs):
        self.pairs = pairs

    def __len__(self):
        return len(self.pairs)

    def draw(self, number, rng):
        return self.pairs[number]


def pairs_of(model):
    return [(model.ids(question), answer_ids(model, answer)) for question, answer in ASKED]


def test_the_loss_is_transformers_own_whatever_the_micro_batch(model):
    pairs = pairs_of(model)
    batch = model.batch(*zip(*pairs, strict=True))
    with torch.no_grad():
        theirs = float(model.net(input_ids=batch.ids_BL, attention_mask=batch.mask_BL, labels=batch.label_BL).loss)
        for micro_batch in (1, 2, 3):
            objective = LanguageModelObjective(
                model, Fixed(pairs), TrainSettings(batch_size=3, micro_batch=micro_batch)
            )
            ours = sum(float(objective.loss(part)[0]) for part in objective.draw(0))
            assert ours == pytest.approx(theirs, rel=1e-5)


def test_targets_end_and_only_targets_count(model):
    (source, target), *_ = pairs_of(model)
    batch = model.batch([source], [target])
    assert batch.label_BL[batch.label_BL != -100].tolist() == [*target, 1]
    assert batch.ids_BL[0].tolist() == [*source, *([] if model.reads_source_apart else target), 1]


def test_greedy_decoding_takes_the_likeliest_token_each_time(model):
    sources = [source for source, _ in pairs_of(model)]
    made = model.generate(sources, beams=1, longest=6, count=3)
    for source, (target,) in zip(sources, made, strict=True):
        for place in range(min(6, len(target) + 1)):
            batch = model.batch([source], [target[:place]])  # its last label is the end, at the place to predict
            net = model.net(
                input_ids=batch.ids_BL if model.reads_source_apart else batch.ids_BL[:, :-1],
                **({"decoder_input_ids": torch.tensor([[0, *target[:place]]])} if model.reads_source_apart else {}),
            )
            assert int(net.logits[0, -1].argmax()) == [*target, 1][place]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_how_a_folder_would_generate_changes_nothing(make, tmp_path):
    plain, _ = (load_language_model(make(tmp_path / name)) for name in ("plain", "odd"))
    own = {"repetition_penalty": 9.0, "num_beams": 3, "return_dict_in_generate": True, "suppress_tokens": [*range(40)]}
    (tmp_path / "odd" / "generation_config.json").write_text(json.dumps(own))
    odd = load_language_model(tmp_path / "odd")
    sources = [source for source, _ in pairs_of(plain)]
    assert odd.generate(sources, 1, 6, 1) == plain.generate(sources, 1, 6, 1)


def test_a_beam_finds_targets_at_least_as_likely(model):
    source = model.ids("Who?")
    greedy, beam = (model.generate([source], beams, 4, beams)[0] for beams in (1, 5))

    @torch.no_grad()
    def mean(target):
        batch = model.batch([source], [target])
        batch.label_BL[batch.label_BL == 1] = 1 if len(target) < 4 else -100  # cut off before the end
        return float(model(batch)[0].sum()) / batch.wanted

    assert len(beam) == 5 and len({tuple(target) for target in beam}) == 5
    assert max(map(mean, beam)) >= mean(greedy[0]) - 1e-6


def test_long_questions_are_cut_inside_the_prompt(model):
    cut = prompt_ids(model, "abcdefgh", "Q: {question}?", 8)
    assert model.text(cut) == "Q: abcd?" and len(cut) == 8

"""Readers against transformers' own loss, one row at a time."""

from __future__ import annotations

import functools
import operator

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from realmctl.errors import ConfigError, InputError
from realmctl.lab.language_models.models import causal, reading
from realmctl.lab.language_models.models.causal import KeptStates
from realmctl.lab.language_models.models.known import load_reader
from realmctl.lab.language_models.models.prompts import BlockPrompt
from realmctl.lab.language_models.models.reading import ReadBlock, ReadingLimits, groups
from realmctl.spans.query import HiddenText
from tests.fixtures.language_models import byte_tokenizer, make_bert_with_lm_head, make_gpt2, make_llama, make_t5

TEXTS = [
    HiddenText("Ada was born in ", "Velford", ", they say."),
    HiddenText("", "Ben", " worked there."),  # nothing stands before the span
    HiddenText("The firm of Cora is ", "Brightwell & Sons", "."),
]
BLOCKS = [
    ReadBlock("Ada", "Ada was born in Velford."),
    ReadBlock("Ben", "Ben works."),
    ReadBlock("Eva", "Nothing. " * 8),
]
PLACE_BN = np.array([[-1, 0, 1], [-1, 1, 2], [0, 2, -2]])  # blocks are shared between texts
MAKERS = {"gpt2": make_gpt2, "llama": make_llama, "t5": make_t5}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MAKERS.items()}


def reader_of(folder, prompt=None, row=200, target=40, **more):
    return load_reader(folder, prompt or BlockPrompt(), ReadingLimits(row, target), **more).eval()


def ids(text):
    return byte_tokenizer().encode(text, add_special_tokens=False).ids


def by_transformers(folder, text, block, prompt):
    """log p of each hidden token, from the model's loss of that token alone."""
    before = "" if block is None else prompt.replace("{title}", block.title).replace("{block}", block.text)
    if folder.name.startswith("t5"):
        net = AutoModelForSeq2SeqLM.from_pretrained(folder)
        source = [*ids(f"{before}{text.before}<extra_id_0>{text.after}"), 1]
        target = [*ids(f"<extra_id_0> {text.hidden} <extra_id_1>"), 1]
        logits = net(input_ids=torch.tensor([source]), labels=torch.tensor([target])).logits[0]
        return logits.log_softmax(-1).gather(1, torch.tensor(target)[:, None])[:, 0].tolist()
    net = AutoModelForCausalLM.from_pretrained(folder)
    visible, hidden = text.before.rstrip(), text.before[len(text.before.rstrip()) :] + text.hidden
    row = [net.config.bos_token_id, *ids(before + visible), *ids(hidden)]
    found = []
    for place in range(len(row) - len(ids(hidden)), len(row)):
        labels = [-100] * place + [row[place]]
        found.append(-net(input_ids=torch.tensor([row[: place + 1]]), labels=torch.tensor([labels])).loss.item())
    return found


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("prompt", [BlockPrompt().text, "{block}"])
def test_the_likelihood_is_that_of_transformers(name, prompt, folders, monkeypatch):
    monkeypatch.setattr(reading, "UNEVEN", 1.05)  # several groups
    with torch.no_grad():
        log_prob_BNM, hidden_BM = reader_of(folders[name], BlockPrompt(prompt)).log_prob(TEXTS, BLOCKS, PLACE_BN)
    for b, text in enumerate(TEXTS):
        for n, place in enumerate(PLACE_BN[b]):
            expected = by_transformers(folders[name], text, BLOCKS[place] if place >= 0 else None, prompt)
            assert hidden_BM[b].tolist() == [m < len(expected) for m in range(hidden_BM.shape[1])]
            assert log_prob_BNM[b, n][hidden_BM[b]].tolist() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_shared_blocks_give_the_log_probabilities_and_gradients_of_whole_rows(name, folders, monkeypatch):
    shared, whole = reader_of(folders[name]), reader_of(folders[name])
    assert shared.reuses_blocks
    whole.reuses_blocks = False
    monkeypatch.setattr(causal, "TOKENS_AT_ONCE", 60)
    found = []
    for reader in (shared, whole):
        log_prob_BNM, hidden_BM = reader.log_prob(TEXTS, BLOCKS, PLACE_BN)
        log_prob_BNM[hidden_BM[:, None].expand_as(log_prob_BNM)].sum().backward()
        found.append((log_prob_BNM.masked_fill(~hidden_BM[:, None], 0), [p.grad for p in reader.parameters()]))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-4)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_each_block_is_computed_once(folders, monkeypatch):
    reader, seen = reader_of(folders["gpt2"]), []
    states = reader._states
    monkeypatch.setattr(reader, "_states", lambda prefixes: seen.extend(prefixes) or states(prefixes))
    reader.log_prob(TEXTS, BLOCKS, PLACE_BN)
    assert len(seen) == len(set(seen)) == 4  # three blocks and the null document


def test_kept_blocks_are_not_computed_again_and_stay_within_their_memory(folders, monkeypatch):
    plain, keeping, seen = reader_of(folders["llama"]), reader_of(folders["llama"]), []
    states = keeping._states
    monkeypatch.setattr(keeping, "_states", lambda prefixes: seen.extend(p for p in prefixes if p) or states(prefixes))
    of_a_token = 2 * 2 * 8 * 4  # keys and values, two heads of eight numbers in float32, one layer
    length = sum(len(keeping._block_tokens(block)[1]) for block in BLOCKS) + 3 * len(
        ids("Ada\n\n\n")
    )  # with the start, without the last
    keeping.kept.budget = of_a_token * length
    with torch.no_grad():
        for _ in range(2):
            for place_BN in (PLACE_BN, PLACE_BN[:, ::-1].copy()):
                found, expected = (reader.log_prob(TEXTS, BLOCKS, place_BN)[0] for reader in (keeping, plain))
                assert torch.allclose(found, expected, atol=1e-4)
        assert len(seen) == 3 and keeping.kept.nbytes == keeping.kept.budget
        keeping.kept.budget *= 0.7
        keeping.log_prob(TEXTS, BLOCKS, PLACE_BN)
        assert 0 < keeping.kept.nbytes <= keeping.kept.budget
        keeping.log_prob(TEXTS, BLOCKS, PLACE_BN)
        assert len(seen) > 3


@pytest.mark.parametrize("name", MAKERS)
def test_a_row_that_is_too_long_loses_the_end_of_its_block(name, folders):
    long = ReadBlock("Eva", "Nothing. " * 60)
    reader = reader_of(folders[name], row=120)
    source, target = reader.tokens(TEXTS[0])
    room = 120 - 1 - len(ids("Eva\n\n\n")) - len(source) - (0 if name == "t5" else len(target))
    cut, _ = reader.log_prob(TEXTS[:1], [long], np.array([[0]]))
    assert reader.cut_share() == (1, 1)
    same, _ = reader.log_prob(TEXTS[:1], [ReadBlock("Eva", long.text[:room])], np.array([[0]]))
    assert torch.equal(cut, same) and reader.cut_share() == (0, 1)


def test_a_prompt_stands_only_before_a_part_of_its_block(folders):
    reader = reader_of(folders["gpt2"])
    source, target = reader.tokens(TEXTS[0])
    prompt = len(ids("Eva\n\n\n"))
    for room in range(20):
        reader.room = reader.taken(source, target) + room
        assert len(reader.fitted(BLOCKS[2], source, len(target))) == (room if room > prompt else 0)


@pytest.mark.parametrize("name", MAKERS)
def test_a_long_hidden_text_is_asked_for_up_to_the_limit(name, folders):
    _, hidden_BM = reader_of(folders[name], target=5).log_prob(TEXTS, BLOCKS, PLACE_BN)
    assert hidden_BM.sum(1).tolist() == [5, 5, 5] if name == "t5" else [5, 3, 5]


@torch.no_grad()
@pytest.mark.parametrize("name", MAKERS)
def test_weights_in_bfloat16_give_about_the_same(name, folders):
    exact, rounded = (
        reader_of(folders[name], dtype=dtype).log_prob(TEXTS, BLOCKS, PLACE_BN)
        for dtype in (torch.float32, torch.bfloat16)
    )
    hidden = exact[1][:, None].expand_as(exact[0])
    assert rounded[0].dtype == torch.float32 and torch.allclose(
        exact[0][hidden], rounded[0][hidden], rtol=0.03, atol=0.03
    )


def test_groups_hold_each_row_once_within_the_limit():
    lengths = np.random.default_rng(0).integers(1, 200, 100).tolist()
    found = [*groups(lengths, 400)]
    assert sorted(functools.reduce(operator.iadd, found, [])) == [*range(100)]
    for group in found:
        own = [lengths[place] for place in group]
        assert len(own) == 1 or (max(own) * len(own) <= 400 and max(own) <= 1.25 * min(own) + 1)


@pytest.mark.parametrize("text", ["no block", "{block}{block}", "{block} of {title}", "{title}{title}{block}"])
def test_a_prompt_without_its_place_for_a_block_is_refused(text):
    with pytest.raises(ConfigError, match="--block-prompt"):
        BlockPrompt(text)


def test_a_target_longer_than_the_model_is_refused(folders):
    with pytest.raises(ConfigError, match="--target-length"):
        reader_of(folders["gpt2"], row=1000, target=255)


def test_an_encoder_is_no_causal_reader(tmp_path):
    with pytest.raises(InputError, match="bert"):
        reader_of(make_bert_with_lm_head(tmp_path))


def test_states_that_are_read_again_outlive_older_ones():
    kept = KeptStates()
    states = [(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3))]
    for block in (1,), (2,), (3,):
        kept.add(block, states)
    assert kept.get((1,)) is not None and kept.get((4,)) is None
    kept.budget = 2 / 3 * kept.nbytes
    kept.trim()
    assert (1,) in kept and (3,) in kept and (2,) not in kept

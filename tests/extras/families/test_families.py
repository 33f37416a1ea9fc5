"""Every family against transformers' own model: states, logits, pooled vectors, gradients, files. Also the traps of each."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.testing import assert_close
from transformers import AutoModel, AutoModelForMaskedLM

from realmctl.errors import ConfigError, InputError
from realmctl.lab.bottleneck.condenser_model import Condenser
from realmctl.models.bert.files import load_masked_lm, read_config, save_masked_lm
from realmctl.models.encoder import hidden_states, layer_states, states_at
from realmctl.models.families.known import family, family_of, mlm_logits, positions_of
from realmctl.models.inputs import Collator, TokenBatch
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever, Tower, set_dropout
from realmctl.models.towers.layout import InputLayout
from realmctl.tokens.tokenizer import Tokenizer
from tests.fixtures import families

every = pytest.mark.parametrize("model_type", families.TYPES)
LENGTHS = (families.LENGTH - 4, 9, 1)


@pytest.fixture
def words(model_type: str, tmp_path: Path) -> Tokenizer:
    families.tokenizer(model_type).save_pretrained(tmp_path / "tokenizer")
    return Tokenizer.load(tmp_path)


def batch_of(words: Tokenizer, lengths: tuple[int, ...] = LENGTHS) -> TokenBatch:
    """Rows of very different lengths, so that most of a row may be padding."""
    rng = np.random.default_rng(1)
    texts = [rng.choice(words.ordinary, length) for length in lengths]
    return Collator.of(words).query(texts, families.LENGTH)


def outputs(model: torch.nn.Module, batch: TokenBatch) -> Tensor:
    """transformers' states, zeros at padding."""
    found = model(input_ids=batch.ids_BL, attention_mask=batch.mask_BL.long()).last_hidden_state
    return torch.where(batch.mask_BL[..., None], found, 0.0)


Computed = tuple[Tensor, Tensor, dict[str, Tensor]]
"""States [B, L, H], log-probabilities at some places [B, P, V], and the gradient of each parameter."""


def beside_transformers(model_type: str, words: Tokenizer) -> tuple[Computed, Computed]:
    """What realmctl and transformers compute with one model. docs/make_families.py tells how far they are apart."""
    mlm, batch = families.model(model_type), batch_of(words)
    place_BP = torch.tensor([[0, 5], [0, 3], [1, 2]])
    found = []
    for ours in (True, False):
        mlm.zero_grad()
        state_BLH = hidden_states(mlm.base_model, batch) if ours else outputs(mlm.base_model, batch)
        at_BPH = state_BLH[torch.arange(3)[:, None], place_BP]
        if ours:
            assert_close(states_at(mlm.base_model, batch, place_BP), at_BPH, atol=1e-5, rtol=1e-4)
            logits_BPV = mlm_logits(mlm, at_BPH)
        else:
            whole = mlm(input_ids=batch.ids_BL, attention_mask=batch.mask_BL.long()).logits
            logits_BPV = whole[torch.arange(3)[:, None], place_BP]
        (logits_BPV.log_softmax(-1)[..., 7].sum() + state_BLH.square().sum() / 100).backward()
        gradients = {key: value.grad.clone() for key, value in mlm.named_parameters() if value.grad is not None}
        found.append((state_BLH.detach(), logits_BPV.detach().log_softmax(-1), gradients))
    return found[0], found[1]


@every
def test_states_logits_and_gradients_are_those_of_transformers(model_type: str, words: Tokenizer) -> None:
    ours, theirs = beside_transformers(model_type, words)
    assert_close(ours[0], theirs[0], atol=1e-5, rtol=1e-5)
    assert_close(ours[1], theirs[1], atol=1e-5, rtol=1e-5)
    assert set(ours[2]) == set(theirs[2])
    for name, gradient in theirs[2].items():
        assert torch.isfinite(ours[2][name]).all()
        assert_close(ours[2][name], gradient, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


@every
def test_the_states_of_each_layer(model_type: str, words: Tokenizer) -> None:
    base, batch = families.model(model_type).base_model, batch_of(words)
    given = {"input_ids": batch.ids_BL, "attention_mask": batch.mask_BL.long(), "output_hidden_states": True}
    theirs = base(**given).hidden_states
    for layer, state_BLH in enumerate(layer_states(base, batch, (0, 1, 2))):
        assert_close(state_BLH[batch.mask_BL], theirs[layer][batch.mask_BL], atol=1e-5, rtol=1e-5)


@every
def test_padding_changes_nothing_and_gives_no_nan(model_type: str, words: Tokenizer) -> None:
    """ModernBERT's windows may lie in padding altogether, and a softmax over nothing is NaN."""
    base, batch = families.model(model_type).base_model, batch_of(words)
    state_BLH = hidden_states(base, batch)
    alone = batch_of(words, LENGTHS)
    for row, length in enumerate(batch.lengths_B.tolist()):
        single = TokenBatch(*(t[row : row + 1, :length] for t in (alone.ids_BL, alone.mask_BL, alone.segments_BL)))
        assert_close(hidden_states(base, single)[0], state_BLH[row, :length], atol=1e-5, rtol=1e-5)
    assert not state_BLH[~batch.mask_BL].any()


@every
def test_a_pair_is_laid_out_as_the_tokenizer_does(model_type: str, words: Tokenizer) -> None:
    theirs = families.tokenizer(model_type)
    title, body = "Ada Lovelace", "The engine was never built."
    ids = [words.tokens([text])[0] for text in (title, body)]
    collator = Collator.of(words)
    packed = InputLayout().block(collator, [ids[0]], [ids[1]], 100)
    assert packed.ids_BL[0].tolist() == theirs(title, body)["input_ids"]
    joined = InputLayout("joined").block(collator, [ids[0]], [ids[1]], 100)
    assert joined.ids_BL[0].tolist() == theirs(f"{title} {body}")["input_ids"]
    assert words.frame.around_two == theirs.num_special_tokens_to_add(pair=True)
    assert InputLayout().block(collator, [()], [()], 10).ids_BL.shape[1] == words.frame.around_two
    _, start_B = collator.reader([ids[0]], [ids[1]], families.LENGTH)
    assert start_B.tolist() == [1 + len(ids[0]) + len(words.frame.between)]


@every
def test_folders_go_there_and_back(model_type: str, tmp_path: Path) -> None:
    families.write(model_type, tmp_path / "with", tie_word_embeddings=True)
    families.write(model_type, tmp_path / "without", masked_lm=False)
    mlm, had_head = load_masked_lm(tmp_path / "with")
    assert had_head and not load_masked_lm(tmp_path / "without")[1]
    save_masked_lm(mlm, tmp_path / "again")
    theirs, ours = (AutoModelForMaskedLM.from_pretrained(tmp_path / name).state_dict() for name in ("with", "again"))
    assert set(theirs) == set(ours) and all(torch.equal(theirs[name], ours[name]) for name in theirs)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["model_type"] == model_type


@every
def test_a_missing_and_a_foreign_tensor_are_named(model_type: str, tmp_path: Path) -> None:
    folder = families.write(model_type, tmp_path / "f")
    tensors = load_file(folder / "model.safetensors")
    name = sorted(tensors)[-1]
    save_file({key: tensor for key, tensor in tensors.items() if key != name}, folder / "model.safetensors")
    with pytest.raises(InputError, match=name.rpartition(".")[0]):
        load_masked_lm(folder)
    save_file({**tensors, "odd.weight": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(InputError, match=r"odd\.weight"):
        load_masked_lm(folder)


@every
def test_the_longest_input_and_one_token_more(model_type: str, words: Tokenizer) -> None:
    """RoBERTa's 514 positions are 512 tokens: those of a text begin behind padding's."""
    base = families.model(model_type).base_model
    assert positions_of(base) == families.LENGTH
    rng = np.random.default_rng(0)
    whole = Collator.of(words).query([rng.choice(words.ordinary, 99)], families.LENGTH)
    assert_close(hidden_states(base, whole), outputs(base, whole), atol=1e-5, rtol=1e-5)
    longer = Collator.of(words).query([rng.choice(words.ordinary, 99)], families.LENGTH + 1)
    with pytest.raises(ConfigError, match=f"{families.LENGTH + 1} wordpieces"):
        hidden_states(base, longer)


@every
def test_a_retriever_keeps_its_vectors_on_disk_and_loads_in_transformers(
    model_type: str, words: Tokenizer, tmp_path: Path
) -> None:
    base = families.model(model_type, masked_lm=False)
    retriever = Retriever.from_bert(base, projection=8, query_length=20, block_length=30, pooling="mean").eval()
    batch = batch_of(words, (7, 3))
    found = retriever.embed_queries(batch)
    retriever.save(tmp_path / "r")
    assert_close(Retriever.load(tmp_path / "r").embed_queries(batch), found)
    theirs = outputs(AutoModel.from_pretrained(tmp_path / "r" / "block").eval(), batch)
    mean = theirs.sum(1) / batch.lengths_B[:, None]
    tower = retriever.query_tower
    assert isinstance(tower, Tower)
    assert_close(tower.norm(tower.projection(mean)), found, atol=1e-5, rtol=1e-5)


@every
def test_the_tanh_pooler_where_the_family_has_one(model_type: str, words: Tokenizer) -> None:
    base, batch = families.model(model_type, masked_lm=False), batch_of(words, (7, 3))
    if not family(model_type).has_pooler:
        with pytest.raises(ConfigError, match="no pooler"):
            Retriever.from_bert(base, pooling="pooler", query_length=20, block_length=30)
        return
    retriever = Retriever.from_bert(base, pooling="pooler", query_length=20, block_length=30).eval()
    theirs = base(input_ids=batch.ids_BL, attention_mask=batch.mask_BL.long()).pooler_output
    assert_close(retriever.query_tower.pool(batch), theirs, atol=1e-5, rtol=1e-5)


@every
def test_dropout_is_set_everywhere(model_type: str, words: Tokenizer, tmp_path: Path) -> None:
    model, batch = families.model(model_type), batch_of(words)
    set_dropout(model, 0.4)
    model.train()
    first, second = (hidden_states(model.base_model, batch) for _ in range(2))
    assert not torch.equal(first, second)
    set_dropout(model, 0.0)
    first, second = (hidden_states(model.base_model, batch) for _ in range(2))
    assert torch.equal(first, second)
    save_masked_lm(model, tmp_path)
    assert {getattr(read_config(tmp_path), name) for name in family(model_type).rates} == {0.0}


@every
def test_readers_condensers_and_layer_rates(model_type: str, words: Tokenizer) -> None:
    mlm, batch = families.model(model_type), batch_of(words, (7, 3))
    reader = Reader.from_masked_lm(mlm)
    position_BM, target_BM = torch.tensor([[2, 3], [1, 2]]), torch.tensor([[9, 8], [7, 6]])
    log_prob = reader.mlm_log_prob(batch, position_BM, target_BM, 1)
    whole = mlm(input_ids=batch.ids_BL, attention_mask=batch.mask_BL.long()).logits.log_softmax(-1)
    expected = whole[torch.arange(2)[:, None], position_BM, target_BM]
    assert_close(log_prob[:, 0], expected, atol=1e-5, rtol=1e-5)
    late_BLH, head_BLH = Condenser(mlm, skip_from=1, head_layers=1)(batch)
    assert late_BLH.shape == head_BLH.shape and torch.isfinite(head_BLH).all()
    rates = layer_lr_multipliers(mlm.base_model, 0.5)
    assert sorted(rates.values()) == [0.125, 0.25, 0.5, 1.0]
    assert family_of(mlm).words(mlm.base_model).num_embeddings == mlm.config.vocab_size


@pytest.mark.parametrize(
    ("model_type", "why"), [("deberta-v2", "disentangled"), ("gpt2", "roberta"), ("bart", "xlm-roberta")]
)
def test_a_family_that_is_not_known_is_refused(tmp_path: Path, model_type: str, why: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    with pytest.raises(InputError, match=why):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("model_type", "field", "value"),
    [
        ("roberta", "pad_token_id", None),
        ("roberta", "max_position_embeddings", 2),
        ("mpnet", "pad_token_id", 0),
        ("modernbert", "hidden_activation", "nonsense"),
        ("xlm-roberta", "hidden_act", "nonsense"),
        ("modernbert", "vocab_size", 10**9),
    ],
)
def test_a_configuration_that_cannot_be_computed_is_refused(
    tmp_path: Path, model_type: str, field: str, value: object
) -> None:
    folder = families.write(model_type, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, field: value}))
    with pytest.raises(InputError, match=field):
        read_config(folder)

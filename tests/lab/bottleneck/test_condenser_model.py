"""Condenser: the head's input, both losses and the contrastive loss against plain tensors, and heads on disk."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from realmctl.artifacts.description import CONDENSER_HEAD
from realmctl.errors import ConfigError, InputError
from realmctl.lab.bottleneck.condenser_model import Condenser, contrastive_loss
from realmctl.models.bert.files import load_masked_lm, save_masked_lm, scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import masked_loss
from realmctl.models.inputs import Collator
from realmctl.tokens.frame import Frame
from tests.fixtures.transformers_bert import as_transformers, layer_as_transformers

WORDS = 40
COLLATOR = Collator(Frame.bert(1, 2), pad_id=0, mask_id=3)


@pytest.fixture
def model() -> Condenser:
    torch.manual_seed(3)
    return Condenser(BertForMaskedLM(scratch_config("L3-H16-A2", WORDS)), skip_from=1, head_layers=2).eval()


@pytest.fixture
def batch():
    return COLLATOR.query([[7, 8, 3, 9], [3, 11], [12, 13, 14, 15, 3]], 16)


def plain(model: Condenser, batch) -> tuple[torch.Tensor, torch.Tensor]:
    """The same with transformers' own forward pass and its own layers, row by row, without padding."""
    bert, late, head = model.mlm.bert, [], []
    for ids, length in zip(batch.ids_BL, batch.lengths_B.tolist(), strict=True):
        states = as_transformers(bert)(input_ids=ids[None, :length], output_hidden_states=True).hidden_states
        state = torch.cat([states[-1][:, :1], states[model.skip_from][:, 1:]], dim=1)
        for layer in model.head:
            out = layer_as_transformers(layer)(state)
            state = out[0] if isinstance(out, tuple) else out
        late.append(states[-1][0])
        head.append(state[0])
    return torch.nn.utils.rnn.pad_sequence(late, True), torch.nn.utils.rnn.pad_sequence(head, True)


def test_states_of_the_last_layer_and_of_the_head(model, batch):
    for found, expected in zip(model(batch), plain(model, batch), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


def test_the_loss_is_the_summed_cross_entropy_at_the_masks(model, batch):
    positions, targets = torch.tensor([3, 8, 19]), torch.tensor([20, 21, 22])
    for found_BLH, expected_BLH in zip(model(batch), plain(model, batch), strict=True):
        logits = as_transformers(model.mlm).cls(expected_BLH).flatten(0, 1)
        expected = sum(-F.log_softmax(logits[p], -1)[t] for p, t in zip(positions, targets, strict=True))
        assert float(masked_loss(model.mlm, found_BLH, positions, targets)) == pytest.approx(float(expected), abs=1e-5)


def test_the_contrastive_loss_by_brute_force():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(6, 5, generator=generator)
    losses, right = [], []
    for i in range(6):
        scores = {j: float(states[i] @ states[j]) for j in range(6) if j != i}
        twin = i + 1 if i % 2 == 0 else i - 1
        losses.append(-scores[twin] + float(torch.logsumexp(torch.tensor(list(scores.values())), 0)))
        right.append(max(scores, key=scores.__getitem__) == twin)
    document = torch.tensor([4, 4, 2, 2, 7, 7])
    loss, accuracy = contrastive_loss(states, states, document, 0)
    assert float(loss) == pytest.approx(sum(losses) / 6, abs=1e-6) and float(accuracy) == pytest.approx(sum(right) / 6)
    parts = [contrastive_loss(states[first : first + 2], states, document, first)[0] for first in (0, 2, 4)]
    assert float(sum(parts)) / 3 == pytest.approx(float(loss), abs=1e-6)


def test_another_pair_of_the_document_is_left_out():
    """Two pairs of one document beside one of another: each span sees its twin and the other document alone."""
    states, document = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), [4, 4, 2, 2, 4, 4]
    losses, right = [], []
    for i in range(6):
        twin = i + 1 if i % 2 == 0 else i - 1
        scores = {j: float(states[i] @ states[j]) for j in range(6) if j == twin or document[j] != document[i]}
        losses.append(-scores[twin] + float(torch.logsumexp(torch.tensor(list(scores.values())), 0)))
        right.append(max(scores, key=scores.__getitem__) == twin)
    loss, accuracy = contrastive_loss(states, states, torch.tensor(document), 0)
    assert float(loss) == pytest.approx(sum(losses) / 6, abs=1e-6) and float(accuracy) == pytest.approx(sum(right) / 6)


def test_a_head_goes_to_disk_and_back(model, batch, tmp_path):
    save_masked_lm(model.mlm, tmp_path)
    model.save_head(tmp_path)
    again = Condenser(load_masked_lm(tmp_path)[0], skip_from=1, head_layers=2).eval()
    assert again.load_head(tmp_path)
    for found, expected in zip(again(batch), model(batch), strict=True):
        torch.testing.assert_close(found, expected)


def test_the_public_codes_head_is_read(model, batch, tmp_path):
    state = {f"c_head.{name}": tensor for name, tensor in model.head.state_dict().items()}
    torch_file = {**state, "co_target": torch.arange(4)}
    save_masked_lm(model.mlm, tmp_path)
    _write_torch_file(torch_file, tmp_path / "model.pt")
    again = Condenser(load_masked_lm(tmp_path)[0], skip_from=1, head_layers=2).eval()
    assert again.load_head(tmp_path)
    torch.testing.assert_close(again(batch)[1], model(batch)[1])


def _write_torch_file(tensors, path) -> None:
    torch.save(tensors, path)  # the project writes no pickle; this stands for another program's file


def test_a_head_of_another_width_or_a_damaged_one_is_refused(model, tmp_path):
    other = Condenser(BertForMaskedLM(scratch_config("L3-H32-A2", WORDS)), skip_from=1)
    other.save_head(tmp_path)
    with pytest.raises(InputError, match="shape"):
        model.load_head(tmp_path)
    (tmp_path / CONDENSER_HEAD).write_bytes(b"no tensors")
    with pytest.raises(InputError, match="Cannot read weights"):
        model.load_head(tmp_path)
    (tmp_path / CONDENSER_HEAD).unlink()
    (tmp_path / "model.pt").write_bytes(b"no tensors")
    with pytest.raises(InputError, match=r"model\.pt"):
        model.load_head(tmp_path)


@pytest.mark.parametrize(("skip_from", "head_layers"), [(3, 2), (-1, 2), (1, 0)])
def test_what_does_not_fit_the_backbone_is_refused(skip_from, head_layers):
    mlm = BertForMaskedLM(scratch_config("L3-H16-A2", WORDS))
    with pytest.raises(ConfigError, match="--skip-from"):
        Condenser(mlm, skip_from=skip_from, head_layers=head_layers)


class Unsafe:
    def __reduce__(self) -> tuple:
        return (print, ("executed",))


def test_a_public_head_that_would_run_code_is_refused(model, tmp_path, capsys):
    torch.save({"w": Unsafe()}, tmp_path / "model.pt")  # stands for another program's file
    with pytest.raises(InputError, match=r"model\.pt"):
        model.load_head(tmp_path)
    assert "executed" not in capsys.readouterr().out

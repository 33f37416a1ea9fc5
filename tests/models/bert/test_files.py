import json
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch.testing import assert_close
from transformers import AutoModel, AutoModelForMaskedLM

from realmctl.errors import ConfigError, InputError
from realmctl.models.bert import foreign_config
from realmctl.models.bert.files import load_masked_lm, read_config, save_masked_lm, scratch_config
from realmctl.models.bert.modules import BertForMaskedLM
from realmctl.models.encoder import hidden_states
from realmctl.models.inputs import TokenBatch
from tests.fixtures.transformers_bert import as_transformers, transformers_config


def config():
    return scratch_config("L2-H32-A4", 300, 0.0)


@pytest.mark.parametrize(
    ("spec", "shape"), [("tiny", (2, 128, 2)), ("base", (12, 768, 12)), ("L2-H128-A4", (2, 128, 4))]
)
def test_sizes(spec: str, shape: tuple[int, int, int]) -> None:
    built = scratch_config(spec, 100, 0.1)
    assert (built.num_hidden_layers, built.hidden_size, built.num_attention_heads) == shape
    assert built.intermediate_size == 4 * built.hidden_size


@pytest.mark.parametrize("spec", ["huge", "L0-H128", "L2-H100-A3", ""])
def test_a_size_that_is_none(spec: str) -> None:
    with pytest.raises(ConfigError):
        scratch_config(spec, 100, 0.1)


def test_a_saved_model_loads_here_and_in_transformers(mlm: BertForMaskedLM, batch: TokenBatch, tmp_path: Path) -> None:
    save_masked_lm(mlm, tmp_path)
    ours, has_head = load_masked_lm(tmp_path)
    assert has_head
    for name, tensor in mlm.state_dict().items():
        assert torch.equal(tensor, ours.state_dict()[name]), name
    inputs = batch.ids_BL, batch.mask_BL.long(), batch.segments_BL
    assert_close(AutoModelForMaskedLM.from_pretrained(tmp_path)(*inputs).logits, as_transformers(mlm)(*inputs).logits)
    auto = AutoModel.from_pretrained(tmp_path)(*inputs).last_hidden_state
    assert_close(auto[batch.mask_BL], hidden_states(mlm.bert, batch)[batch.mask_BL], atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", [transformers.BertModel, transformers.BertForPreTraining])
@pytest.mark.parametrize("pickled", [False, True])
def test_other_bert_folders(kind: type, pickled: bool, tmp_path: Path) -> None:
    source = kind(transformers_config(config()))
    source.save_pretrained(tmp_path)
    if pickled:
        torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
        (tmp_path / "model.safetensors").unlink()
    loaded, has_head = load_masked_lm(tmp_path)
    body = source if kind is transformers.BertModel else source.bert
    assert has_head == (kind is transformers.BertForPreTraining)
    ours, theirs = (model.encoder.layer[1].output.dense.weight for model in (loaded.bert, body))
    assert torch.equal(ours, theirs)
    assert torch.equal(loaded.bert.pooler.dense.weight, body.pooler.dense.weight)
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight


@pytest.mark.parametrize("pickled", [False, True])
def test_weights_in_parts(pickled: bool, tmp_path: Path) -> None:
    source = transformers.BertModel(transformers_config(config()))
    source.save_pretrained(tmp_path, max_shard_size="20KB")
    parts = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(parts) > 1
    if pickled:
        for part in parts:
            torch.save(load_file(part), tmp_path / f"pytorch_{part.stem}.bin")
            part.unlink()
        index = tmp_path / "model.safetensors.index.json"
        renamed = index.read_text().replace('"model-', '"pytorch_model-').replace(".safetensors", ".bin")
        (tmp_path / "pytorch_model.bin.index.json").write_text(renamed)
        index.unlink()
    loaded, _ = load_masked_lm(tmp_path)
    for name, tensor in source.state_dict().items():
        assert torch.equal(loaded.bert.state_dict()[name], tensor), name
    next(tmp_path.glob("*00002*")).unlink()
    with pytest.raises(InputError, match="00002"):
        load_masked_lm(tmp_path)


def test_parts_outside_the_folder(mlm: BertForMaskedLM, tmp_path: Path) -> None:
    save_masked_lm(mlm, tmp_path / "model")
    (tmp_path / "model/model.safetensors").rename(tmp_path / "x.safetensors")
    for named in ("../x.safetensors", str(tmp_path / "x.safetensors"), "a\0b.safetensors", "config.json", 7):
        (tmp_path / "model/model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": named}}))
        with pytest.raises(InputError, match=r"index\.json"):
            load_masked_lm(tmp_path / "model")


def test_tied_weights_under_the_decoders_name_alone(mlm: BertForMaskedLM, tmp_path: Path) -> None:
    save_masked_lm(mlm, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["cls.predictions.decoder.weight"] = tensors.pop("bert.embeddings.word_embeddings.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    loaded, _ = load_masked_lm(tmp_path)
    for name, tensor in mlm.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


def test_names_of_old_exports(mlm: BertForMaskedLM, tmp_path: Path) -> None:
    save_masked_lm(mlm, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    old_names = {"Norm.weight": "Norm.gamma", "Norm.bias": "Norm.beta"}
    old = dict(tensors)
    for name in tensors:
        for new_end, old_end in old_names.items():
            if name.endswith(new_end):
                old[name.replace(new_end, old_end)] = old.pop(name)
    save_file({**old, "bert.embeddings.position_ids": torch.arange(512)}, tmp_path / "model.safetensors")
    loaded, _ = load_masked_lm(tmp_path)
    for name, tensor in mlm.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.pop("bert.encoder.layer.1.output.dense.bias"),
            "lack.*encoder.layer.1.output.dense.bias",
        ),
        (lambda t: t.pop("bert.embeddings.word_embeddings.weight"), "lack.*word_embeddings.weight"),
        (lambda t: t.update({"cls.predictions.bias": torch.zeros(7)}), "cls.predictions.bias.*shape"),
        (lambda t: t.update({"qa_outputs.weight": torch.zeros(2)}), "does not have.*qa_outputs.weight"),
        (lambda t: t.update({"cls.predictions.decoder.weight": torch.zeros(300, 32)}), "untied"),
        (
            lambda t: t["bert.embeddings.word_embeddings.weight"][7].fill_(torch.nan),
            "bert.embeddings.word_embeddings.weight.*not finite",
        ),
        (lambda t: t["bert.encoder.layer.0.output.dense.bias"][0].fill_(torch.inf), "output.dense.bias.*not finite"),
    ],
)
def test_a_wrong_tensor_is_named(mlm: BertForMaskedLM, tmp_path: Path, change, message: str) -> None:
    save_masked_lm(mlm, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=message):
        load_masked_lm(tmp_path)


def test_files_that_are_no_model(mlm: BertForMaskedLM, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        load_masked_lm(tmp_path)
    save_masked_lm(mlm, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"cut short")
    with pytest.raises(InputError, match=r"model\.safetensors"):
        load_masked_lm(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    with pytest.raises(InputError, match="gpt2"):
        load_masked_lm(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("position_embedding_type", "relative_key"), ("is_decoder", True), ("add_cross_attention", True)],
)
def test_a_bert_that_asks_for_what_is_not_computed_is_refused(
    mlm: BertForMaskedLM, tmp_path: Path, field: str, value: object
) -> None:
    save_masked_lm(mlm, tmp_path)
    config = tmp_path / "config.json"
    fields = json.loads(config.read_text())
    config.write_text(json.dumps({**fields, "position_embedding_type": "absolute"}))
    load_masked_lm(tmp_path)
    config.write_text(json.dumps({**fields, field: value}))
    with pytest.raises(InputError, match=field):
        load_masked_lm(tmp_path)
    if field == "position_embedding_type":
        with pytest.raises(InputError, match=field):
            foreign_config.read_config(tmp_path, "token-classification model")
        with pytest.raises(InputError, match=field):
            read_config(tmp_path)


class _Bomb:
    def __reduce__(self):
        return (Path.touch, (Path("pwned"),))


def test_a_pickle_runs_no_code(mlm: BertForMaskedLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_masked_lm(mlm, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"bert.bomb": _Bomb()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin"):
        load_masked_lm(tmp_path)
    assert not (tmp_path / "pwned").exists()

"""Folders of language models: what is written is read again, and what cannot be used is refused in one paragraph."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

from realmctl.errors import ConfigError, InputError, ResourceError
from realmctl.lab.language_models.models.files import load_language_model, require_named_prompt, save_language_model
from realmctl.models.bert import limits
from tests.fixtures.language_models import make_gpt2, make_t5


def change(folder, **fields):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize(("make", "auto"), [(make_t5, AutoModelForSeq2SeqLM), (make_gpt2, AutoModelForCausalLM)])
def test_transformers_reads_what_is_written(make, auto, tmp_path):
    model = load_language_model(make(tmp_path / "a"), dropout=0.0)
    save_language_model(model, tmp_path / "b")
    theirs = auto.from_pretrained(tmp_path / "b").state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.net.state_dict().items())
    assert {path.suffix for path in (tmp_path / "b").iterdir()} == {".json", ".safetensors"}
    assert all(module.p == 0 for module in model.modules() if isinstance(module, torch.nn.Dropout))
    assert load_language_model(tmp_path / "b").ids("Ada </s>") == model.ids("Ada </s>")


def pickled(folder):
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def beyond(folder, number):
    """A tokenizer of as many tokens as the model has rows, one of which has a greater id."""
    path = folder / "tokenizer.json"
    setup = json.loads(path.read_text())
    setup["model"]["vocab"][max(setup["model"]["vocab"], key=setup["model"]["vocab"].get)] = number
    path.write_text(json.dumps(setup))


def without_end(folder):
    change(folder, eos_token_id=None)


DAMAGES = {
    "no tokenizer.json, so its model cannot read text": lambda folder: (folder / "tokenizer.json").unlink(),
    "its tokenizer cannot be read": lambda folder: (folder / "tokenizer.json").write_text("{"),
    "pytorch_model.bin, a pickle": pickled,
    "holds an adapter": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    "it has no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "asks to run Python code": lambda folder: change(folder, auto_map={"AutoConfig": "code.Config"}),
    "num_layers is 9999": lambda folder: change(folder, num_layers=9999),
    "num_layers is -1": lambda folder: change(folder, num_layers=-1),
    "ids up to 300": lambda folder: beyond(folder, 300),
    "d_ff is 100000000000": lambda folder: change(folder, d_ff=10**11),
    "no such file": lambda folder: (folder / "config.json").unlink(),
    "eos_token_id None": without_end,
    "BertModel, which has no head": lambda folder: change(folder, architectures=["BertModel"]),
    "no model can be built from it": lambda folder: change(folder, model_type="vit"),
    "d_model": lambda folder: change(folder, d_model="wide"),
    "Cannot read the weights": lambda folder: (folder / "model.safetensors").write_bytes(b"short"),
    "that cannot compute (": lambda folder: change(folder, relative_attention_max_distance=0),
    "cannot compute (index out of range": lambda folder: change(folder, decoder_start_token_id=-1),
    "cannot compute (can't assign a str": lambda folder: change(folder, decoder_start_token_id="3"),
    "They belong to two models": lambda folder: change(folder, vocab_size=100),
}


@pytest.mark.parametrize("reason", DAMAGES)
def test_a_folder_that_cannot_be_used(reason, tmp_path):
    folder = make_t5(tmp_path / "t5")
    DAMAGES[reason](folder)
    with pytest.raises(InputError) as error:
        load_language_model(folder)
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_weights_of_another_model(tmp_path):
    folder, other = make_t5(tmp_path / "t5"), make_gpt2(tmp_path / "gpt2")
    (folder / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(InputError):
        load_language_model(folder)


def test_weights_that_do_not_fit_into_memory(tmp_path, monkeypatch):
    """In bfloat16 they take half of the memory."""
    folder = make_t5(tmp_path / "t5")
    needed = 4 * sum(weight.numel() for weight in load_language_model(folder).parameters())
    monkeypatch.setattr(limits, "free_memory", lambda: needed - 1)
    with pytest.raises(ResourceError, match=r"0\.0 GB"):
        load_language_model(folder)
    assert {weight.dtype for weight in load_language_model(folder, dtype=torch.bfloat16).parameters()} == {
        torch.bfloat16
    }


@pytest.mark.parametrize("place", ["tokenizer_config.json", "chat_template.jinja"])
def test_a_chat_model_needs_a_prompt_that_is_named(place, tmp_path):
    prompts = {"--prompt": None, "--block-prompt": None}
    (tmp_path / "tokenizer_config.json").write_text("{}")
    require_named_prompt(tmp_path, prompts)
    (tmp_path / place).write_text(json.dumps({"chat_template": "{{ messages }}"}))
    with pytest.raises(ConfigError) as error:
        require_named_prompt(tmp_path, prompts)
    assert all(name in str(error.value) for name in [str(tmp_path), *prompts]) and "\n" not in str(error.value)
    require_named_prompt(tmp_path, {**prompts, "--prompt": "{question}"})

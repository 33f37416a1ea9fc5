"""The family that docs/extending.md adds by an entry point works as the page writes it."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from transformers import ElectraConfig, ElectraForMaskedLM

from realmctl import registry
from realmctl.errors import InputError
from realmctl.models.bert.files import load_masked_lm
from realmctl.models.encoder import hidden_states
from realmctl.models.families import known
from realmctl.models.families.known import mlm_logits
from realmctl.models.inputs import Collator
from realmctl.tokens.frame import Frame

PAGE = Path(__file__).parents[3] / "docs" / "extending.md"


def test_a_family_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("realmctl.extras.families")
    section = PAGE.read_text().partition("## A family of encoders")[2]
    (tmp_path / "electra_family.py").write_text(re.findall(r"```python\n(.*?)```", section, re.S)[0])
    torch.manual_seed(0)
    theirs = ElectraForMaskedLM(
        ElectraConfig(
            vocab_size=20,
            embedding_size=16,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=8,
        )
    ).eval()
    theirs.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="electra"):
        load_masked_lm(tmp_path / "model")
    point = EntryPoint("electra", "electra_family:Electra", known.FAMILIES.group)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "points", lambda group: (point,) if group == known.FAMILIES.group else ())
    known.family.cache_clear()
    mlm, had_head = load_masked_lm(tmp_path / "model")
    batch = Collator(Frame.bert(1, 2), 0, 3).query([[7, 8, 9], [5]], 16)
    state_BLH = hidden_states(mlm.base_model, batch)
    logits = theirs(input_ids=batch.ids_BL, attention_mask=batch.mask_BL.long()).logits
    assert had_head
    assert_close(mlm_logits(mlm, state_BLH)[batch.mask_BL], logits[batch.mask_BL], atol=1e-5, rtol=1e-5)
    known.family.cache_clear()

"""The presets are the recipes of the authors."""

from __future__ import annotations

import pytest

from realmctl.pipeline.presets import settings_of


@pytest.mark.parametrize(("preset", "batch", "contrastive"), [("condenser", 1024, False), ("cocondenser", 2000, True)])
def test_condenser_is_trained_as_its_authors_train_it(preset, batch, contrastive):
    settings = settings_of(preset, "condenser-init")
    recipe = {"lr": 1e-4, "mask_rate": 0.15, "length": 128, "skip_from": 6, "head_layers": 2}
    assert {**recipe, "batch_size": batch, "contrastive": contrastive}.items() <= settings.items()
    assert "steps" not in settings  # the recipe counts passes over the corpus
    assert settings["optimizer"] == "adamw" and settings["warmup"] is None  # None: a tenth of the steps


def test_retromae_is_trained_as_its_authors_train_it():
    """examples/pretrain/README.md of the public code: 8 processes with 32 passages each."""
    recipe = {"batch_size": 256, "lr": 1e-4, "mask_rate": 0.3, "length": 512, "warmup": None}
    settings = settings_of("retromae", "retromae-init")
    assert recipe.items() <= settings.items() and "steps" not in settings

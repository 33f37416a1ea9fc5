"""Answers of a language model whose beam holds one text twice."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.lab.language_models.generative import GenerativeAnswerer
from realmctl.lab.language_models.models.files import load_language_model
from tests.fixtures.language_models import make_t5


def test_a_text_that_comes_twice_keeps_its_best_score_and_place(tmp_path, monkeypatch):
    answerer = object.__new__(GenerativeAnswerer)
    answerer.model, answerer.device = load_language_model(make_t5(tmp_path / "t5")), torch.device("cpu")
    answerer.qa_model = None
    source, targets = np.array([5, 6, 7]), [[8], [9], [10]]
    monkeypatch.setattr(answerer.model, "text", lambda target: str(target[0]))
    best, middle, worst = answerer._scored(source, targets)
    assert best.score > middle.score > worst.score
    monkeypatch.setattr(
        answerer.model, "text", lambda target: middle.text if str(target[0]) == middle.text else "twice"
    )
    found = answerer._scored(source, targets)
    assert [answer.text for answer in found] == ["twice", middle.text]
    assert [answer.score for answer in found] == pytest.approx([best.score, middle.score])

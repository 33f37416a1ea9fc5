"""What the tests of imports share: one thread, the layouts of realm_case.py, an embedder and its index."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.artifacts import Artifact
from realmctl.models.inputs import Collator
from realmctl.tokens.frame import Frame
from tests.fixtures import realm_case as case
from tests.fixtures import realm_checkpoints as published
from tests.fixtures.realm_checkpoints import RECORDS, TITLES, imported


@pytest.fixture(autouse=True)
def in_one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def collator() -> Collator:
    return Collator(Frame.bert(case.CLS, case.SEP), pad_id=0, mask_id=case.MASK)


@pytest.fixture
def embedded(tmp_path) -> tuple[Artifact, np.ndarray]:
    """The pre-trained embedder, and RECORDS with TITLES as it embeds them: made on a path that shares no file with import."""
    retriever = imported(published.write(tmp_path / "pre", published.embedder()), tmp_path / "w")["retriever"]
    ids = {word: number for number, word in enumerate(published.VOCABULARY)}

    def wordpieces(text: str) -> list[int]:
        found: list[int] = []
        for word in text.lower().replace("é", "e").replace(".", " . ").split():
            letters = [word] if word in ids else [word[0], *(f"##{letter}" for letter in word[1:])]
            found += [ids[letter] for letter in letters]
        return found

    packed = Collator(Frame.bert(1, 2), 0, 3).block(
        [wordpieces(t) for t in TITLES], [wordpieces(r.decode()) for r in RECORDS]
    )
    with torch.inference_mode():
        return retriever, published.tower().embed(packed).numpy()

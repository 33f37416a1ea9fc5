"""Flipped bits and cut files in unfinished runs: the next run ends with the same content, or refuses and deletes nothing."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from realmctl.errors import RealmctlError
from realmctl.pipeline import Stage
from realmctl.retrieval.embedding import embedding
from realmctl.retrieval.embedding.embedding_file import EmbeddingFile
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from tests.faults.counting import count, rounds
from tests.faults.tampering import cut, flipped
from tests.fixtures.chain import Stopped, finetune, pretrain, stop_at

SEED = 22
FLIPS, CUTS = 8, 2
"""Damages of each run in a round."""
SHORT = {"steps": 4, "batch_size": 4, "checkpoint_every": 1}


def runs(chain) -> dict[str, Stage]:
    """Stages that are stopped in the middle. Pre-training has snapshots and refreshed indexes then."""
    parts = {"blocks": chain.blocks, "retriever": chain.retriever}
    return {
        "pretrain": pretrain(chain, refresh_every=2, steps=5),
        "finetune": finetune(chain, checkpoint_every=1),
        "ict-init": IctInit(blocks=chain.blocks, encoder=chain.encoder, projection=8, **SHORT),
        "mlm-init": MlmInit(blocks=chain.blocks, bert="scratch:L1-H16", length=16, **SHORT),
        "embed": Embed(batch_size=4, **parts),
    }


@pytest.fixture(scope="module", autouse=True)
def short_ranges() -> Iterator[None]:
    """Embeddings are written in many pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "ROWS_PER_RANGE", 4)
        yield


@pytest.fixture(scope="module", params=["pretrain", "finetune", "ict-init", "mlm-init", "embed"])
def unfinished(request, chain, short_ranges, tmp_path_factory) -> tuple[Stage, str, Path]:
    """(the stage, the content it ends with, a series with its unfinished run)"""
    folder, stage = tmp_path_factory.mktemp(request.param), runs(chain)[request.param]
    expected = stage.make(folder / "whole").content
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, stage.steps - 1 if hasattr(stage, "steps") else 0)
        patch.setattr(EmbeddingFile, "write", after(6, EmbeddingFile.write))
        with pytest.raises(Stopped):
            stage.make(folder / "unfinished")
    return stage, expected, folder / "unfinished"


def after(calls: int, function: Callable[..., None]) -> Callable[..., None]:
    """`function`, which breaks down after so many calls."""
    left = iter(range(calls))

    def call(*arguments: object) -> None:
        if next(left, None) is None:
            raise Stopped
        function(*arguments)

    return call


def outcome(unfinished: tuple[Stage, str, Path], folder: Path, damage: Callable[[bytes], bytes], draw) -> str:
    """Damage one file of a copy and finish the run: "same" or "refused"; anything else fails."""
    stage, expected, series = unfinished
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(series, folder)
    path = draw.choice([path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size])
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(damage(data))
    try:
        made = stage.make(folder)
    except RealmctlError as error:
        assert "\n" not in str(error), error
        path.write_bytes(data)
        assert stage.make(folder).content == expected, f"{path} was damaged, and restoring it is not enough"
        return "refused"
    assert made.content == expected, f"{path} was damaged, and the run ended with another artifact"
    return "same"


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("damage", [flipped, cut])
def test_damage_to_an_unfinished_run_changes_nothing_it_ends_with(unfinished, tmp_path, damage):
    number = (FLIPS if damage is flipped else CUTS) * rounds()
    found = Counter[str]()
    for each in range(number):
        draw = random.Random(f"{SEED}-{each}")
        found[outcome(unfinished, tmp_path / "run", lambda data, draw=draw: damage(draw, data), draw)] += 1
    print(dict(found))
    if damage is flipped:
        count("single-bit flips in unfinished runs", number, seed=SEED, stages=5)
    else:
        count("truncated files in unfinished runs", number, seed=SEED, stages=5)

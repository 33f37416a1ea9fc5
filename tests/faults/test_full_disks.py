"""A disk of a few megabytes that is really full, in every stage, import and export: exit code 5, and the next run succeeds."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from realmctl.artifacts import version_numbers
from realmctl.cli.available_stages import available_stages
from realmctl.extras.hub.exports.hub_export import export
from realmctl.pipeline import Stage
from stages.embed import Embed
from tests.faults.children import as_root, ended, exit_code, forked
from tests.faults.counting import count, rounds
from tests.faults.kills.every_stage import every_stage
from tests.faults.kills.runs import Runs

SEED, MEGABYTES = 39, 32
pytestmark = as_root


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory, with the temporary directory on it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def full_but_for(disk: Path, left: int) -> Iterator[None]:
    """Within the block, `left` bytes of the disk are free."""
    status = os.statvfs(disk)
    with (disk / "filler").open("wb") as filler:
        os.posix_fallocate(filler.fileno(), 0, status.f_bavail * status.f_bsize - left)
    yield
    (disk / "filler").unlink()


def fill(stage: Stage, disk: Path, draws: list[float]) -> int:
    """Run a stage where only a part of what it needs is free. Returns how often that was too little."""
    runs = Runs(stage, disk)
    runs.finished()
    needed = sum(path.lstat().st_blocks * 512 for path in runs.out.rglob("*"))
    runs.clear()
    failed = 0
    for part in draws:
        runs.log.write_text("")
        with full_but_for(disk, int(part * needed)):
            code = ended(forked(lambda: exit_code(lambda: stage.make(runs.out)), disk.parent / "log"))
            assert code in (0, 5), f"{part * needed} of {needed} bytes: {(disk.parent / 'log').read_text()[-3000:]}"
            assert version_numbers(runs.out) == ([] if code else [1])
        assert {path.name for path in disk.iterdir()} <= {"out", "log"}
        failed += code == 5
        runs.out.mkdir(exist_ok=True)
        runs.check_finished()
    return failed


def test_embeddings_on_a_full_disk(chain, disk):
    assert fill(Embed(blocks=chain.blocks, retriever=chain.retriever), disk, [0.0, 0.6]) == 2
    count("full disks", 2, seed=SEED)


def test_an_export_on_a_full_disk(chain, disk, tmp_path):
    with full_but_for(disk, 16_000):
        code = ended(forked(lambda: exit_code(lambda: export(chain.retriever.path, disk / "hub")), tmp_path / "log"))
    assert code == 5 and not list(disk.iterdir()) and f"{disk}" in (tmp_path / "log").read_text()
    assert export(chain.retriever.path, disk / "hub")
    count("full disks", 1, seed=SEED)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_stage_on_a_full_disk(chain, disk, tmp_path):
    draw, failed = random.Random(SEED), 0
    (tmp_path / "inputs").mkdir()
    for name, stage in every_stage(chain, tmp_path / "inputs").items():
        found = fill(stage, disk, [draw.uniform(0, 1) for _ in range(2 * rounds())])
        assert found, name
        failed += found
    count("full disks", failed, stages=len(available_stages()), seed=SEED)

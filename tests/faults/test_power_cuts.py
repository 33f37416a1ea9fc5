"""Simulated power cuts: no version is torn, and none is lost after its run ended. Without any one flush, the simulation notices."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.counting import count, rounds
from tests.faults.power_cuts import Disk, Event, fault, recorded
from tests.fixtures.small_stages import Child, Model, Plain

SEED = 22
CUTS = 1000


def cuts(log: list[Event], root: Path, version: Path, expected: dict[str, bytes], number: int, seed: int) -> list[str]:
    """The faults found in `number` power cuts at random places of the log, a third of them after its end."""
    draw, found = random.Random(seed), []
    for _ in range(number):
        at = draw.choice([len(log), draw.randint(0, len(log)), draw.randint(max(0, len(log) - 12), len(log))])
        disk = Disk(root)
        disk.replay(log[:at])
        wrong = fault(disk.after_cut(draw), version, expected, at == len(log))
        found += [wrong] if wrong else []
    return found


def model_of(folder: Path):
    child = Child(plain=Plain().make(folder / "plain")).make(folder / "child")
    with recorded() as log:
        made = Model(child=child).make(folder / "model")
    return log, made


@pytest.fixture
def runs(tmp_path):
    """(log, version, its files) of a plain artifact whose series has two new parents, and of a model with parts."""
    with recorded() as log:
        plain = Plain().make(tmp_path / "new/er/plain")
    (tmp_path / "w").mkdir()
    model_log, model = model_of(tmp_path / "w")
    return [
        (
            each,
            made.path,
            {str(path.relative_to(made.path)): path.read_bytes() for path in made.path.rglob("*") if path.is_file()},
        )
        for each, made in ((log, plain), (model_log, model))
    ]


def test_no_power_cut_tears_or_loses_a_version(runs, tmp_path):
    number = CUTS * rounds()
    for log, version, files in runs:
        assert cuts(log, tmp_path, version, files, number, SEED) == []
    count("power cuts (simulated)", number * len(runs), seed=SEED)


def needed(version: Path, files: dict[str, bytes]) -> set[str]:
    """The paths whose flush must not be missing: files with bytes and folders of the version, and the folders above it.

    Not needed are flushes of empty files, of the recipe that is deleted before the commit, and of the last number given.
    """
    partial = version.with_name(version.name + ".partial")
    parts = [partial / name for name, data in files.items() if data and name != "manifest.json"]
    folders = {folder for part in parts for folder in part.parents if folder.is_relative_to(partial)}
    above = {version.parent, version.parent.parent, version.parent.parent.parent}
    return {str(path) for path in {*parts, *folders, *above}}


def test_without_any_one_flush_a_power_cut_is_noticed(runs, tmp_path):
    log, version, files = runs[0]
    flushes = [number for number, event in enumerate(log) if event[0] == "fsync" and event[1].startswith(str(tmp_path))]
    by_path: dict[str, list[int]] = {}
    for number in flushes:
        by_path.setdefault(log[number][1], []).append(number)
    unnoticed = []
    for path, numbers in by_path.items():
        without = [event for number, event in enumerate(log) if number not in numbers]
        if not cuts(without, tmp_path, version, files, 150, SEED):
            unnoticed.append(path)
    print("flushes whose absence changes nothing:", *unnoticed, sep="\n  ")
    assert needed(version, files) <= by_path.keys()
    assert needed(version, files).isdisjoint(unnoticed)
    count("flushes left out, noticed", len(by_path) - len(unnoticed), of=len(by_path))

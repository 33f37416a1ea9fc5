"""Clocks that jump, time zones, locales, masks and read-only disks: the same content, or one clear error."""

from __future__ import annotations

import datetime
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from realmctl.artifacts import manifest, open_artifact, verify
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.ict_init import IctInit
from stages.tag import Tag
from tests.faults.children import as_root, exit_code
from tests.faults.counting import count, rounds
from tests.fixtures.small_stages import Child, Plain

SEED, CLOCKS = 22, 2
YEAR = 365 * 86_400
ROOT = Path(__file__).parents[2]
PIPELINE = """
import json, os, sys
from pathlib import Path
os.umask(int(os.environ["UMASK"], 8))
import torch
torch.set_num_threads(1)
from tests.faults.test_surroundings import pipeline
print(json.dumps(pipeline(Path(sys.argv[1]), Path(sys.argv[2]))))
"""
SURROUNDINGS = {
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "tr_TR.ISO-8859-9",
    "LANG": "C",
    "PYTHONHASHSEED": "7",
    "PYTHONUTF8": "0",
    "UMASK": "077",
    "PYTHONCOERCECLOCALE": "0",
}


def pipeline(corpus: Path, folder: Path) -> dict[str, str]:
    """{kind: content} of five stages."""
    blocks = Chunk(corpus=(corpus,), tokenizer="train:300", workers=1).make(folder / "blocks")
    spans = Tag(blocks=blocks, tagger="rules", workers=1).make(folder / "spans")
    retriever = IctInit(
        blocks=blocks, bert="scratch:L1-H16", projection=8, steps=2, batch_size=4, checkpoint_every=1
    ).make(folder / "retriever")
    embeddings = Embed(blocks=blocks, retriever=retriever).make(folder / "embeddings")
    index = BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0).make(folder / "index")
    return {each.kind: each.content for each in (blocks, spans, retriever, embeddings, index)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "c.jsonl"
    texts = [f"Ida İnönü was born in June 19{n}. She met Zoë in Köln. They wrote two letters." for n in range(10, 22)]
    path.write_text("".join(json.dumps({"id": n, "title": f"Ida {n}", "text": t}) + "\n" for n, t in enumerate(texts)))
    return path


@pytest.fixture(scope="module")
def expected(corpus, tmp_path_factory, one_thread) -> dict[str, str]:
    return pipeline(corpus, tmp_path_factory.mktemp("expected"))


def test_another_zone_locale_mask_and_hash_seed_give_the_same_content(corpus, expected, tmp_path):
    environment = {**os.environ, **SURROUNDINGS, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", PIPELINE, corpus, tmp_path / "made"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == expected
    count("stages under another zone, locale, mask and hash seed", len(expected))


@pytest.mark.parametrize("mask", [0o077, 0o027, 0o002])
def test_no_file_is_more_readable_than_the_mask_allows(tmp_path, mask):
    """Published files were readable by every user whatever the mask."""
    before = os.umask(mask)
    try:
        made = Plain().make(tmp_path / "plain")
    finally:
        os.umask(before)
    modes = {path.stat().st_mode for path in made.path.rglob("*")}
    assert all(mode & mask == 0 and mode & 0o400 for mode in modes)
    verify(made)


def test_every_file_is_as_readable_as_the_mask_allows(corpus, expected):
    """safetensors writes files that only their owner may read: nobody else could use a model."""
    os.umask(mask := os.umask(0o022))
    for path in corpus.parent.parent.glob("expected*/*/*/**/*"):
        assert path.is_dir() or path.stat().st_mode & 0o777 == 0o444 & ~mask, path


@contextmanager
def jumping_clock(seed: int) -> Iterator[None]:
    """Within the block, the wall clock is up to a year wrong, each time by another amount."""
    draw, plain = random.Random(seed), time.time

    class Jumping(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Jumping:
            return cls.fromtimestamp(plain() + draw.uniform(-YEAR, YEAR), tz)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: plain() + draw.uniform(-YEAR, YEAR))
        patch.setattr(manifest, "datetime", Jumping)
        yield


def test_a_clock_that_jumps_changes_no_content(corpus, expected, tmp_path):
    for number in range(CLOCKS * rounds()):
        with jumping_clock(SEED + number):
            assert pipeline(corpus, tmp_path / str(number)) == expected
        for kind in expected:
            verify(open_artifact(tmp_path / str(number) / kind))
    count("stages with a clock that jumps", CLOCKS * rounds() * len(expected), seed=SEED)


@as_root
def test_a_read_only_disk_is_read_and_written_to_with_one_clear_error(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("may not mount a file system here")
    try:
        plain = Plain().make(disk / "plain").path
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        codes = [
            exit_code(lambda: verify(open_artifact(plain))),
            exit_code(lambda: Plain().make(disk / "plain")),
            exit_code(lambda: Child(plain=open_artifact(plain)).make(tmp_path / "child")),
            exit_code(lambda: Plain(text="other").make(disk / "plain")),
            exit_code(lambda: Plain().make(disk / "new")),
        ]
        assert codes == [0, 0, 0, 3, 3]
        count("reads and writes on a read-only disk", len(codes))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)

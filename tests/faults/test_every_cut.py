"""Small files cut after every byte: neither `verify` nor the reader of the file itself takes a part for the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from realmctl.artifacts import open_artifact, verify
from realmctl.artifacts.hashing import read_sealed, write_sealed
from realmctl.artifacts.records import Records, RecordWriter, frames_path
from realmctl.errors import RealmctlError
from realmctl.index.index_type import open_index
from realmctl.models.weights import load_tensors, save_tensors
from tests.faults.counting import count, sampled
from tests.fixtures.index import built, clustered
from tests.fixtures.small_stages import Child, Model, Plain


def refused_everywhere(
    path: Path, read: Callable[[], object], errors: tuple[type[Exception], ...] = (RealmctlError,)
) -> int:
    """Cut the file after every byte (in `make test` after every 31st), and count the cuts. Each must be refused; the whole file must not.

    A cut that takes no more than the last end of line takes nothing.
    """
    read()
    data, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(0o644)
    lengths = sampled(range(len(data.rstrip(b"\n")) if path.suffix == ".json" else len(data)), 31)
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(errors):
            read()
    path.write_bytes(data)
    path.chmod(mode)
    read()
    return len(lengths)


def test_verify_refuses_every_cut_of_a_small_artifact(tmp_path):
    child = Child(plain=Plain(text="a").make(tmp_path / "plain")).make(tmp_path / "child")
    model = Model(child=child).make(tmp_path / "model").path
    cuts = sum(
        refused_everywhere(path, lambda: verify(open_artifact(model)))
        for path in sorted(model.rglob("*"))
        if path.is_file()
    )
    assert cuts > 50
    count("truncation points of a small artifact", cuts)


@pytest.mark.parametrize("kind", ["exact", "hnsw"])
def test_an_index_refuses_every_cut_of_its_files(tmp_path, kind):
    folder = built(tmp_path / "index", clustered(20, 4), type=kind, m=2, ef=8, min_recall=0.0)
    cuts = sum(refused_everywhere(path, lambda: open_index(folder)) for path in sorted(folder.iterdir()))
    count("truncation points of small indexes", cuts)


def test_readers_refuse_every_cut_of_their_files(tmp_path):
    with RecordWriter(tmp_path / "r.jsonl.zst") as writer:
        for number in range(9):
            writer.write({"id": str(number), "text": "x" * number})
    cuts = sum(
        refused_everywhere(path, lambda: list(Records(tmp_path / "r.jsonl.zst")))
        for path in (tmp_path / "r.jsonl.zst", frames_path(tmp_path / "r.jsonl.zst"))
    )
    save_tensors({"a": torch.arange(9.0), "b": torch.ones(2, 2)}, tmp_path / "w.safetensors")
    cuts += refused_everywhere(tmp_path / "w.safetensors", lambda: load_tensors(tmp_path / "w.safetensors"))
    write_sealed(tmp_path / "state.json", {"step": 3, "loss": 0.5})
    cuts += refused_everywhere(tmp_path / "state.json", lambda: read_sealed(tmp_path / "state.json"), (ValueError,))
    count("truncation points of records, weights and states", cuts)

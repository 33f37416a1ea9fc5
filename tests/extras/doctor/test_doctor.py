"""`realmctl doctor`: facts that agree with the system, a measured speed, and the way to get what is missing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib import metadata

import torch

from realmctl.extras.doctor import machine
from realmctl.extras.doctor.command import installed_extras


def test_facts_agree_with_the_system(realmctl, monkeypatch):
    monkeypatch.setattr(machine, "torch_facts", lambda plain=machine.torch_facts: plain(seconds=0.02))
    code, out, _ = realmctl("doctor", "--json", "-w", "none/yet")
    found = json.loads(out)
    assert code == 0 and found["cores"] == len(os.sched_getaffinity(0))
    assert found["python"] == sys.version.split()[0] and found["torch"]["version"] == torch.__version__
    assert abs(found["free_disk_bytes"] - shutil.disk_usage(".").free) < 10**9
    assert len(found["torch"]["devices"]) == 1 + torch.cuda.device_count()
    assert min(found["torch"]["gflops"].values()) > 0
    assert found["hnswlib"] and 1 <= found["free_cores"] <= found["cores"]
    monkeypatch.setattr("realmctl.extras.doctor.command.free_cores", lambda: 0)
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    text = realmctl("doctor")[1]
    assert "--threads" in text and "C++" in text
    assert "GFLOP/s" in text and max(map(len, text.splitlines())) <= 100


def test_the_speed_of_a_product_is_counted_right(monkeypatch):
    """One product a tick of this clock: 2 * rows * inner * columns operations a second."""
    ticks = iter(range(1000))
    monkeypatch.setattr(machine.time, "perf_counter", lambda: float(next(ticks)))
    products = []
    monkeypatch.setattr(machine, "_product", lambda rows, weight: products.append((rows.shape, weight.shape)))
    found = machine._gflops(torch.device("cpu"), "fp32", 10.0)
    (rows, inner), (columns, _) = products[0]
    timed = len(products) - 1
    assert timed == 9 and found == round(timed * 2 * rows * inner * columns / 11 / 1e9, 1)


def test_extras_are_those_of_the_package_and_missing_ones_say_how_to_get_them(monkeypatch, realmctl):
    requirements = [
        'bm25s>=0.2; extra == "bm25"',
        "torch>=2",
        'no-such; extra == "more_than_bm25"',
        'x; extra == "dev"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    assert installed_extras() == {"bm25": {"bm25s": metadata.version("bm25s")}, "more_than_bm25": {"no-such": None}}
    monkeypatch.setattr(machine, "torch_facts", lambda plain=machine.torch_facts: plain(seconds=0.02))
    found, missing = realmctl("doctor")[1].splitlines()[-2:]
    assert missing.endswith("missing: pip install 'realmctl[more_than_bm25]'")
    assert found.index("bm25s") == missing.index("missing")


def test_a_torch_that_cannot_be_imported_is_said_with_the_rest(monkeypatch, realmctl):
    monkeypatch.setitem(sys.modules, "realmctl.extras.doctor.machine", None)
    code, out, err = realmctl("doctor")
    assert code == 5 and "PyTorch      cannot be imported" in out and "free disk" in out and err.count("\n") == 1

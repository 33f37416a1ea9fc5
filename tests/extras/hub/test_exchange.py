"""`realmctl import` and `realmctl export` as typed: what is printed, and which exit codes bad input has."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from realmctl import log
from realmctl.cli import app
from realmctl.pipeline.headline import headline_text
from tests.fixtures import realm_checkpoints as published

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def realmctl(capsys, tmp_path, monkeypatch) -> Iterator[Command]:
    """The real command, in this process and a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REALMCTL_WORKSPACE", raising=False)
    monkeypatch.setattr("warnings.filters", [])
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            app.main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return int(left.value.code or 0), printed.out, printed.err

    yield run
    signal.signal(signal.SIGTERM, before)
    log.set_quiet(False)


def test_from_a_checkpoint_to_a_hub_folder(realmctl):
    published.write(Path("c"), published.embedder())
    assert realmctl("import-realm", "c", "-q")[:2] == (0, "artifacts/retriever/v1\n")
    assert realmctl("import-realm", "c", "-w", "w", "-q")[1] == "w/retriever/v1\n"
    assert realmctl("import-realm", "c", "--out", "w/named", "-q")[1] == "w/named/v1\n"
    made = json.loads(realmctl("import-realm", "c", "--json")[1])["made"]
    assert made["retriever"]["path"] == "artifacts/retriever/v1" and made["retriever"]["stage"] == "import"
    code, out, _ = realmctl("export", "artifacts/retriever", "hub")
    assert (code, out) == (0, "hub\n") and Path("hub/modules.json").is_file()
    assert json.loads(realmctl("export", "artifacts/retriever/v1", "hub2", "--json")[1])["kind"] == "retriever"
    assert realmctl("verify", "artifacts/retriever")[0] == 0
    checked = json.loads(realmctl("verify", "artifacts", "--json")[1])["verified"]
    assert [each["path"] for each in checked] == ["artifacts/retriever/v1"]
    assert realmctl("verify")[1].startswith("artifacts/retriever/v1: intact")
    [entry] = json.loads(realmctl("ls", "--json")[1])["artifacts"]
    assert entry["headline"] == headline_text(["*"], made["retriever"]["metrics"]) != ""
    (Path("artifacts/retriever/v1") / "retriever.json").write_text("{}")
    assert realmctl("verify", "artifacts")[0] == 3


class Attack:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch canary",)


def test_an_open_qa_checkpoint_and_what_may_be_wrong_with_it(realmctl):
    folder = published.write(Path("qa"), published.openqa(torch.ones(2, 16)), pickled=True)
    published.write_records(folder / "block_records.npy", [b"the cat", b"a"])
    code, out, _ = realmctl("import-realm", "qa", "--workers", 1)
    assert (code, out) == (0, "artifacts/blocks/v1\nartifacts/qa-model/v1\n")
    assert realmctl("import-realm", "qa", "--workers", 1, "--out", "two")[0] == 2 and not Path("two").exists()

    def refused(code: int, *arguments: object) -> None:
        found, out, err = realmctl("import-realm", *arguments, "-w", "new", "-q")
        assert (found, out) == (code, "") and err.startswith("error: ") and err.count("\n") == 1, err
        assert not Path("new").exists() and not Path("canary").exists()

    published.write_records(folder / "block_records.npy", [b"the cat", Attack()])
    refused(4, "qa", "--block-records", published.write_records(Path("one.npy"), [b"a"]))
    published.write_records(folder / "block_records.npy", [Attack(), b"a"])
    refused(3, "qa")
    torch.save({"block_emb": Attack()}, folder / "pytorch_model.bin")
    refused(3, "qa")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02c")
    refused(3, "qa")
    refused(3, "./nowhere")
    refused(
        4, published.write(Path("words"), published.reader(), vocabulary=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    )
    refused(2, published.write(Path("c"), published.reader()), "--titles", "t.txt")
    assert realmctl("export", "artifacts/qa-model/v1/index", "hub")[0] == 4
    assert realmctl("export", "artifacts/qa-model", "hub", "--side", "block")[0] == 2
    assert realmctl("export", "artifacts/qa-model", "artifacts")[0] == 2
    assert not Path("hub").exists()

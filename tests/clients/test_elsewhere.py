"""examples/elsewhere.py: from Markdown with front matter to the same filtered hits in LangChain, in Qdrant and by curl."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from tests.fixtures.encoder_folders import folder_for

SCRIPT = Path(__file__).parents[2] / "examples/elsewhere.py"


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs the command curl")
def test_three_ways_find_the_same(chain, tmp_path):
    for package in ("langchain_core", "qdrant_client", "selectolax", "markdown_it", "pyarrow"):
        pytest.importorskip(package)
    (tmp_path / "handbook").mkdir()
    for number in range(8):
        text = (
            f"---\ntitle: Refunds {number}\ndate: 20{20 + number}-05-01\n---\nAda Lorn was born in {1900 + number}.\n"
        )
        (tmp_path / f"handbook/{number}.md").write_text(text)
    spec = importlib.util.spec_from_file_location("elsewhere", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    encoder = str(folder_for(chain.blocks, tmp_path / "encoder"))
    work = ["--encoder", encoder, "-w", str(tmp_path / "w"), "--query", "Where was Ada Lorn born?"]
    found = script.main([str(tmp_path / "handbook"), *work])
    assert found["LangChain"] == found["Qdrant"] == found["curl"]
    assert {name[0] for name in found["curl"]} <= {"4", "5", "6", "7"} and len(found["curl"]) == 4

"""Every Python block of docs/python.md runs, in the order of the page, on a workspace of small artifacts."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fixtures.chain import Chain

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def workspace(chain: Chain, model, qa_model, tmp_path, monkeypatch) -> Path:
    """`artifacts/` with a series of each name on the page, in the working directory."""
    series = {name: chain.folder / name for name in ("blocks", "retriever", "embeddings", "index")}
    series |= {"model": model.path.parent, "qa-model": qa_model.path.parent}
    (tmp_path / "artifacts").mkdir()
    for name, folder in series.items():
        (tmp_path / "artifacts" / name).symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(code: str, names: dict[str, Any]) -> None:
    """Execute one block as a user would type it."""
    exec(compile(ast.parse(code), "docs/python.md", "exec"), names)


def test_the_page_has_examples():
    assert len(BLOCKS) >= 9 and len(BLOCKS) == PAGE.count("```python")


def test_every_example_runs(workspace, capsys):
    names: dict[str, Any] = {}
    for code in BLOCKS:
        run(code, names)
    printed = capsys.readouterr().out
    assert names["hit"].block.text and len(names["found"].answers) == 3 and len(names["filled"].candidates) == 8
    assert len(names["titles"]) == len(names["best"]) == 2 and len(names["titles"][0]) == 20
    assert names["query_vectors"].dtype == np.float32 and names["block_vectors"].shape == (1, 8)
    assert names["made"].path == Path("w/index/v1") and names["text"] == names["found"].best.text
    assert "artifacts/no-such-model does not exist" in printed


@pytest.mark.slow
def test_a_type_checker_accepts_every_example(tmp_path):
    file = tmp_path / "page.py"
    file.write_text("\n".join(BLOCKS))
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from realmctl import stages\nfrom realmctl.artifacts import Artifact\ndef make(one: Artifact) -> None:\n"
        "    stages.Embed(blocks=one, retriever=one, nonsense=3)\n    stages.Embed(blocks=one)\n"
        "    stages.BuildIndex(embeddings=one, m='many')\n    stages.BuildIndex(embeddings=one).make(3)\n"
    )
    options = ["--strict", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run([*command, str(file), str(wrong)], capture_output=True, text=True, cwd=ROOT)
    found = [line for line in run.stdout.splitlines() if ": error:" in line]
    assert [line.partition(".py:")[2].partition(":")[0] for line in found] == ["4", "5", "6", "7"], run.stdout
    assert all("wrong.py" in line for line in found)


def test_the_page_names_every_public_name():
    import realmctl

    for name in set(realmctl.__all__) - {"Artifact", "__version__"}:
        assert name in PAGE


def test_a_broken_example_would_fail(workspace):
    with pytest.raises(AttributeError):
        run('import realmctl\nrealmctl.load_model("artifacts/model").searches("Who?")', {})

"""The notebook runs from its first cell to its last in a fresh kernel, with a twentieth of its training steps."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from realmctl.artifacts import open_artifact

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "notebooks" / "dump_to_evidence.ipynb"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of what the notebook needs, and the environment of its kernel."""
    shutil.copytree(ROOT / "examples" / "world", tmp_path / "world")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("REALMCTL_NOTEBOOK", "minute")
    monkeypatch.setenv("REALMCTL_NOTEBOOK_SCALE", "0.05")
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path / "notebooks"


def executed(notebook: Any, folder: Path) -> Any:
    client = NotebookClient(notebook, timeout=300, coalesce_streams=True, resources={"metadata": {"path": str(folder)}})
    return client.execute()


def outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook.cells:
        yield from cell.get("outputs", [])


def printed(notebook: Any) -> str:
    return "".join(
        output.text for output in outputs(notebook) if output.output_type == "stream" and output.name == "stdout"
    )


@pytest.mark.slow
def test_the_notebook_runs(folder):
    done = executed(nbformat.read(NOTEBOOK, 4), folder)
    text = printed(done)
    assert re.search(r"exact match on 100 dev questions: \d\.\d\d", text) and ">>" in text and "p(z|x)" in text
    pictures = [output for output in outputs(done) if "image/png" in output.get("data", {})]
    assert len(pictures) == 3
    model, qa_model = (open_artifact(folder / "dump-to-evidence" / name) for name in ("model", "qa-model"))
    assert qa_model.lineage["model"] == model.content and model.settings["steps"] < 20


@pytest.mark.slow
def test_a_notebook_that_fails_would_be_noticed(folder):
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import realmctl\nrealmctl.load('nothing')")])
    with pytest.raises(CellExecutionError, match="nothing does not exist"):
        executed(broken, folder)


def test_the_committed_outputs_are_of_every_cell_and_name_no_machine():
    notebook = nbformat.read(NOTEBOOK, 4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    texts = [
        str({**output, "data": {"text/plain": output.get("data", {}).get("text/plain")}})
        for output in outputs(notebook)
    ]
    found = re.findall(r"/(?:home|root|tmp|work|usr|opt|Users)/\S*", " ".join(texts))
    assert not found and "site-packages" not in " ".join(texts)

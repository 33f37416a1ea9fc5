"""`import` as a stage: of a pipeline file, and of what it must not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from realmctl.artifacts import open_artifact, version_numbers
from realmctl.extras.hub.import_encoder import Import
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from tests.fixtures import encoder_folders as folders

FILE = """
stages:
  retriever: {stage: import, source: encoder, pooling: mean, scale: 20}
  blocks: {stage: chunk, corpus: [documents.jsonl], tokenizer: "@retriever/tokenizer", workers: 1}
  embeddings: {stage: embed}
  index: {stage: build-index}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders.plain(Path("encoder"))
    Path("documents.jsonl").write_text('{"id": "1", "title": "Ada", "text": "Ada Lorn was born in Milton."}\n')


def test_a_pipeline_file_begins_with_an_encoder(here, realmctl):
    Path("search.yaml").write_text(FILE)
    for _ in range(2):
        code, out, err = realmctl("run", "search.yaml")
        assert code == 0 and out.split() == [
            f"artifacts/{name}/v1" for name in ("retriever", "blocks", "embeddings", "index")
        ], err
    code, out, err = realmctl("search", "Ada", "--json")
    assert (code == 0 and '"dense"' in out) or '"hybrid"' in out, err
    assert realmctl("run", "search.yaml", "--dry-run")[0] == 0


def test_the_command_the_stage_and_the_function_make_one_version(here, realmctl):
    assert realmctl("import", "encoder", "--pooling", "mean", "--scale", 20)[0] == 0
    made = Import(source="encoder", pooling="mean", scale=20).make(Path("artifacts/retriever"))
    again = import_encoder(
        Path("encoder"), None, None, EncoderSettings(pooling="mean", scale=20), Path("artifacts/retriever")
    )
    assert version_numbers(Path("artifacts/retriever")) == [1] and made.content == again.content
    assert open_artifact(Path("artifacts/retriever")).manifest.stage == "import"


def test_what_is_no_encoder_is_refused(here, realmctl):
    for name, code, says in (("documents.jsonl", 3, "documents.jsonl"), ("nowhere", 3, "nowhere")):
        found, out, err = realmctl("import", name)
        assert (found, out) == (code, "") and says in err
    assert not Path("artifacts/retriever").exists()

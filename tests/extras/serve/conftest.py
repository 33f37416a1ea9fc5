"""A workspace with chunked blocks, a model and a qa-model, and a server of it without a network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from realmctl.artifacts import open_artifact
from realmctl.extras.serve.files import Files
from realmctl.extras.serve.models import open_models
from realmctl.extras.serve.service import Service
from realmctl.extras.serve.versions import Versions
from realmctl.extras.serve.web.application import create_app
from stages.chunk import Chunk
from stages.mlm_init import MlmInit
from stages.tag import Tag
from tests.fixtures.chain import Chain, documents, finetune, make_index, pretrain, write_questions
from tests.fixtures.retriever import make_retriever

TOKEN = "a-token-for-the-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
QUESTION = "Where was Ada Lorn born?"
SENTENCE = "Ada Lorn was born in [MASK] ."
LENGTH = 32


def write_corpus(path: Path) -> Path:
    """One document for each person, of two or three blocks."""
    lines = []
    for number, (title, blocks) in enumerate(documents().items()):
        text = " ".join(sentence.replace("[[", "").replace("]]", "") for block in blocks for sentence in block)
        lines.append(json.dumps({"id": f"d{number}", "title": title, "text": text}))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def made_chain(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> Chain:
    """Blocks, index, model and qa-model in one workspace."""
    folder = tmp_path_factory.mktemp("serve")
    blocks = Chunk(
        corpus=(write_corpus(folder / "corpus.jsonl"),), tokenizer="train:300", max_wordpieces=LENGTH, workers=1
    ).make(folder / "blocks")
    retriever = make_retriever(folder / "retriever", blocks)
    chain = Chain(
        folder,
        blocks,
        Tag(blocks=blocks, tagger="rules", query_length=24, workers=1).make(folder / "spans"),
        MlmInit(blocks=blocks, bert="scratch:L1-H16", steps=1, batch_size=2, length=24).make(folder / "encoder"),
        retriever,
        make_index(folder, blocks, retriever),
        write_questions(folder / "questions.jsonl"),
    )
    model = pretrain(chain, steps=2, precision="fp32").make(folder / "model")
    finetune(chain, model, steps=3, optimizer="adamw", reader_length=80).make(folder / "qa-model")
    return chain


@pytest.fixture(scope="session")
def made_once(made_chain: Chain) -> Path:
    """The workspace to copy."""
    return made_chain.folder


@pytest.fixture
def workspace(made_once: Path, tmp_path: Path) -> Path:
    """A workspace of its own."""
    return Path(shutil.copytree(made_once, tmp_path / "w"))


def series(workspace: Path) -> dict[str, Path]:
    """The series that a server reads and writes."""
    return {"blocks": workspace / "blocks", "embeddings": workspace / "embeddings", "indexes": workspace / "index"}


@pytest.fixture
def versions(workspace: Path) -> Versions:
    """The versions of a server of the workspace."""
    model = open_artifact(workspace / "model")
    return Versions(**series(workspace), qa_model=None, model=model)


Open = Callable[..., Service]


@pytest.fixture
def open_service(workspace: Path) -> Iterator[Open]:
    """Open a service of the workspace, which the test's end stops."""
    opened: list[Service] = []

    def opener(edits: bool = True, most_waiting: int = 64, files: Files | None = None, **paths: Any) -> Service:
        given = {"qa_model": workspace / "qa-model", "model": workspace / "model", "closed_book": None, **paths}
        models, versions = open_models(**{**series(workspace), **given})
        opened.append(Service(models, versions, edits, most_waiting, files))
        return opened[-1]

    yield opener
    for service in opened:
        service.stop()


def client_of(service: Service, edits: bool = True) -> TestClient:
    """A browser at http://testserver, which sends no Origin."""
    app = create_app(service, ["testserver"], TOKEN if edits else None)
    return TestClient(app, raise_server_exceptions=False)


@pytest.fixture
def client(open_service: Open) -> TestClient:
    """A client of a server that accepts edits."""
    return client_of(open_service())

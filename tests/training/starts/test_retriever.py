"""Training that starts from an imported retriever keeps all of it: head, pooling, prefixes and scale."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, MismatchError
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain
from tests.fixtures.imported import imported_retriever, require_trained_from
from tests.fixtures.retriever import make_retriever

TRAINING = {"steps": 1, "batch_size": 4, "lr": 1e-2, "warmup": 0, "precision": "fp32"}


@pytest.fixture(scope="module")
def imported(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return imported_retriever(chain, tmp_path_factory.mktemp("imported"))


def test_no_steps_write_the_retriever_again(chain: Chain, imported: Artifact, tmp_path):
    made = IctInit(blocks=chain.blocks, retriever=imported, steps=0).make(tmp_path / "retriever")
    for name in ("retriever.json", "block/model.safetensors", "block/projection.safetensors"):
        assert made.file(name).read_bytes() == imported.file(name).read_bytes()


@pytest.mark.parametrize("null_share", [0.0, 0.5])
def test_ict_goes_on_from_it(chain: Chain, imported: Artifact, tmp_path, null_share):
    made = IctInit(blocks=chain.blocks, retriever=imported, null_share=null_share, **TRAINING).make(tmp_path / "r")
    require_trained_from(imported, made)
    assert made.manifest.settings["projection"] is None  # the retriever has decided it


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"projection": 8}, "--projection"), ({"pooling": "cls"}, "--pooling"), ({"bert": "scratch:tiny"}, "--bert")],
)
def test_what_the_retriever_decides_is_not_asked_for(chain: Chain, imported: Artifact, tmp_path, settings, flag):
    with pytest.raises(ConfigError, match=flag):
        IctInit(blocks=chain.blocks, retriever=imported, **settings).make(tmp_path / "retriever")


def test_a_retriever_that_cannot_be_a_start_is_refused(chain: Chain, tmp_path):
    query_only = make_retriever(tmp_path / "query-only", chain.blocks, towers="query-only")
    with pytest.raises(MismatchError, match="block tower"):
        IctInit(blocks=chain.blocks, retriever=query_only).make(tmp_path / "retriever")

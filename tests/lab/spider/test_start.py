"""Spider goes on from a retriever."""

from __future__ import annotations

import pytest

from realmctl.artifacts import Artifact
from realmctl.errors import MismatchError
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.lab.spider.spider_init import SpiderInit
from realmctl.models.retriever import Retriever
from tests.fixtures import encoder_folders
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain
from tests.fixtures.recurring import documents_that_share_a_span
from tests.fixtures.retriever import make_retriever

TRAINING = {"steps": 1, "batch_size": 4, "lr": 1e-2, "warmup": 0, "precision": "fp32"}


@pytest.fixture(scope="module")
def imported(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """One encoder for both sides, with a dense layer, unit vectors, a scale and prefixes."""
    folder = tmp_path_factory.mktemp("imported")
    source = encoder_folders.folder_for(chain.blocks, folder / "source")
    settings = EncoderSettings(scale=20.0, query_prefix="question: ", block_prefix="town. ", block_length=48)
    return import_encoder(source, None, None, settings, folder / "retriever")


def test_spider_goes_on_from_one_of_its_vocabulary(chain: Chain, imported: Artifact, tmp_path):
    blocks = make_blocks(tmp_path / "blocks", documents_that_share_a_span())
    with pytest.raises(MismatchError, match="vocabularies"):
        SpiderInit(blocks=blocks, retriever=imported, **TRAINING).make(tmp_path / "r")
    made = SpiderInit(blocks=blocks, retriever=make_retriever(tmp_path / "own", blocks), **TRAINING).make(
        tmp_path / "r"
    )
    assert Retriever.load(made.path).projection == 8

"""Training that starts from an imported retriever keeps all of it: head, pooling, prefixes and scale."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, MismatchError
from realmctl.imports.encoder_retriever import EncoderSettings, import_encoder
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from realmctl.lab.bottleneck.condenser_objective import CondenserObjective, _examples, _start
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from stages.embed import Embed
from stages.ict_init import IctInit
from tests.fixtures import encoder_folders
from tests.fixtures.chain import Chain, metrics_of
from tests.fixtures.retriever import make_retriever

TRAINING = {"steps": 1, "batch_size": 4, "lr": 1e-2, "warmup": 0, "precision": "fp32"}


@pytest.fixture(scope="module")
def imported(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """One encoder for both sides, with a dense layer, unit vectors, a scale and prefixes."""
    folder = tmp_path_factory.mktemp("imported")
    source = encoder_folders.folder_for(chain.blocks, folder / "source")
    settings = EncoderSettings(scale=20.0, query_prefix="question: ", block_prefix="town. ", block_length=48)
    return import_encoder(source, None, None, settings, folder / "retriever")


def require_trained_from(start: Artifact, trained: Artifact) -> None:
    """The head and the BERT changed, and what training leaves alone did not."""
    before, after = Retriever.load(start.path), Retriever.load(trained.path)
    assert (after.layout, after.pooling, after.towers) == (before.layout, before.pooling, before.towers)
    assert (after.query_length, after.block_length) == (before.query_length, before.block_length)
    assert float(after.query_tower.scale) == 20
    for name in ("head.0.0.weight", "bert.encoder.layer.0.output.dense.weight"):
        first, second = (each.query_tower.state_dict()[name] for each in (before, after))
        assert 0 < float((first - second).abs().max()) < 0.05


def test_no_steps_write_the_retriever_again(chain: Chain, imported: Artifact, tmp_path):
    made = IctInit(blocks=chain.blocks, retriever=imported, steps=0).make(tmp_path / "retriever")
    for name in ("retriever.json", "block/model.safetensors", "block/projection.safetensors"):
        assert made.file(name).read_bytes() == imported.file(name).read_bytes()


@pytest.mark.parametrize("null_share", [0.0, 0.5])
def test_ict_goes_on_from_it(chain: Chain, imported: Artifact, tmp_path, null_share):
    made = IctInit(blocks=chain.blocks, retriever=imported, null_share=null_share, **TRAINING).make(tmp_path / "r")
    require_trained_from(imported, made)
    assert made.manifest.settings["projection"] is None  # the retriever has decided it


def test_cocondenser_compares_what_the_retriever_computes(chain: Chain, imported: Artifact):
    """Against the embeddings of the same masked spans, in one batch without dropout."""
    pytest.importorskip("realmctl.lab.closed_form")
    settings = CondenserInit(
        blocks=chain.blocks, retriever=imported, contrastive=True, skip_from=0, length=24, **TRAINING
    )
    retriever = Retriever.load(imported.path)
    model, examples = _start(settings, retriever), _examples(settings, retriever)
    objective = CondenserObjective(model.eval(), examples, settings, retriever.eval())
    [part] = objective.draw(0)
    prefix = Tokenizer.load(chain.blocks.path).ids("town.").tolist()
    assert part.batch.packed.ids_BL[:, 1 : 1 + len(prefix)].tolist() == [prefix] * 8
    assert part.batch.packed.ids_BL.shape[1] <= 24
    with torch.no_grad():
        _, sums = objective.loss(part)
        vector_SD = Retriever.load(imported.path).embed_blocks(part.batch.packed)
    score_SS = (vector_SD @ vector_SD.T).fill_diagonal_(-torch.inf)
    expected = -score_SS.log_softmax(1)[torch.arange(8), torch.arange(8) ^ 1].mean()
    assert float(sums["contrastive_loss"][0]) == pytest.approx(float(expected), abs=1e-4)


def test_cocondenser_writes_the_retriever_that_it_trained(chain: Chain, imported: Artifact, tmp_path):
    pytest.importorskip("realmctl.lab.closed_form")
    made = CondenserInit(
        blocks=chain.blocks, retriever=imported, contrastive=True, skip_from=0, length=24, **TRAINING
    ).make(tmp_path / "encoder")
    require_trained_from(imported, made.part("retriever"))
    assert len(metrics_of(made)) == 1
    vectors = np.load(Embed(blocks=chain.blocks, retriever=made).make(tmp_path / "e").file("embeddings.npy"))
    np.testing.assert_allclose((vectors**2).sum(1), 20, rtol=1e-2)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [({"projection": 8}, "--projection"), ({"pooling": "cls"}, "--pooling"), ({"bert": "scratch:tiny"}, "--bert")],
)
def test_what_the_retriever_decides_is_not_asked_for(chain: Chain, imported: Artifact, tmp_path, settings, flag):
    with pytest.raises(ConfigError, match=flag):
        IctInit(blocks=chain.blocks, retriever=imported, **settings).make(tmp_path / "retriever")


def test_retrievers_that_cannot_be_a_start_are_refused(chain: Chain, imported: Artifact, tmp_path):
    query_only, separate = (
        make_retriever(tmp_path / towers, chain.blocks, towers=towers) for towers in ("query-only", "separate")
    )
    with pytest.raises(MismatchError, match="block tower"):
        IctInit(blocks=chain.blocks, retriever=query_only).make(tmp_path / "retriever")
    with pytest.raises(MismatchError, match="ict-init"):
        CondenserInit(blocks=chain.blocks, retriever=separate, contrastive=True).make(tmp_path / "encoder")
    with pytest.raises(ConfigError, match="--contrastive"):
        CondenserInit(blocks=chain.blocks, retriever=imported).make(tmp_path / "encoder")

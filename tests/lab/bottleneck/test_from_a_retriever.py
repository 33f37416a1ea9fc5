"""coCondenser from an imported retriever keeps all of it, and compares what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.artifacts import Artifact
from realmctl.errors import ConfigError, MismatchError
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from realmctl.lab.bottleneck.condenser_objective import CondenserObjective, _examples, _start
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from stages.embed import Embed
from tests.fixtures.chain import Chain, metrics_of
from tests.fixtures.imported import imported_retriever, require_trained_from
from tests.fixtures.retriever import make_retriever

TRAINING = {"steps": 1, "batch_size": 4, "lr": 1e-2, "warmup": 0, "precision": "fp32"}


@pytest.fixture(scope="module")
def imported(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    return imported_retriever(chain, tmp_path_factory.mktemp("imported"))


def test_cocondenser_compares_what_the_retriever_computes(chain: Chain, imported: Artifact):
    """Against the embeddings of the same masked spans, in one batch without dropout."""
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
    made = CondenserInit(
        blocks=chain.blocks, retriever=imported, contrastive=True, skip_from=0, length=24, **TRAINING
    ).make(tmp_path / "encoder")
    require_trained_from(imported, made.part("retriever"))
    assert len(metrics_of(made)) == 1
    vectors = np.load(Embed(blocks=chain.blocks, retriever=made).make(tmp_path / "e").file("embeddings.npy"))
    np.testing.assert_allclose((vectors**2).sum(1), 20, rtol=1e-2)


def test_a_retriever_of_two_encoders_and_one_without_a_contrast_are_refused(chain: Chain, imported: Artifact, tmp_path):
    separate = make_retriever(tmp_path / "separate", chain.blocks, towers="separate")
    with pytest.raises(MismatchError, match="ict-init"):
        CondenserInit(blocks=chain.blocks, retriever=separate, contrastive=True).make(tmp_path / "encoder")
    with pytest.raises(ConfigError, match="--contrastive"):
        CondenserInit(blocks=chain.blocks, retriever=imported).make(tmp_path / "encoder")

"""RetroMAE: what the decoder may read, what the loss adds up, and what the stage makes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from realmctl.artifacts import Artifact
from realmctl.artifacts.description import describe_encoder
from realmctl.corpus.corpus import Corpus
from realmctl.lab.bottleneck.masked_passages import MaskedPassages, WholeWordMasking
from realmctl.lab.bottleneck.retromae_init import RetromaeInit
from realmctl.lab.bottleneck.retromae_model import RetroMae, bag_of_words_loss
from realmctl.lab.bottleneck.retromae_objective import RetroMaeObjective
from realmctl.lab.bottleneck.settings import RetroMaeSettings
from realmctl.lab.bottleneck.start import starting_masked_lm
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain, metrics_of
from tests.fixtures.transformers_bert import as_transformers

SMALL = {"steps": 2, "batch_size": 4, "length": 24, "precision": "fp32"}


def objective_of(chain: Chain, **more) -> RetroMaeObjective:
    settings = RetroMaeSettings(blocks=chain.blocks, encoder=None, bert="scratch:L2-H16", **{**SMALL, **more})
    torch.manual_seed(0)
    model = RetroMae(starting_masked_lm(settings, None)).eval()
    words = Tokenizer.load(chain.blocks.path)
    masking = WholeWordMasking.of(words, settings.mask_rate)
    examples = MaskedPassages(Corpus(chain.blocks), Collator.of(words), masking, length=settings.length)
    return RetroMaeObjective(model, examples, settings)


def test_each_position_reads_a_random_half_of_the_text_and_never_itself(chain: Chain) -> None:
    objective = objective_of(chain)
    text, rng = np.arange(40) % 5 + 10, np.random.default_rng(0)  # words of one wordpiece
    visible = np.stack([objective.visible(text, rng) for _ in range(400)])
    assert not visible[:, np.arange(42), np.arange(42)].any()
    assert visible[:, 1:, 0].all() and visible[:, :-1, -1].all()  # the sentence vector and [SEP]
    others = visible[:, 1:-1, 1:-1].sum(-1)
    assert set(np.unique(others)) <= {19, 20}  # half of 40, less itself
    share = visible[:, 1:-1, 1:-1].mean(0)[~np.eye(40, dtype=bool)]
    assert share.min() > 0.35 and share.max() < 0.65 and share.mean() == pytest.approx(0.5, abs=0.01)
    assert len({row.tobytes() for row in visible[0, 1:-1]}) > 30  # of one set, less themselves, there are at most 21


def test_whole_words_are_hidden(chain: Chain) -> None:
    continues = np.array([False, True] * 10)
    masking = WholeWordMasking(continues_V=continues, mask_id=0, ordinary=np.arange(5, len(continues)), rate=0.5)
    chosen = masking.chosen(
        np.array([2, 3, 4, 6, 7, 9]), 200, np.random.default_rng(0)
    )  # words of 2, 1 and 3 wordpieces
    words = {(True, True, True, False, False, False), (False, False, False, True, True, True)}
    assert {tuple(row) for row in chosen.tolist()} == words  # a budget of 3: the first two words, or the last


def test_the_encoder_never_hides_an_unknown_word_and_the_decoder_does(chain: Chain) -> None:
    objective = objective_of(chain, mask_rate=0.5)
    unknown, rng = objective.examples.masking.spared, np.random.default_rng(0)
    text = np.array([10, unknown, 11, unknown, 12, 13])
    assert unknown == Tokenizer.load(chain.blocks.path).unk
    assert not any(set(objective.examples.masking.masked(text, rng).places) & {1, 3} for _ in range(50))
    visible = np.stack([objective.visible(text, rng) for _ in range(50)])
    assert not visible[:, 0, [2, 4]].all(0).any()


@pytest.mark.parametrize("bag_of_words", [0.0, 0.5])
def test_the_loss_is_the_mean_over_all_wordpieces_and_that_over_the_masks(chain: Chain, bag_of_words: float) -> None:
    objective = objective_of(chain, bag_of_words=bag_of_words)
    [part] = objective.draw(0)
    loss, _ = objective.loss(part)
    mlm, plain = objective.model.mlm, part.plain
    last, decoded = objective.model(part.masked.packed, plain, part.visible_BLL)
    rebuilt, filled, bags = [], [], []
    head = as_transformers(mlm).cls
    special = torch.isin(plain.ids_BL, torch.tensor(sorted(objective.examples.collator.frame.ids)))
    for row, query in enumerate(part.masked.queries):
        hidden = dict(zip((query.places + 1).tolist(), query.targets.tolist(), strict=True))
        for position in range(1, len(query.tokens) + 1):
            wanted = plain.ids_BL[row, position]
            assert int(wanted) == hidden.get(position, int(part.masked.packed.ids_BL[row, position]))
            rebuilt.append(F.cross_entropy(head(decoded[row, position]), wanted))
            if position in hidden:
                filled.append(F.cross_entropy(head(last[row, position]), wanted))
        one = type(plain)(*(each[row : row + 1] for each in (plain.ids_BL, plain.mask_BL, plain.segments_BL)))
        bags.append(bag_of_words_loss(head(last[row : row + 1]), one, special[row : row + 1]))
    expected = sum(rebuilt) / len(rebuilt) + sum(filled) / len(filled) + bag_of_words * sum(bags) / len(bags)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5)


def test_micro_batches_have_the_gradient_of_the_batch(chain: Chain) -> None:
    gradients = []
    for micro_batch in (0, 3):
        objective = objective_of(chain, bag_of_words=0.3, micro_batch=micro_batch)
        for part in objective.draw(1):
            objective.loss(part)[0].backward()
        gradients.append({name: p.grad for name, p in objective.model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradient, gradients[1][name], atol=1e-6, rtol=1e-4), name


def test_the_sentence_vector_learns_what_the_decoder_cannot_read(chain: Chain, tmp_path) -> None:
    made = RetromaeInit(
        blocks=chain.blocks, bert="scratch:L2-H32", steps=60, batch_size=8, length=24, lr=3e-3, mask_rate=0.15
    ).make(tmp_path / "encoder")
    losses = [line["decoder_loss"] for line in metrics_of(made)]
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])


def test_an_encoder_of_it_goes_through_the_chain(chain: Chain, tmp_path) -> None:
    """Its [CLS] state is what ict-init pools."""
    encoder = RetromaeInit(blocks=chain.blocks, bert="scratch:L2-H16", bag_of_words=0.1, **SMALL).make(
        tmp_path / "encoder"
    )
    assert describe_encoder(encoder.path).pooling == "cls"
    assert set(metrics_of(encoder)[0]) >= {"decoder_loss", "encoder_loss", "bag_of_words_loss", "loss", "grad_norm"}
    retriever = IctInit(blocks=chain.blocks, encoder=encoder, steps=1, batch_size=4, projection=8).make(
        tmp_path / "retriever"
    )
    assert Retriever.load(retriever.path).pooling == "cls"


@pytest.mark.parametrize("pooling", ["mean", "pooler"])
def test_from_a_retriever_what_it_pools_is_decoded(chain: Chain, tmp_path, pooling: str) -> None:
    start: Artifact = IctInit(
        blocks=chain.blocks, bert="scratch:L2-H16", steps=0, projection=8, pooling=pooling, scale=20
    ).make(tmp_path / "start")
    made = RetromaeInit(blocks=chain.blocks, retriever=start, **SMALL).make(tmp_path / "encoder")
    before, after = Retriever.load(start.path), Retriever.load(made.part("retriever").path)
    assert after.pooling == pooling and after.projection == 8
    changed = {
        name for name, tensor in before.state_dict().items() if not torch.equal(tensor, after.state_dict()[name])
    }
    assert any("encoder.layer.0" in name for name in changed)
    assert not any(name.startswith("block_tower.projection") for name in changed)  # nothing here trains it
    if pooling == "pooler":
        assert any("pooler" in name for name in changed)

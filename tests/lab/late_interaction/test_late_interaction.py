"""Late interaction beside sentence-transformers' MultiVectorEncoder, and REALM's gradient through MaxSim beside its closed form."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.extras.ir.labelled import read_labelled
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run, trec_name
from realmctl.lab.late_interaction import maxsim as module
from realmctl.lab.late_interaction.encoder import LateEncoder, open_late
from realmctl.lab.late_interaction.late_embed import LateEmbed
from realmctl.lab.late_interaction.late_finetune import LateFinetune, LateTrainingSettings
from realmctl.lab.late_interaction.late_index import LateIndex, text_of, token_vectors
from realmctl.lab.late_interaction.late_rank import LateRank
from realmctl.lab.late_interaction.maxsim import maxsim, maxsim_of_all
from realmctl.lab.late_interaction.training import LateContrast, judged_questions
from realmctl.models.marginal import sequence_marginal
from realmctl.questions.questions import read_questions
from tests.fixtures import kinds
from tests.fixtures.chain import Chain
from tests.fixtures.kinds import colbert

sentence_transformers = pytest.importorskip("sentence_transformers")
TEXTS = [*kinds.texts(12, longest=12), "a : b . c ? ."]
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "expanded": {"query_expansion": {"strategy": "fixed", "length": 24, "attend": False}},
    "attended": {"query_expansion": {"strategy": "fixed", "length": 24, "attend": True}},
    "lengths": {"query_length": 9, "document_length": 17},
}


@pytest.mark.parametrize("form", FORMS)
def test_vectors_and_scores_are_those_of_sentence_transformers(form, tmp_path):
    folder = colbert(tmp_path, **FORMS[form])
    theirs = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu")
    ours = open_late(str(folder))
    ours.save(tmp_path / "again")
    ours = LateEncoder.load(tmp_path / "again")
    found, expected = {}, {"query": theirs.encode_query(TEXTS), "document": theirs.encode_document(TEXTS)}
    for side, vectors in expected.items():
        found[side] = [each for batch in token_vectors(ours, TEXTS, side, 4) for each in batch]
        for own, other in zip(found[side], vectors, strict=True):
            np.testing.assert_allclose(own, np.asarray(other), atol=1e-5)
    offsets = np.cumsum([0, *map(len, found["document"])])
    score_QN = np.stack([maxsim_of_all(query, np.concatenate(found["document"]), offsets) for query in found["query"]])
    np.testing.assert_allclose(score_QN, theirs.similarity(expected["query"], expected["document"]).numpy(), atol=1e-4)


def brute_force(query_LD, block_MD):
    return sum(max(float(q @ d) for d in block_MD) for q in query_LD) if len(block_MD) else 0.0


def test_all_blocks_are_compared_in_parts(monkeypatch):
    """However many vectors are compared at once, and with blocks that have none."""
    rng = np.random.default_rng(0)
    lengths = [3, 0, 5, 1, 0, 9, 2]
    offsets, tokens = np.cumsum([0, *lengths]), rng.normal(size=(sum(lengths), 4)).astype(np.float32)
    query = rng.normal(size=(6, 4)).astype(np.float32)
    expected = [brute_force(query, tokens[a:b]) for a, b in itertools.pairwise(offsets)]
    for most in (1, 4, 6, 1000):
        monkeypatch.setattr(module, "TOKENS_AT_ONCE", most)
        np.testing.assert_allclose(maxsim_of_all(query, tokens, offsets), expected, atol=1e-5)


def test_the_gradient_of_the_marginal_likelihood_goes_through_the_nearest_vectors():
    """d(-log p(y|x)) / d f(x, z) = p(z|x) - p(z|x, y), and f's gradient of a query vector is the block vector that was nearest."""
    torch.manual_seed(0)
    query_BLD = torch.randn(2, 5, 4, dtype=torch.float64, requires_grad=True)
    block_BNMD = torch.randn(2, 3, 6, 4, dtype=torch.float64, requires_grad=True)
    query_BL, block_BNM = torch.ones(2, 5, dtype=torch.bool), torch.rand(2, 3, 6) < 0.7
    query_BL[1, 3:] = False
    block_BNM[0, 2] = False
    log_prob_BNM, mask_BM = -torch.rand(2, 3, 2), torch.ones(2, 2, dtype=torch.bool)
    score_BN = maxsim(query_BLD, query_BL, block_BNMD, block_BNM)
    loss, _ = sequence_marginal(score_BN, log_prob_BNM, mask_BM)
    loss.backward()
    expected_query, expected_block = torch.zeros_like(query_BLD), torch.zeros_like(block_BNMD)
    for b in range(2):
        prior = score_BN[b].detach().softmax(0)
        posterior = (prior.log() + log_prob_BNM[b].sum(1)).softmax(0)
        for n in range(3):
            if not block_BNM[b, n].any():
                assert score_BN[b, n] == 0
                continue
            share = (prior - posterior)[n] / 2
            own = []
            for at in query_BL[b].nonzero()[:, 0].tolist():
                similar = (block_BNMD[b, n] @ query_BLD[b, at]).masked_fill(~block_BNM[b, n], -torch.inf)
                own.append(similar.max().item())
                nearest = int(similar.argmax())
                expected_query[b, at] += share * block_BNMD[b, n, nearest].detach()
                expected_block[b, n, nearest] += share * query_BLD[b, at].detach()
            assert float(score_BN[b, n].detach()) == pytest.approx(sum(own), abs=1e-5)
    torch.testing.assert_close(query_BLD.grad, expected_query, atol=1e-5, rtol=0)
    torch.testing.assert_close(block_BNMD.grad, expected_block, atol=1e-5, rtol=0)


def test_an_encoder_learns_by_the_marginal_likelihood_of_maxsim(tmp_path):
    """A small world: a reader gives each question its block. p(z|x) of MaxSim learns it, and the first step's gradient is that of a plain loop."""
    encoder = open_late(str(colbert(tmp_path))).train(False)
    asked, told = kinds.texts(8, longest=6), kinds.texts(16, longest=6)[8:]
    log_prob_BN1 = torch.full((8, 8), -4.0).fill_diagonal_(-0.1)[:, :, None]
    mask_B1 = torch.ones(8, 1, dtype=torch.bool)

    def scores():
        (query_BLD, query_BL), (block_NMD, block_NM) = encoder(asked, "query"), encoder(told, "document")
        shared = (each[None].expand(8, *each.shape) for each in (block_NMD, block_NM))
        return maxsim(query_BLD, query_BL, *shared), (query_BLD, query_BL, block_NMD, block_NM)

    def gradients():
        found = [None if each.grad is None else each.grad.clone() for each in encoder.parameters()]
        encoder.zero_grad()
        return found

    score_BN, (query_BLD, query_BL, block_NMD, block_NM) = scores()
    sequence_marginal(score_BN, log_prob_BN1, mask_B1)[0].backward(retain_graph=True)
    ours = gradients()
    lost = []
    for b in range(8):
        rows = [
            torch.stack([(block_NMD[n][block_NM[n]] @ q).max() for q in query_BLD[b][query_BL[b]]]).sum()
            for n in range(8)
        ]
        lost.append(-torch.log((torch.stack(rows).softmax(0) * log_prob_BN1[b, :, 0].exp()).sum()))
    torch.stack(lost).mean().backward()
    for own, other in zip(ours, gradients(), strict=True):
        assert (own is None) == (other is None)
        if own is not None and other is not None:
            torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-4)
    assert any(own is not None and bool(own.abs().max() > 1e-4) for own in ours)

    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    first = found = (score_BN.argmax(1) == torch.arange(8)).float().mean()
    for _ in range(30):
        score_BN, _ = scores()
        found = (score_BN.argmax(1) == torch.arange(8)).float().mean()
        loss, _ = sequence_marginal(score_BN, log_prob_BN1, mask_B1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert first < 0.6 and found == 1


@pytest.fixture(scope="module")
def late(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = colbert(tmp_path_factory.mktemp("late"))
    return LateEmbed(blocks=chain.blocks, encoder=str(folder), dtype="float32").make(folder.parent / "late-index")


def run_of(artifact: Any) -> dict[str, list[str]]:
    return {
        query: sorted(scores, key=lambda name: -scores[name]) for query, scores in read_run(artifact.file("run.trec"))
    }


def test_rankings_of_all_blocks_and_of_a_first_ranking(chain, late, tmp_path):
    """The exact ranking is that of sentence-transformers' scores; the second stage orders the same blocks as the first one found."""
    corpus, index = Corpus(chain.blocks), LateIndex(late)
    names = [trec_name(block.id) for block in corpus]
    asked = {trec_name(each.id): each.question for each in read_questions(chain.questions)}
    whole = run_of(LateRank(blocks=chain.blocks, late_index=late, queries=chain.questions).make(tmp_path / "whole"))
    some = [*asked][:4]
    tokens = [
        each
        for batch in token_vectors(index.encoder, [text_of(block) for block in corpus], "document")
        for each in batch
    ]
    for query in some:
        [[vectors]] = token_vectors(index.encoder, [asked[query]], "query")
        scores = [brute_force(vectors, own) for own in tokens]
        assert whole[query] == [names[row] for row in np.argsort(-np.float32(scores), kind="stable")]
    first = Rank(method="bm25", blocks=chain.blocks, queries=chain.questions, top=5).make(tmp_path / "first")
    again = run_of(
        LateRank(blocks=chain.blocks, late_index=late, ranking=first, queries=chain.questions).make(tmp_path / "again")
    )
    before = run_of(first)
    for query in before:
        assert set(again[query]) == set(before[query])
        assert again[query] == [name for name in whole[query] if name in before[query]]


def test_a_ranking_of_documents_is_refused(chain, late, tmp_path):
    first = Rank(method="bm25", blocks=chain.blocks, queries=chain.questions, unit="document").make(tmp_path / "first")
    with pytest.raises(ConfigError, match="--unit block"):
        LateRank(blocks=chain.blocks, late_index=late, ranking=first, queries=chain.questions).make(tmp_path / "again")


def test_numbers_of_half_the_size_change_scores_little(late):
    index, exact = LateIndex(late), LateIndex(late)
    index.token_TD = index.token_TD.astype(np.float16)
    np.testing.assert_allclose(index.scores("who?"), exact.scores("who?"), atol=2e-2)


@pytest.mark.parametrize(
    ("name", "fields", "named"),
    [
        ("config_sentence_transformers.json", {"model_type": "SentenceTransformer"}, "realmctl import"),
        ("1_Dense/config.json", {"bias": True}, "linear layer over tokens"),
        ("1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "linear layer over tokens"),
        ("2_MultiVectorMask/config.json", {"keep_only_token_ids": [3]}, "images"),
        ("2_MultiVectorMask/config.json", {"skiplist_words": [None]}, "skiplist_words"),
        ("config_sentence_transformers.json", {"prompts": 1.5}, "prompts"),
        ("tokenizer_config.json", {"model_max_length": "x"}, "no encoder can be loaded"),
        ("tokenizer_config.json", {"pad_token": -1}, "no encoder can be loaded"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "other", "length": 9}}, "query_expansion"),
        ("sentence_bert_config.json", {"query_length": 10**6}, "positions"),
        ("config.json", {"auto_map": {"AutoModel": "code.Model"}}, "Python code"),
    ],
)
def test_a_folder_that_asks_for_something_else_is_refused(name, fields, named, tmp_path):
    folder = colbert(tmp_path)
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    with pytest.raises(InputError, match=named):
        open_late(str(folder))


def written(path: Path, rows: list[tuple[str, list[str], list[str]]]) -> Path:
    path.write_text("".join(json.dumps({"query": a, "pos": b, "neg": c}) + "\n" for a, b, c in rows))
    return path


def test_loss_and_gradients_are_those_of_sentence_transformers(tmp_path):
    """Whole, and computed in parts of which the backward pass computes each again."""
    losses = pytest.importorskip("sentence_transformers.multi_vector_encoder.losses")
    folder = colbert(tmp_path, **FORMS["expanded"])
    asked, told, wrong = (kinds.texts(5, seed=seed, longest=14) for seed in (1, 2, 3))
    rows = [(a, [b], [c]) for a, b, c in zip(asked, told, wrong, strict=True)]
    theirs = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu").eval()
    for micro_batch in (0, 2):
        settings = LateTrainingSettings(
            start="s", passages=written(tmp_path / "train.jsonl", rows), batch_size=5, micro_batch=micro_batch
        )
        questions = judged_questions(read_labelled(settings.passages), 1, Counter())
        objective = LateContrast(open_late(str(folder)), questions, settings)
        [part] = objective.draw(0)
        loss, _ = objective.loss(part)
        loss.backward()
        columns = [part.questions, part.passages[::2], part.passages[1::2]]
        tasks = ("query", "document", "document")
        features = [
            theirs.preprocess(list(texts), prompt=theirs.prompts[task], task=task) | {"task": task}
            for texts, task in zip(columns, tasks, strict=True)
        ]
        expected = losses.MultiVectorMultipleNegativesRankingLoss(theirs)(features, None)
        assert float(loss.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)
        theirs.zero_grad()
        expected.backward()
        own, other = dict(objective.encoder.named_parameters()), dict(theirs.named_parameters())
        assert {"1.linear.weight"} == {name for name in other if ".model." not in name}
        for name, parameter in other.items():
            mine = own["head.0.weight" if name == "1.linear.weight" else f"bert.{name.partition('.model.')[2]}"]
            if parameter.grad is not None:
                torch.testing.assert_close(mine.grad, parameter.grad, atol=1e-5, rtol=1e-4)


def test_what_is_known_to_answer_is_no_negative(tmp_path):
    rows = [("Who?", ["a", "b"], ["B", "c"]), ("who? ", ["d"], ["A", "e"]), ("When?", ["f"], ["g"]), ("x", [], ["y"])]
    dropped: Counter[str] = Counter()
    settings = LateTrainingSettings(start="s", passages=written(tmp_path / "train.jsonl", rows), batch_size=3)
    questions = judged_questions(read_labelled(settings.passages), 1, dropped)
    assert dropped == {"without a positive passage": 1}
    encoder: Any = torch.nn.Linear(1, 1)
    [part] = LateContrast(encoder, questions, settings).draw(0)
    assert {*part.passages[1::2]} == {"c", "e", "g"}
    for row, asked in enumerate(part.questions):
        left_out = {part.passages[place] for place in range(6) if not part.counts_BC[row, place]}
        others = {*part.passages[::2]} - {part.passages[2 * row]}
        assert left_out == (others & {"a", "b", "d"} if asked.lower().strip() == "who?" else set())


def test_it_learns_and_its_folder_is_one_of_sentence_transformers(chain, tmp_path):
    rows = [(a, [b], []) for a, b in zip(kinds.texts(8, 1, 6), kinds.texts(8, 2, 6), strict=True)]
    start = colbert(tmp_path, dropout=0.0)
    given: dict[str, Any] = {
        "passages": written(tmp_path / "train.jsonl", rows),
        "hard_negatives": 0,
        "batch_size": 8,
        "warmup": 0,
    }
    made = LateFinetune(start=str(start), lr=1e-2, steps=60, **given).make(tmp_path / "late-encoder")
    lines = [json.loads(line) for line in made.file("metrics.jsonl").read_text().splitlines()]
    assert lines[0]["accuracy"] < 0.8 and lines[-1]["accuracy"] == 1 and lines[-1]["loss"] < lines[0]["loss"] / 4
    series = str(made.path.parent)
    theirs, ours = sentence_transformers.MultiVectorEncoder(str(made.path), device="cpu"), open_late(series)
    for own, other in zip(*(next(token_vectors(ours, TEXTS, "query", 99)), theirs.encode_query(TEXTS)), strict=True):
        np.testing.assert_allclose(own, np.asarray(other), atol=1e-5)
    index = LateIndex(LateEmbed(blocks=chain.blocks, encoder=series).make(tmp_path / "late-index"))
    assert index.encoder.settings == ours.settings
    further = LateFinetune(start=series, steps=1, **given).make(tmp_path / "further")
    assert further.kind == "late-encoder"
    with pytest.raises(InputError, match="at least 2"):
        LateFinetune(start=series, **given | {"passages": written(tmp_path / "one.jsonl", rows[:1])}).make(
            tmp_path / "one"
        )

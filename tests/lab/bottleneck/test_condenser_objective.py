"""Condenser's objective: masks over whole words, the gradient cache, and two processes against one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.lab.bottleneck.condenser_model import contrastive_loss
from realmctl.lab.bottleneck.masked_passages import SpanPairs, WholeWordMasking
from realmctl.models.encoder import masked_loss
from realmctl.models.inputs import Collator
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.data.own_blocks import rows_by_document
from tests.fixtures.blocks import make_blocks
from tests.lab.bottleneck import condenser_process as process

ROOT = Path(__file__).resolve().parents[3]


UNKNOWN = 1


def masking(rate: float = 0.3) -> WholeWordMasking:
    continues = np.zeros(50, dtype=bool)
    continues[30:] = True
    return WholeWordMasking(
        continues_V=continues, mask_id=3, ordinary=np.arange(5, len(continues)), rate=rate, spared=UNKNOWN
    )


def test_words_are_masked_whole_and_targets_are_aligned():
    rng = np.random.default_rng(0)
    tokens = np.array([30, 10, 31, 32, 11, 12, 33, 13, 14, 15, 34, 35, 36, 16, 17, 18, 19, 20, 21, 22])
    words = [{0}, {1, 2, 3}, {4}, {5, 6}, {7}, {8}, {9, 10, 11, 12}, *({place} for place in range(13, 20))]
    kinds: list[str] = []
    for _ in range(400):
        masked = masking().masked(tokens, rng)
        places = set(masked.places.tolist())
        assert all(word <= places or not word & places for word in words)
        assert 4 <= len(places) <= 6 and (masked.targets == tokens[masked.places]).all()
        untouched = [place for place in range(len(tokens)) if place not in places]
        assert (masked.tokens[untouched] == tokens[untouched]).all()
        kinds += [
            "mask" if masked.tokens[p] == 3 else "same" if masked.tokens[p] == tokens[p] else "random" for p in places
        ]
    shares = {kind: kinds.count(kind) / len(kinds) for kind in ("mask", "random", "same")}
    assert shares == pytest.approx({"mask": 0.8, "random": 0.1, "same": 0.1}, abs=0.03)


def test_a_word_longer_than_the_budget_is_never_masked():
    """luyug/Condenser, data.py: a word that would exceed the number to predict is skipped, also when it is drawn first."""
    rng = np.random.default_rng(0)
    assert masking(0.15).masked(np.array([10, 31, 32, 33, 34]), rng).hidden == 0
    chosen = masking(0.15).chosen(
        np.array([10, 31, 32, *range(11, 20)]), 300, rng
    )  # a word of 3 pieces, 9 of one; 2 masks
    assert not chosen[:, :3].any() and (chosen.sum(1) == 2).all() and chosen[:, 3:].any(0).all()


def test_an_unknown_word_is_never_masked():
    """luyug/Condenser, data.py: special tokens, [UNK] among them, are no candidates. The budget counts them all the same."""
    tokens = np.array([UNKNOWN, 10, 11, UNKNOWN, 12, 13, UNKNOWN, 14, 15, 16])
    chosen = masking(0.3).chosen(tokens, 300, np.random.default_rng(0))
    assert not chosen[:, tokens == UNKNOWN].any() and chosen[:, tokens != UNKNOWN].any(0).all()
    assert (chosen.sum(1) == 3).all()
    assert masking(0.9).masked(np.array([UNKNOWN, UNKNOWN]), np.random.default_rng(0)).hidden == 0


def test_a_batch_without_masks_teaches_nothing(chain):
    objective = process.objective(chain.blocks.path, contrastive=False)
    objective.examples.masking = replace(
        objective.examples.masking, continues_V=np.ones(2000, bool)
    )  # one word a block
    [part] = objective.draw(0)
    loss, sums = objective.loss(part)
    assert part.masks_in_batch == 0 and loss is None and sums["head_loss"] == (0, 0)


@pytest.mark.parametrize(
    ("length", "count"), [(1, 1), (3, 1), (9, 1), (11, 2), (12, 2), (16, 2), (18, 3), (40, 6), (44, 7)]
)
def test_the_share_of_masks_is_rounded(length, count):
    """luyug/Condenser, data.py: max(1, int(round(len(input_tokens) * self.mlm_probability)))."""
    chosen = masking(0.15).chosen(np.full(length, 10), 20, np.random.default_rng(0))
    assert (chosen.sum(1) == count).all()


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30), st.sampled_from([0.15, 0.3, 0.5]), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_no_word_that_fits_is_left_out(sizes, rate, seed):
    """A word that does not fit does not end the draw."""
    tokens = np.concatenate([[10] + [31] * (size - 1) for size in sizes])
    first_W, budget = np.cumsum([0, *sizes[:-1]]), max(1, round(len(tokens) * rate))
    for chosen_L in masking(rate).chosen(tokens, 8, np.random.default_rng(seed)):
        taken = int(chosen_L.sum())
        assert taken <= budget
        assert all(taken + size > budget for size, hidden in zip(sizes, chosen_L[first_W], strict=True) if not hidden)


def test_a_window_begins_anywhere_in_its_block(chain):
    examples = process.objective(chain.blocks.path, contrastive=False, length=8).examples
    examples.corpus = SimpleNamespace(tokens=lambda row: np.arange(20, 40))
    rng, starts = np.random.default_rng(0), set()
    for _ in range(300):
        query = examples.window(0, rng)
        text = query.tokens.copy()
        text[query.places] = query.targets
        assert text.tolist() == [*range(text[0], text[0] + 6)]
        starts.add(int(text[0]) - 20)
    assert starts == set(range(15))


def test_the_windows_of_a_pair_are_from_two_blocks(chain):
    examples = process.objective(chain.blocks.path, length=8).examples
    examples.corpus = SimpleNamespace(tokens=lambda row: np.full(20, 20 + row))
    rng = np.random.default_rng(0)
    for _ in range(30):
        first, second = examples.draw_all(0, rng)
        assert len({*first.targets.tolist(), *second.targets.tolist()}) == 2


def test_windows_are_cut_before_they_are_masked(chain):
    """With the targets in the places of the masks, every row is a window of a block."""
    objective = process.objective(chain.blocks.path, contrastive=False, length=8)
    corpus = Corpus(chain.blocks)
    bodies = [corpus.tokens(row).tolist() for row in range(len(corpus))]
    windows = {tuple(body[start : start + 6]) for body in bodies for start in range(max(1, len(body) - 5))}
    assert len(windows) > 2 * len(bodies)
    for part in objective.draw(0):
        packed = part.batch.packed
        assert packed.ids_BL.shape[1] <= 8 and len(part.batch.target_M) == part.masks_in_batch
        packed.ids_BL.view(-1)[part.batch.place_M] = part.batch.target_M
        for ids, length in zip(packed.ids_BL.tolist(), packed.lengths_B.tolist(), strict=True):
            assert tuple(ids[1 : length - 1]) in windows


def test_documents_are_told_apart(chain):
    corpus = Corpus(chain.blocks)
    documents = rows_by_document(corpus)
    assert sorted(np.concatenate(documents).tolist()) == list(range(len(corpus)))
    for rows in documents:
        assert len({corpus.block(int(row)).document for row in rows}) == 1


@pytest.mark.parametrize("chunk", [1, 3, 4])
def test_the_cached_gradient_is_that_of_the_whole_loss_under_the_same_dropout(chain, chunk):
    """Chunks of 8 spans with dropout: their gradients against one backward pass through all chunks at once."""
    cached = process.objective(chain.blocks.path, dropout=0.2, chunk=chunk)
    torch.manual_seed(5)
    found = process.gradients(cached)
    whole = process.objective(chain.blocks.path, dropout=0.2, chunk=chunk)
    torch.manual_seed(5)
    late, loss = [], torch.zeros(())
    parts = process.without_cache(whole, 0)
    for part in parts:
        late_BLH, head_BLH = whole.model(part.batch.packed)
        late.append(late_BLH[:, 0])
        for state in (late_BLH, head_BLH):
            loss = (
                loss
                + masked_loss(whole.model.mlm, state, part.batch.place_M, part.batch.target_M) / part.masks_in_batch
            )
    cls_SH = torch.cat(late)
    loss = loss + contrastive_loss(cls_SH, cls_SH, parts[0].document_C, 0)[0]
    loss.backward()
    assert found["loss"] == pytest.approx(float(loss), abs=1e-5)
    for name, parameter in whole.model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, atol=2e-6, rtol=1e-4, msg=name)


def test_chunks_do_not_change_the_loss_without_dropout(chain):
    whole, chunked = (process.gradients(process.objective(chain.blocks.path, chunk=chunk)) for chunk in (0, 3))
    assert whole["loss"] == pytest.approx(chunked["loss"], abs=1e-5)
    assert whole["metrics"] == pytest.approx(chunked["metrics"], abs=1e-5)
    for name, gradient in whole.items():
        if isinstance(gradient, torch.Tensor):
            torch.testing.assert_close(chunked[name], gradient, atol=2e-6, rtol=1e-4, msg=name)


def test_the_spans_of_a_batch_know_their_documents(chain, tmp_path):
    """Where a pass ends, a document stands in a batch twice. A copy of a document has its number too."""
    made = process.objective(chain.blocks.path, documents=7)
    spans = np.concatenate([made.draw(step)[0].document_C.numpy() for step in range(7)])
    assert spans[0::2].tolist() == spans[1::2].tolist()
    passes = spans[0::2].reshape(-1, 7)
    assert [sorted(each) for each in passes.tolist()] == [[*range(7)]] * 4
    assert any(len({*spans[step * 8 : step * 8 + 8]}) < 4 for step in range(7))
    copied = make_blocks(tmp_path / "blocks", {"A": [["one two."], ["three four."]], "B": [["five six."], ["seven."]]})
    corpus = Corpus(copied)
    pairs = SpanPairs(
        corpus, Collator.of(Tokenizer.load(copied.path)), masking(), [*rows_by_document(corpus)] * 2, length=9
    )
    assert pairs.names.tolist() == [0, 1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["passages", "spans"])
def test_two_processes_are_one_on_the_joined_batch(chain, kind, tmp_path):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.lab.bottleneck.condenser_process", str(chain.blocks.path), kind]
    started = [
        subprocess.Popen(
            [*command, str(tmp_path / f"{rank}")], cwd=ROOT, env={**os.environ, **address, "RANK": str(rank)}
        )
        for rank in range(2)
    ]
    alone = process.summed(process.objective(chain.blocks.path, contrastive=kind == "spans"))
    assert [one.wait(120) for one in started] == [0, 0]
    for rank in range(2):
        found = load_file(tmp_path / f"{rank}")
        assert found.keys() == alone.keys()
        for name, expected in alone.items():
            torch.testing.assert_close(found[name], expected, atol=2e-6, rtol=1e-4, msg=name)


def test_too_few_documents_for_a_contrast(chain):
    with pytest.raises(InputError):
        process.objective(chain.blocks.path, documents=1)

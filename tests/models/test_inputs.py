import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from realmctl.models.inputs import Collator, block_token_mask
from realmctl.spans.query import hide
from realmctl.tokens.frame import Frame

token_ids = st.lists(st.integers(5, 99), max_size=30)
rows = st.lists(st.tuples(token_ids, token_ids), min_size=1, max_size=4)
a_packer = Collator(Frame.bert(1, 2), pad_id=0, mask_id=3)


def test_reader_layout_is_the_official_unit_test_vector() -> None:
    collator = Collator(Frame.bert(10, 11), pad_id=0, mask_id=12)
    packed, start_B = collator.reader([[0, 1], [0, 1]], [[2, 3, 4], [5, 6]], length=10)
    assert packed.ids_BL.tolist() == [[10, 0, 1, 11, 2, 3, 4, 11], [10, 0, 1, 11, 5, 6, 11, 0]]
    assert packed.segments_BL.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 0]]
    assert packed.mask_BL.sum(1).tolist() == [8, 7]
    assert start_B.tolist() == [4, 4]
    mask = block_token_mask(packed, start_B)
    assert mask.int().tolist() == [[0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1, 0, 0]]


def test_reader_cuts_the_block_and_ends_in_a_separator() -> None:
    packed, _ = a_packer.reader([[7] * 4], [[8] * 50], length=20)
    assert packed.ids_BL.tolist() == [[1, 7, 7, 7, 7, 2] + [8] * 13 + [2]]


def test_null_document() -> None:
    packed = a_packer.block([[]], [[]])
    assert packed.ids_BL.tolist() == [[1, 2, 2]]
    assert packed.segments_BL.tolist() == [[0, 0, 1]]
    assert packed.mask_BL.all()


def test_title_is_kept_before_the_body() -> None:
    packed = a_packer.block([[7] * 300], [[8] * 300], length=288)
    assert packed.ids_BL.shape == (1, 288)
    assert packed.ids_BL[0].tolist() == [1] + [7] * 285 + [2, 2]


def test_joint_puts_the_query_first_at_its_own_positions() -> None:
    query, body = np.array([7] * 100, np.uint16), np.array([8] * 400, np.uint16)
    joint = a_packer.joint([query], [body], query_length=96, block_length=288)
    assert joint.ids_BL[0].tolist() == [1] + [7] * 94 + [2] + [8] * 286 + [2]
    alone = a_packer.query([query], length=96)
    assert torch.equal(alone.ids_BL[0], joint.ids_BL[0, :96])


@given(rows)
def test_rows_are_padded_to_the_longest_and_hold_all_tokens(pairs: list[tuple[list[int], list[int]]]) -> None:
    packed = a_packer.block([title for title, _ in pairs], [body for _, body in pairs])
    for row, (title, body) in enumerate(pairs):
        real = [1, *title, 2, *body, 2]
        padding = packed.ids_BL.shape[1] - len(real)
        assert packed.ids_BL[row].tolist() == real + [0] * padding
        assert packed.mask_BL[row].tolist() == [True] * len(real) + [False] * padding
        first = len(title) + 2
        assert packed.segments_BL[row].tolist() == [0] * first + [1] * (len(real) - first) + [0] * padding
    assert packed.ids_BL.shape[1] == max(3 + len(title) + len(body) for title, body in pairs)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_unsigned_ids_do_not_wrap(kind: type) -> None:
    assert a_packer.query([np.array([60_000], kind)], 64).ids_BL.tolist() == [[1, 60_000, 2]]


@pytest.mark.parametrize("frame", [Frame.bert(1, 2), Frame(before=(1,), between=(2, 2), after=(2,), second_segment=0)])
def test_hidden_wordpieces_are_asked_for_where_they_stand(frame: Frame) -> None:
    """Alone and beside a text: at each place stands the mask, and its target is the wordpiece that was there."""
    collator = Collator(frame, pad_id=0, mask_id=3)
    whole, text = np.array([10, 11, 12]), np.array([20, 21, 22, 23])
    for beside in (None, hide(text, [0, 3], 3)):
        queries = [hide(whole, [0, 2], 3, beside=beside), hide(whole[:1], [0], 3, beside=beside)]
        batch = collator.queries(queries, 20, 20)
        places, targets = batch.place_M.tolist(), batch.target_M.tolist()
        assert all(batch.packed.ids_BL.flatten()[place] == 3 for place in places)
        behind = [20, 23] if beside else []
        assert targets == [10, 12, *behind, 10, *behind] and len(set(places)) == len(targets)
        assert (batch.packed.ids_BL == 3).sum() == len(places)

"""Forms of blocks and prefixes, token by token, and descriptions that are refused."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.artifacts.typed_json import object_of
from realmctl.models.inputs import Collator
from realmctl.models.towers.layout import InputLayout, Prefix
from realmctl.tokens.frame import Frame

COLLATOR = Collator(Frame.bert(101, 102), pad_id=0, mask_id=103)
TOKENS = st.lists(st.integers(1, 99), max_size=6)
FORMS = st.sampled_from(["pair", "separated", "joined"])


@settings(max_examples=40, deadline=None)
@given(FORMS, TOKENS, TOKENS, TOKENS, st.integers(8, 24))
def test_a_block_is_its_special_tokens_prefix_title_and_body(form, prefix, title, body, length):
    layout = InputLayout(form, block_prefix=Prefix("x", tuple(prefix)))
    packed = layout.block(COLLATOR, [title], [body], length)
    head = [*prefix, *title]
    if form == "joined":
        expected, segments = [101, *[*head, *body][: length - 2], 102], []
    else:
        head = head[: length - 3]
        end = [*body[: length - 3 - len(head)], 102]
        expected = [101, *head, 102, *end]
        segments = [1] * len(end) if form == "pair" else []
    assert packed.ids_BL.tolist() == [expected] and packed.mask_BL.all()
    assert packed.segments_BL.tolist() == [[0] * (len(expected) - len(segments)) + segments]
    whole = layout.extra_tokens(COLLATOR.frame) + len(title) + len(body)
    assert len(expected) == min(whole, length)  # so that `extra_tokens` says which blocks are cut


@settings(max_examples=40, deadline=None)
@given(TOKENS, TOKENS, st.integers(4, 20))
def test_a_query_follows_its_prefix(prefix, tokens, length):
    packed = InputLayout(query_prefix=Prefix("x", tuple(prefix))).query(COLLATOR, [tokens], length)
    assert packed.ids_BL.tolist() == [[101, *[*prefix, *tokens][: length - 2], 102]]


def test_the_default_is_what_retrievers_always_read():
    for title, body in (([], []), ([5, 6], [7, 8, 9]), ([5] * 30, [7])):
        ours, before = InputLayout().block(COLLATOR, [title], [body], 16), COLLATOR.block([title], [body], 16)
        assert ours.ids_BL.equal(before.ids_BL) and ours.segments_BL.equal(before.segments_BL)
    assert InputLayout().extra_tokens(COLLATOR.frame) == 3


def test_a_description_is_read_back():
    layout = InputLayout("joined", Prefix("ask: ", (5, 6)), Prefix("told: ", (7,)))
    assert object_of(InputLayout, json.loads(json.dumps(dataclasses.asdict(layout)))) == layout


@pytest.mark.parametrize(
    "change",
    [
        {"blocks": "wrong"},
        {"blocks": ["pair"]},
        {"query_prefix": None},
        {"query_prefix": {"text": 1, "ids": []}},
        {"block_prefix": {"text": "", "ids": [-1]}},
        {"block_prefix": {"text": "", "ids": [1.0]}},
        {"block_prefix": {"text": "", "ids": [1] * 129}},
        {"block_prefix": {"text": "", "ids": "12"}},
    ],
)
def test_other_descriptions_are_refused(change):
    described = json.loads(json.dumps(dataclasses.asdict(InputLayout())))
    with pytest.raises(ValueError):
        object_of(InputLayout, {**described, **change})
    for part in ({}, {"blocks": "pair"}, {**described, "other": 1}):
        with pytest.raises(ValueError):
            object_of(InputLayout, part)

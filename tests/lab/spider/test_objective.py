"""Recurring span retrieval: pairs, hard negatives, windows, the loss, and what is refused."""

from __future__ import annotations

import json
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError
from realmctl.lab.spider.objective import DRAWS, SHORTEST_WINDOW, SpiderObjective
from realmctl.lab.spider.settings import SpiderSettings
from realmctl.lab.spider.spider_init import SpiderInit
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import in_batch
from realmctl.training.data.own_blocks import rows_by_document
from stages.chunk import Chunk
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import metrics_of
from tests.fixtures.recurring import RARE, documents_that_share_a_span
from tests.fixtures.retriever import fresh_retriever


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return make_blocks(tmp_path_factory.mktemp("spider"), documents_that_share_a_span())


def objective_of(blocks, *, batch_size=6, chunk=0, dropout=0.0, seed=0, **settings):
    values = {"batch_size": batch_size, "seed": seed, "micro_batch": chunk}
    settings = SpiderSettings(blocks=blocks, encoder=None, **{**values, **settings})
    retriever = fresh_retriever(blocks, dropout=dropout).train()
    return SpiderObjective(retriever, Corpus(blocks), Collator.of(Tokenizer.load(blocks.path)), settings)


def examples_of(objective, steps=30):
    return [example for step in range(steps) for chunk in objective.draw(step) for example in chunk.examples]


def place_of(part, whole):
    """Where a run of wordpieces stands in a longer one, or None."""
    part, whole = list(part), list(whole)
    return next((at for at in range(len(whole) - len(part) + 1) if whole[at : at + len(part)] == part), None)


def test_a_pair_shares_the_span_and_the_hard_negative_lacks_it(blocks):
    objective = objective_of(blocks)
    tokenizer, corpus = Tokenizer.load(blocks.path).tokenizer, objective.corpus
    seen = set()
    for example in examples_of(objective):
        rows = [
            next(
                row
                for row in range(len(corpus))
                if corpus.tokens(row).tolist() == body.tolist() and corpus.title(row).tolist() == title.tolist()
            )
            for title, body in example.blocks
        ]
        positive, negative = rows
        page = corpus.block(positive).document
        assert page == corpus.block(negative).document
        span = tokenizer.encode(RARE[int(page)], add_special_tokens=False).ids
        assert place_of(span, corpus.tokens(positive)) is not None
        assert place_of(span, corpus.tokens(negative)) is None
        pair = [row for row in range(4 * int(page), 4 * int(page) + 4) if row % 4 in (0, 2)]
        [source] = set(pair) - {positive}
        if example.marks["kept"]:
            assert place_of(example.query, corpus.tokens(source)) is not None
        else:
            assert place_of(span, example.query) is None
        seen.add((int(page), positive % 4, negative % 4, example.marks["kept"]))
    assert len({page for page, *_ in seen}) == 9
    assert {place for _, place, *_ in seen} == {0, 2} and {place for _, _, place, _ in seen} == {1, 3}


def test_a_document_is_in_a_batch_once_and_a_pass_has_all(blocks):
    objective = objective_of(blocks, batch_size=99)
    titles = [example.blocks[0][0].tolist() for example in objective.examples(0)]
    assert len(titles) == 9 == len({tuple(title) for title in titles})


def test_the_span_is_kept_as_often_as_in_the_paper(blocks):
    kept = [example.marks["kept"] for example in examples_of(objective_of(blocks, batch_size=9), 80)]
    assert np.mean(kept) == pytest.approx(0.5, abs=0.05)


def windows_of_the_public_code(body, start, stop, length, keep):
    """Every window of `length` wordpieces that oriram/spider, query_transformations.py, may draw."""
    for begin in range(max(0, start - length), min(stop, len(body) - length - (stop - start)) + 1):
        before = list(body[begin:start])
        yield list(body[begin : begin + length]) if keep else before + list(body[stop : stop + length - len(before)])


@pytest.mark.parametrize(("start", "stop"), [(10, 13), (0, 2), (28, 30), (1, 26), (17, 18)])
@pytest.mark.parametrize("keep", [False, True])
def test_each_window_of_the_public_code_is_as_likely(blocks, start, stop, keep):
    objective = objective_of(blocks, window=8)
    body, drawn = np.arange(100, 130), {}
    for draws in np.stack(
        np.meshgrid((np.arange(4) + 0.5) / 4, (np.arange(360) + 0.5) / 360, [0.0 if keep else 0.9]), -1
    ).reshape(-1, 3):
        query, kept = objective._query(body, start, stop, draws)
        assert kept == keep
        drawn.setdefault(SHORTEST_WINDOW + int(draws[0] * 4), []).append(query.tolist())
    for length, queries in drawn.items():
        room = min(length, len(body) - (stop - start))  # the public code fails where a block is shorter
        expected = list(windows_of_the_public_code(body, start, stop, room, keep))
        assert len(queries) == 360 and all(len(query) == room for query in queries)
        for window in expected:
            share = queries.count(window) / len(queries) / expected.count(window)
            assert share == pytest.approx(1 / len(expected), abs=2 / 360)


def test_a_window_may_cut_the_span_or_stand_behind_it(blocks):
    """The shares that the public code has: with two wordpieces in the middle of a block 78 % of the kept spans are whole."""
    objective = objective_of(blocks)
    body, rng = np.arange(200), np.random.default_rng(0)
    kept = rng.random((3000, 3)) * (1, 1, 0)
    queries = [objective._query(body, 90, 92, draws)[0].tolist() for draws in kept]
    whole = np.mean([place_of([90, 91], query) is not None for query in queries])
    after = np.mean([query[0] >= 90 for query in queries])
    lengths = np.arange(SHORTEST_WINDOW, 31)
    assert whole == pytest.approx(np.mean((lengths - 1) / (lengths + 3)), abs=0.03)
    assert after == pytest.approx(np.mean(3 / (lengths + 3)), abs=0.03)


def test_a_block_that_is_only_the_span_is_the_query(blocks):
    for draw in (0.0, 0.9):
        query, kept = objective_of(blocks)._query(np.arange(9), 0, 9, np.array([0.5, 0.5, draw]))
        assert kept and query.tolist() == list(range(9))


def test_the_block_of_the_query_is_drawn_among_blocks_and_not_among_places(blocks):
    """One block has the span eight times, and it is the query as often as the other."""
    objective = objective_of(blocks)
    objective.spans = lambda number: [(*((0, at, at + 1) for at in range(8)), (2, 1, 2))]
    objective.corpus = SimpleNamespace(
        tokens=lambda row: np.arange(20) + 100 * row,
        title=lambda row: np.array([row], np.int64),
        uid=objective.corpus.uid,
    )
    rng = np.random.default_rng(0)
    found = [objective._example(0, draws) for draws in rng.random((2000, DRAWS))]
    positives = [int(example.blocks[0][0][0]) for example in found]
    assert np.mean([row == objective.documents[0][2] for row in positives]) == pytest.approx(0.5, abs=0.04)
    assert {int(example.blocks[1][0][0]) for example in found} == {int(row) for row in objective.documents[0][[1, 3]]}


def test_the_short_spans_of_the_public_code(tmp_path):
    """Its loop stops at nine words and before the last word of a passage (oriram/spider, preprocess_corpus.py)."""
    ten = "kilo lima mike november oscar papa quebec romeo sierra tango"
    documents = {
        f"Page {n}": [[f"{ten} x{n} one."], [f"{ten} y{n} two."], ["Ended by zulu"], ["And zulu"], ["nothing."]]
        for n in range(2)
    }
    made, texts = make_blocks(tmp_path, documents), {}
    words = Tokenizer.load(made.path)
    for official in ((), ("short-spans",)):
        objective = objective_of(made, official=official)
        rows, tokens = objective.documents[0], objective.corpus.tokens
        texts[official] = {
            words.text_of(tokens(int(rows[block]))[start:stop])
            for places in objective.spans(0)
            for block, start, stop in places
        }
    nine = [" ".join(ten.split()[at : at + 9]) for at in (0, 1)]
    assert texts[()] == {ten, "zulu"} and texts[("short-spans",)] == set(nine)


def test_the_loss_is_a_softmax_over_all_blocks_of_the_batch(blocks):
    objective = objective_of(blocks)
    [chunk] = objective.draw(0)
    loss, sums = objective.loss(chunk)
    embed, collator = objective.retriever, objective.collator
    total, right = torch.zeros(()), 0
    choices = [
        embed.embed_blocks(collator.block([title], [body], embed.block_length))[0]
        for example in chunk.examples
        for title, body in example.blocks
    ]
    for number, example in enumerate(chunk.examples):
        query_D = embed.embed_queries(collator.query([example.query], embed.query_length))[0]
        score = torch.stack([query_D @ block_D for block_D in choices])
        total += torch.log(score.exp().sum()) - score[2 * number]
        right += int(score.argmax()) == 2 * number
    assert len(choices) == 12 and loss.item() == pytest.approx(total.item() / 6, rel=1e-5)
    assert sums["accuracy"] == (right, 6)


def test_the_targets_of_a_process_are_its_own_blocks_among_those_of_all(blocks, monkeypatch):
    """The second of two processes: the blocks and hard negatives of the first stand before its own."""
    objective = objective_of(blocks)
    objective.own = slice(3, 6)
    query_BD, block_XD = torch.eye(8)[:3], torch.zeros(6, 8)
    block_XD[::2] = 9 * query_BD
    monkeypatch.setattr(in_batch, "all_gather", lambda own_XD: torch.cat([torch.zeros(6, 8), own_XD]))
    loss, accuracy = objective._contrast(
        objective.examples(0), torch.arange(12), None, query_BD, block_XD, block_XD[:0]
    )
    assert accuracy == 1 and loss.item() == pytest.approx(np.log(1 + 11 * np.exp(-9)), abs=1e-5)


@pytest.mark.parametrize("chunk", [1, 4])
def test_the_cached_gradient_is_that_of_the_whole_loss_under_the_same_dropout(blocks, chunk):
    """Chunks of 6 examples with dropout: their gradients against one backward pass through all chunks at once."""
    cached = objective_of(blocks, dropout=0.2, chunk=chunk)
    torch.manual_seed(5)
    found = 0.0
    for part in cached.draw(0):
        loss, _ = cached.loss(part)
        loss.backward()
        found += loss.item()
    whole = objective_of(blocks, dropout=0.2)
    torch.manual_seed(5)
    examples = whole.examples(0)
    starts = range(0, 6, chunk)
    names = whole._names(examples)
    embedded = [
        whole._embed(whole.retriever, whole._chunk(examples[start : start + chunk], names, False)) for start in starts
    ]
    loss, _ = whole._contrast(examples, names, None, *(torch.cat(parts) for parts in zip(*embedded, strict=True)))
    loss.backward()
    assert found == pytest.approx(loss.item(), abs=1e-5)
    for (name, mine), theirs in zip(cached.retriever.named_parameters(), whole.retriever.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, atol=2e-6, rtol=1e-4, msg=name)


POOR = {
    "one block each": {f"Page {n}": [[f"{name} and {name}."]] for n, name in enumerate(RARE)},
    "two blocks each": {f"Page {n}": [[name], [name]] for n, name in enumerate(RARE)},
    "no third block without the span": {f"Page {n}": [[name], [name], [name]] for n, name in enumerate(RARE)},
    "nothing recurs": {
        f"Page {n}": [[f"{name} {place}"] for place in "abcd"[: n % 4 + 1]] for n, name in enumerate("efgh")
    },
    "no words": {f"Page {n}": [["..."], ["..."], ["?"]] for n in range(5)},
    "only one document": documents_that_share_a_span(1),
}


@pytest.mark.parametrize("what", POOR)
def test_a_corpus_without_recurring_spans_is_refused(tmp_path, what):
    poor = make_blocks(tmp_path / "blocks", POOR[what])
    stage = SpiderInit(blocks=poor, bert="scratch:L1-H16", steps=1, batch_size=4, projection=8)
    with pytest.raises(InputError, match=r"[01] documents.* 2") as error:
        stage.make(tmp_path / "retriever")
    assert "\n" not in str(error.value) and not list((tmp_path / "retriever").glob("v*"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 4),
        ("window", 10**9),
        ("micro_batch", -1),
        ("batch_size", 1),
    ],
)
def test_settings_that_cannot_work_are_refused(blocks, tmp_path, name, value):
    with pytest.raises(ConfigError, match="--" + name.replace("_", "-")):
        SpiderInit(blocks=blocks, bert="scratch:L1-H16", steps=1, **{name: value}).make(tmp_path / "retriever")


def test_the_stage_makes_a_retriever_and_learns(blocks, tmp_path):
    made = SpiderInit(
        blocks=blocks,
        bert="scratch:L1-H32",
        steps=60,
        batch_size=9,
        projection=16,
        query_length=40,
        pooling="cls",
        lr=3e-3,
        warmup=4,
        optimizer="adamw",
        micro_batch=5,
    ).make(tmp_path / "retriever")
    retriever = Retriever.load(made.path)
    assert (retriever.towers, retriever.projection, retriever.pooling) == ("shared", 16, "cls")
    lines = metrics_of(made)
    assert set(lines[0]) == {"step", "loss", "accuracy", "kept", "lr", "grad_norm"}
    assert np.mean([line["loss"] for line in lines[-8:]]) < 0.8 * np.mean([line["loss"] for line in lines[:8]])


def test_passages_of_one_title_or_source_are_a_document(tmp_path):
    """Each passage of the corpus is a document of its own; joined, the spans are those of whole documents."""
    path, pages = tmp_path / "passages.jsonl", documents_that_share_a_span()
    rows = [
        {"id": f"{number}-page#{k}", "title": title, "text": " ".join(sentences)}
        for number, (title, blocks) in enumerate(pages.items())
        for k, sentences in enumerate(blocks)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = Chunk(corpus=(path,), tokenizer="train:300", keep_passages=True, workers=1).make(tmp_path / "blocks")
    with pytest.raises(InputError, match="--group-by"):
        objective_of(made)
    by_title, by_source = (objective_of(made, group_by=each) for each in ("title", "source"))
    assert [rows.tolist() for rows in by_title.documents] == [[4 * n + k for k in range(4)] for n in range(len(pages))]
    assert [*map(list, by_source.documents)] == [*map(list, by_title.documents)]
    assert len(by_title.usable) == len(pages) and examples_of(by_title, steps=2)


def test_blocks_without_a_title_are_not_joined_by_it():
    named = namedtuple("named", "document title")
    corpus = [named("a-1", ""), named("a-2", "T"), named("b.1", ""), named("12", "T"), named("a-3", "")]
    grouped = {by: [rows.tolist() for rows in rows_by_document(corpus, by)] for by in ("document", "title", "source")}
    assert grouped["document"] == [[0], [1], [2], [3], [4]]
    assert grouped["title"] == [[0], [1, 3], [2], [4]] and grouped["source"] == [[0, 1, 4], [2], [3]]

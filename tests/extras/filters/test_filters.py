"""Filters: the grammar and its errors, and the k best of those that pass by every method and index, against brute force."""

from __future__ import annotations

import json
import operator
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.corpus.columns import OF_BLOCKS
from realmctl.errors import ConfigError
from realmctl.extras import filters
from realmctl.extras.filters import Filter
from realmctl.index.names import INDEX_TYPES
from realmctl.retrieval.search.block_search import BlockSearch, SearchInputs
from realmctl.retrieval.search.filters import filtered
from realmctl.retrieval.search.methods import fuse, start_method
from realmctl.retrieval.search.profile import SearchProfile
from realmctl.retrieval.search.text_search import TextSearch
from stages.chunk import Chunk
from tests.fixtures.chain import documents, make_index
from tests.fixtures.retriever import make_retriever

TYPES = {**OF_BLOCKS, "date": "date", "source": "text", "year": "number", "tags": "list", "odd name": "text"}
KINDS = {"exact": {}, "hnsw": {}, "int8": {}, "faiss": {"factory": "Flat"}, "shards": {"type": "hnsw", "shards": 2}}
INDEXES = [name for name in KINDS if name in ("shards", *INDEX_TYPES.names())]
"""Those of rooms too, where these are there."""
SOURCES, TAGS = ["handbook", "wiki", 'a "b"'], ["sea", "ship", "7"]


def rows():
    """Documents with fields, of which some are missing."""
    draw = random.Random(0)
    for number, (title, blocks) in enumerate(documents().items()):
        text = " ".join(sentence.replace("[[", "").replace("]]", "") for block in blocks for sentence in block)
        row = {
            "date": f"20{draw.randint(18, 25)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
            "source": draw.choice(SOURCES),
            "year": draw.randint(1990, 1999) + draw.choice([0, 0.5]),
            "tags": draw.sample(TAGS, draw.randint(0, 3)),
            "odd name": draw.choice("xy"),
        }
        kept = {name: value for name, value in row.items() if draw.random() < 0.8}
        yield {"id": f"d{number}", "title": title, "text": text, **kept}


@pytest.fixture(scope="module")
def made(tmp_path_factory, one_thread):
    """Blocks with fields, a retriever, and an index of each type, in a workspace."""
    folder = tmp_path_factory.mktemp("filters")
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    names = "date,source,year,tags,odd name"
    blocks = Chunk(
        corpus=(folder / "c.jsonl",), tokenizer="train:300", max_wordpieces=32, workers=1, keep_fields=names
    ).make(folder / "blocks")
    retriever = make_retriever(folder / "retriever", blocks)
    indexes = {
        name: make_index(folder / name, blocks, retriever, **{"type": name, "min_recall": 0.1, **settings})
        for name, settings in KINDS.items()
        if name in INDEXES
    }
    return blocks, retriever, indexes


@pytest.fixture(scope="module")
def corpus(made):
    from realmctl.corpus.corpus import Corpus

    return Corpus(made[0])


OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NAMES = st.sampled_from(["date", "source", "year", "tags", "odd name", "document"])


@st.composite
def comparisons(draw):
    """A comparison as text, and what it says of the fields of a document."""
    name, how = draw(NAMES), draw(st.sampled_from([*OPERATORS]))
    values = {
        "date": st.sampled_from(["2020", "2021-06", "2022-03-15", "2018", "2025-12"]),
        "source": st.sampled_from(SOURCES),
        "year": st.sampled_from([1990, 1994.5, 1997]),
        "tags": st.sampled_from(TAGS),
        "odd name": st.sampled_from(["x", "y"]),
        "document": st.sampled_from(["d1", "d7", "d30"]),
    }[name]
    value = draw(values)
    written = str(value) if name in ("date", "year") else json.dumps(value)
    field = f"`{name}`" if " " in name else draw(st.sampled_from([name, name.upper()]))
    if name == "tags":
        if draw(st.booleans()):
            return f"{field} contains {written}", lambda fields: value in fields.get("tags", [])
        others = [value, draw(values)]
        return f"{field} in {json.dumps(others)}", lambda fields: any(each in fields.get("tags", []) for each in others)
    compare = OPERATORS[how]

    def passes(fields):
        if name not in fields:
            return how == "!="
        own = fields[name][: len(value)] if name == "date" else fields[name]
        return compare(own, value)

    return f"{field}{draw(st.sampled_from(['', ' ']))}{how} {written}", passes


def _joined(inner):
    def joined(parts, word):
        texts, tests = [text for text, _ in parts], [test for _, test in parts]
        every = all if word == "and" else any
        return f"({f' {word} '.join(texts)})", lambda fields: every(test(fields) for test in tests)

    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(joined, some, st.sampled_from(["and", "or"])),
        inner.map(lambda part: (f"not {part[0]}", lambda fields: not part[1](fields))),
    )


@given(st.recursive(comparisons(), _joined, max_leaves=6))
def test_the_blocks_that_pass_are_those_of_a_plain_evaluation(corpus, made_filter):
    text, passes = made_filter
    expected = [row for row, block in enumerate(corpus) if passes({"document": block.document, **block.fields})]
    assert filtered(text, corpus).tolist() == expected


def test_and_binds_more_tightly_than_or_and_not_more_than_both(corpus):
    def passing(text):
        return filtered(text, corpus).tolist()

    a, b, c = 'source == "wiki"', "year > 1995", "date < 2021"
    assert passing(f"{a} or {b} and {c}") == passing(f"{a} or ({b} and {c})") != passing(f"({a} or {b}) and {c}")
    assert passing(f"not {a} and {b}") == passing(f"(not {a}) and {b}") != passing(f"not ({a} and {b})")
    assert passing('source not in ("wiki")') == passing(f"not {a}") == passing('source != "wiki"')
    assert filtered([a, b], corpus).tolist() == passing(f"({a}) and ({b})")
    assert filtered(["year > 1995", "year < 1990"], corpus).tolist() == []


def test_one_of_several_dates_as_far_as_each_is_written(corpus):
    expected = [
        row
        for row, block in enumerate(corpus)
        if any(block.fields.get("date", "").startswith(each) for each in ("2020", "2022-0", "2024-01"))
    ]
    months = ", ".join(f"2022-0{month}" for month in range(1, 10))
    assert expected and filtered(f"date in [2020, {months}, '2024-01']", corpus).tolist() == expected
    others = sorted({*range(len(corpus))} - {*expected})
    assert filtered(f"date not in (2020, {months}, 2024-01)", corpus).tolist() == others


def test_what_every_block_has_can_be_named(corpus):
    assert {corpus[row].document for row in filtered('path == "d3"', corpus)} == {"d3"}
    title = corpus[0].title
    assert {corpus[row].title for row in filtered(f'title contains "{title[1:]}"', corpus)} == {title}
    assert filtered("page >= 1", corpus).tolist() == [] and filtered('section == ""', corpus).tolist() == [
        *range(len(corpus))
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "at character 1, a field, not or \\( is expected, and there is the end"),
        (
            "sorce == 'x'",
            "names 'sorce', which the blocks do not have. They have date \\(date\\), document .*source \\(text\\)",
        ),
        ("year == 'x'", "compares year, a number, with 'x', a text, at character 9"),
        ("source == 3", "compares source, a text, with '3', a number, at character 11. Write it in quotes: '3'"),
        ("source == 2024-05", "a text, with '2024-05', a date"),
        ("date >= 'May'", "compares date, a date, with 'May', a text"),
        ("date >= 20", "compares date, a date, with '20', a number"),
        ("year == 2024-05", "a number, with '2024-05', a date"),
        ("year contains 3", "which is a number"),
        ("tags == 'sea'", "compares tags, a list, by ==. Write tags contains 'sea'"),
        ("year = 3", "at character 6, '=' is not understood. Two equal signs compare"),
        ("year ==", "at character 8, a number, a date, or a text in quotes is expected, and there is the end"),
        ("year == 3 year == 4", "at character 11, and, or, or the end is expected, and there is 'year'"),
        ("(year == 3", "at character 11, and, or, or \\) is expected"),
        ("year in 3", "at character 9, \\[ and values with commas"),
        ("year in [3 4]", "at character 12, , or \\] is expected"),
        ("year in []", "at character 10, a number"),
        ("year not == 3", "at character 10, in is expected"),
        ("year ~ 3", "at character 6, '~' is not understood"),
        ("source == 'x", "at character 11"),
        ("source == wiki", "a text in quotes is expected, and there is 'wiki'"),
        ("__import__('os')", "names '__import__'"),
        ("year == 3; 1", "';' is not understood"),
    ],
)
def test_what_is_no_filter_is_told_with_its_place(text, told):
    with pytest.raises(ConfigError, match=told):
        Filter(text, TYPES)


def test_hostile_filters_are_refused_at_once():
    deep = "(" * 1500 + "year == 1" + ")" * 1500
    for text, told in (
        (deep, "within each other"),
        ("not " * 900 + "year == 1", "within each other"),
        ("year == 1 or " * 300 + "year == 1", "more than 200 values"),
        (f"year in [{','.join('1' * 900)}]", "more than 200 values"),
        ("x" * 5000, "5,000 characters"),
        ('"' + "\\" * 3000, "not understood"),
    ):
        with pytest.raises(ConfigError, match=told):
            Filter(text, TYPES)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sorce == 'wiki'", "names 'sorce', which the blocks do not have. They have date (date)"),
        ("source > 3", "compares source, a text, with '3', a number"),
        ("year == 'x'", "compares year, a number, with 'x', a text"),
    ],
)
def test_search_ends_with_the_reason(made, realmctl, text, told):
    blocks, *_ = made
    code, out, err = realmctl("search", "Ada", "--method", "bm25", "--blocks", blocks.path, "--filter", text)
    assert (code, out) == (2, "") and told in err


QUERIES = ["Where was Ada Lorn born?", "Ben Mott worked for", "The family was poor"]
FILTER = 'date >= 2021 and not (source == "wiki" or tags contains "7")'


def brute(search: BlockSearch, tokens, among, k):
    """The k best by ranking every block and dropping those that do not pass."""
    found = []
    for scores, own in search.ranked(tokens, len(search.corpus)):
        kept = np.isin(own, among)
        found.append((scores[kept][:k], own[kept][:k]))
    return found


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    ("method", "index"), [("bm25", "exact"), *((method, index) for method in ("dense", "hybrid") for index in INDEXES)]
)
def test_the_best_of_those_that_pass_whatever_the_index(made, method, few, index):
    blocks, retriever, indexes = made
    inputs = SearchInputs(
        blocks=blocks, retriever=retriever, index=indexes[index], precision="fp32", few=few, device="cpu"
    )
    search = start_method(SearchProfile.of(blocks, method, depth=None if method != "hybrid" else 5), inputs)
    tokens, among = search.tokens(QUERIES), filtered(FILTER, search.corpus)
    assert 5 < len(among) < len(search.corpus) / 2
    for k in (1, 4, 1000):
        found = search.ranked(tokens, k, among)
        if method == "hybrid":
            width = min(max(k, 5), len(among))
            both = zip(*(brute(each, tokens, among, width) for each in search.searchers), strict=True)
            expected = [fuse(own, width, search.weights, search.fusion, search.searchers[0].unit_score) for own in both]
        else:
            expected = brute(search, tokens, among, k)
        for (scores, own), (its_scores, its_rows) in zip(found, expected, strict=True):
            assert own.tolist() == its_rows.tolist()
            np.testing.assert_allclose(scores, its_scores, rtol=2e-5, atol=1e-6)
    every = np.arange(len(search.corpus))
    for (_, own), (_, whole) in zip(search.ranked(tokens, 7, every), search.ranked(tokens, 7), strict=True):
        assert own.tolist() == whole.tolist()
    assert [len(own) for _, own in search.ranked(tokens, 3, every[:0])] == [0, 0, 0]


def test_copies_do_not_take_the_places_of_others_that_pass(tmp_path, monkeypatch):
    lines = [{"id": f"{n}", "text": "The lamp is old.", "year": n} for n in range(30)]
    lines += [{"id": "other", "text": "The lamp is new and much larger.", "year": 50}]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    blocks = Chunk(corpus=(tmp_path / "c.jsonl",), tokenizer="train:200", workers=1, keep_fields="year").make(
        tmp_path / "b"
    )
    search = start_method(SearchProfile.of(blocks, "bm25"), SearchInputs(blocks=blocks))
    first, second = TextSearch(search, search.corpus).search("old lamp", 2, filter="year >= 5")
    assert first.block.id == "5-0" and len(first.copies) in range(1, 25) and second.block.document == "other"
    assert TextSearch(search, search.corpus).search("old lamp", 2, filter="year > 99") == []
    ranked = search.ranked
    for drawn in range(8):  # an index by approximation may find any of the copies
        monkeypatch.setattr(
            search, "ranked", lambda of, k, among, n=drawn: [(s[n:], r[n:]) for s, r in ranked(of, 8, among)]
        )
        [hit] = TextSearch(search, search.corpus).search("old lamp", 1, filter="year >= 5")
        assert hit.block.id == "5-0" and "5-0" not in {copy.id for copy in hit.copies}


def test_a_block_without_the_field_passes_only_not(corpus):
    lacking = {row for row, block in enumerate(corpus) if "year" not in block.fields}
    assert lacking and lacking <= {*filtered("year != 1990", corpus)} and lacking <= {*filtered("not year > 0", corpus)}
    assert not lacking & {*filtered("year > 0 or year <= 0 or year in [1]", corpus)}


def test_limits(monkeypatch):
    monkeypatch.setattr(filters, "MOST_VALUES", 2)
    Filter("year in [1, 2]", TYPES)
    with pytest.raises(ConfigError, match="more than 2 values"):
        Filter("year in [1, 2, 3]", TYPES)


@pytest.mark.parametrize("texts", ["source", "year"])
def test_texts_and_numbers_pass_in_their_order_and_text_by_a_part(corpus, texts):
    """Many different values, each of which is looked up once."""
    held = [block.fields.get(texts) for block in corpus]
    bound = {"source": "handbook", "year": 1994.5}[texts]
    for how, compare in OPERATORS.items():
        wanted = [row for row, value in enumerate(held) if (how == "!=" if value is None else compare(value, bound))]
        assert filtered(f"{texts} {how} {json.dumps(bound)}", corpus).tolist() == wanted
    if texts == "source":
        wanted = [row for row, value in enumerate(held) if value is not None and "k" in value]
        assert filtered('source contains "k"', corpus).tolist() == wanted


def test_a_filter_that_would_read_too_much_is_refused_and_one_that_looks_up_is_not(corpus, monkeypatch):
    different = len({block.document for block in corpus})
    monkeypatch.setattr(filters, "MOST_READ", 3 * different)
    parts = [f'document contains "{letter}"' for letter in "abcd"]
    assert filtered(" or ".join(parts[:3]), corpus).tolist() == []
    with pytest.raises(ConfigError, match=rf"4 times the {different} different ones of document, and at most"):
        filtered(" or ".join(parts), corpus)
    assert len(filtered(" or ".join(f'document == "d{number}"' for number in range(150)), corpus)) == len(corpus)


@pytest.mark.parametrize("method", ["dense", "bm25", "hybrid"])
def test_a_batch_is_filtered_too(made, corpus, method):
    blocks, retriever, indexes = made
    inputs = SearchInputs(blocks=blocks, retriever=retriever, index=indexes["exact"], precision="fp32", device="cpu")
    search = TextSearch(start_method(SearchProfile.of(blocks, method), inputs), corpus)
    questions, text = ["Where was Ada Lorn born?", "Brightwell", "zzz"], "year > 1995"
    scores, rows = search.search_batch(questions, k=4, filter=text)
    assert scores.shape == rows.shape == (3, 4) and scores.dtype == np.float32 and rows.dtype == np.int64
    passing = {*filtered(text, corpus).tolist()}
    for question, own_scores, own in zip(questions, scores, rows, strict=True):
        [(wanted_scores, wanted)] = search.searcher.ranked(
            search.searcher.tokens([question]), 4, filtered(text, corpus)
        )
        wanted_scores, wanted = wanted_scores[:4], wanted[:4]
        count = len(wanted)
        assert (
            own[:count].tolist() == wanted.tolist() and (own[count:] == -1).all() and {*own[:count].tolist()} <= passing
        )
        assert np.allclose(own_scores[:count], wanted_scores) and (own_scores[count:] == -np.inf).all()
    assert search.search_batch(questions, k=4, filter="year > 3000")[1].shape == (3, 0)
    assert search.search_batch([], k=4, filter=text)[1].shape == (0, 4)

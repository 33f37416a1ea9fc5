"""`realmctl search`: what it prints is what the artifacts hold, by every method, and nothing of a text steers the terminal."""

from __future__ import annotations

import json

import pytest

import realmctl as realmctl_package
from realmctl.corpus.corpus import Corpus
from stages.chunk import Chunk
from tests.fixtures.chain import Chain

WORDS = "Where was Ada Lorn born?"


@pytest.mark.parametrize(
    ("words", "method"), [((), "hybrid"), (("--method", "dense"), "dense"), (("--method", "bm25"), "bm25")]
)
def test_hits_with_title_score_and_text(realmctl, chain: Chain, words, method):
    code, out, err = realmctl("search", WORDS, "Ben", "--workspace", chain.folder, "-k", 3, "--json", *words)
    assert code == 0 and f"search: {method} over" in err, err
    found = json.loads(out)["results"]
    assert json.loads(out)["search"] == realmctl_package.load_search(chain.folder, method=method).profile.told()
    texts = {block.id: block for block in Corpus(chain.blocks)}
    assert [each["query"] for each in found] == [WORDS, "Ben"] and len(found[0]["hits"]) == 3
    for hit in found[0]["hits"]:
        block = texts[hit["block"]]
        assert (hit["title"], hit["text"], hit["document"]) == (block.title, block.text, block.document)
    scores = [hit["score"] for hit in found[0]["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_blocks_alone_are_searched_by_bm25_and_their_texts_are_escaped(realmctl, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    texts = ["The otter swims.\x1b[2J It sleeps.", "A badger digs."]
    corpus.write_text(
        "".join(
            json.dumps({"id": str(n), "title": "T\x1b]0;x\x07", "text": text}) + "\n" for n, text in enumerate(texts)
        )
    )
    Chunk(corpus=(corpus,), tokenizer="train:200", workers=1).make(tmp_path / "w/blocks")
    code, out, err = realmctl("search", "otter", "--workspace", tmp_path / "w")
    assert code == 0 and "bm25" in err and out.startswith("1. T") and "The otter swims." in out, err
    assert "\x1b" not in out and "\x07" not in out


def test_a_language_is_printed_where_hits_differ_in_it(realmctl, tmp_path):
    for folder, second in (("one", "en"), ("two", "de")):
        corpus = tmp_path / f"{folder}.jsonl"
        rows = [
            {"id": str(n), "text": f"The otter {n} swims.", "language": language, "source": "zoo"}
            for n, language in enumerate(("en", second))
        ]
        corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
        Chunk(corpus=(corpus,), tokenizer="train:200", keep_fields="language,source", workers=1).make(
            tmp_path / folder / "blocks"
        )
        _, out, _ = realmctl("search", "otter", "--workspace", tmp_path / folder)
        assert ("language en" in out) == (second == "de") and "source zoo" in out


def test_what_is_missing_is_named(realmctl, chain: Chain, tmp_path):
    code, _, err = realmctl("search", WORDS, "--workspace", tmp_path)
    assert code == 3 and "realmctl chunk" in err
    code, _, err = realmctl("search", WORDS, "--workspace", chain.folder, "--method", "wrong")
    assert code == 2 and "bm25" in err
    code, _, err = realmctl("search", " ", "--workspace", chain.folder)
    assert code == 2
    code, out, err = realmctl("search", WORDS, "-w", chain.folder, "--method", "bm25", "--index", chain.index.path)
    assert code == 0 and out and "ignored" in err


def test_a_wrong_method_and_an_empty_question_are_told(realmctl, chain: Chain):
    code, _, err = realmctl("search", "Ada", "--workspace", chain.folder, "--method", "sparse")
    assert code == 2 and all(name in err for name in ("sparse", "dense", "bm25", "hybrid"))
    code, _, err = realmctl("search", "Ada", " ", "--workspace", chain.folder, "--method", "dense")
    assert code == 2 and "1 of 1" in err

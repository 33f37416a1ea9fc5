"""A machine without hnswlib and spaCy: exact search works from a corpus to an answer, and hnsw says what to install."""

from __future__ import annotations

import sys

import pytest

from realmctl.corpus import sentences
from tests.fixtures.messages import one_paragraph


@pytest.fixture
def bare(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("hnswlib", "spacy")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("hnswlib", "spacy"):
        monkeypatch.setitem(sys.modules, name, None)
    sentences._spacy.cache_clear()


def test_exact_search_needs_neither(bare, realmctl, chain, corpus):
    parts = ("--blocks", chain.blocks.path, "--retriever", chain.retriever.path)
    assert realmctl("chunk", corpus, "--tokenizer", "train:200", "--workers", 1, "-o", "texts")[0] == 0
    assert realmctl("tag", "--blocks", "texts", "--tagger", "rules", "--workers", 1)[0] == 0
    assert realmctl("embed", *parts)[0] == 0
    assert realmctl("build-index")[0] == 0
    small = ("--steps", 1, "--batch-size", 2, "--retriever-beam", 5, "--reader-beam", 2, "--reader-length", 40)
    start = ("--index", "artifacts/index", "--encoder", chain.encoder.path, "--questions", chain.questions)
    assert realmctl("finetune", *parts, *start, *small)[0] == 0
    code, out, _ = realmctl("ask", "Where was Ada Lorn born?", "--blocks", chain.blocks.path)
    assert code == 0 and out.startswith("1. ")


def test_hnsw_and_spacy_say_what_to_install(bare, realmctl, chain, corpus):
    embeddings = ("--embeddings", chain.folder / "embeddings")
    code, _, err = realmctl("build-index", *embeddings, "--type", "hnsw", "-o", "index", "-q")
    assert code == 5 and "pip install 'realmctl[hnsw]'" in one_paragraph(err) and "--type exact" in err
    code, _, err = realmctl(
        "chunk", corpus, "--sentence-splitter", "spacy", "--tokenizer", "train:200", "--workers", 1, "-q"
    )
    assert code == 5 and "spacy is not installed" in one_paragraph(err)

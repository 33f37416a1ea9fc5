"""BM25 over stems, against the formula with another implementation of the stemmer, NLTK's, on the words of the texts themselves."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from realmctl.errors import ConfigError
from realmctl.retrieval.search.bm25 import BM25Searcher
from realmctl.retrieval.search.postings import K1, B
from realmctl.retrieval.search.stems import Stems, stemmer_of
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.training import train
from stages.eval_em import EvalEm
from tests.fixtures import families
from tests.fixtures.blocks import make_blocks

pytest.importorskip("Stemmer")
snowball = pytest.importorskip("nltk.stem.snowball")

PAGES = {
    "Mountains": [["Hikers were climbing the hills.", "They hiked happily!"], ["A climber's house stood there."]],
    "Houses": [["Housing was generally cheap.", "Running water ran."], ["The runner runs a café."]],
}
QUESTION = "Which hiker climbs, and who houses a running generator in cafés?"


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return make_blocks(tmp_path_factory.mktemp("stems") / "blocks", PAGES)


def stems_of(text: str) -> list[str]:
    text = text.lower().replace("é", "e")
    return [snowball.SnowballStemmer("english").stem(word) for word in re.findall(r"[a-z0-9]+", text)]


def formula(texts: list[list[str]], question: list[str]) -> np.ndarray:
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        counts, score = Counter(text), 0.0
        for word in question:
            holding = sum(word in other for other in texts)
            idf = np.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            score += idf * counts[word] / (counts[word] + K1 * (1 - B + B * len(text) / mean))
        scores.append(score)
    return np.array(scores)


def test_scores_are_those_of_the_formula_over_stems(blocks):
    searcher = BM25Searcher(blocks, "cpu", stemmer="english")
    texts = [stems_of(f"{block.title} {block.text}") for block in searcher.corpus]
    expected = formula(texts, stems_of(QUESTION))
    scores, rows = searcher.nearest(searcher.tokens([QUESTION]), 4)
    np.testing.assert_allclose(scores[0], expected[rows[0]], rtol=1e-5)
    assert rows[0].tolist() == np.argsort(-expected, kind="stable").tolist()
    plain = BM25Searcher(blocks, "cpu")
    assert not np.allclose(plain.nearest(plain.tokens([QUESTION]), 4)[0], scores)
    live = searcher.scores(searcher.tokens([QUESTION]), rows)
    np.testing.assert_allclose(live.detach().numpy(), scores, rtol=1e-5)
    other = searcher.over(blocks, None)
    np.testing.assert_allclose(other.nearest(searcher.tokens([QUESTION]), 4)[0], scores, rtol=1e-6)


def test_a_word_that_no_passage_has_is_left_out(blocks):
    searcher = BM25Searcher(blocks, "cpu", stemmer="english")
    stems = searcher.stems
    assert isinstance(stems, Stems)
    known, unknown = searcher.tokens(["climbing hikers", "zebra xylophone ?!"])
    before = len(stems)
    assert len(stems.known(known)) == 2 and len(stems.known(unknown)) == 0 and len(stems) == before
    assert len(stems.known(np.array([], dtype=np.int64))) == 0


def test_words_are_those_of_the_text(blocks, tmp_path):
    searcher = BM25Searcher(blocks, "cpu", compared="words")
    whole = [re.findall(r"[a-z0-9]+", f"{b.title} {b.text}".lower().replace("é", "e")) for b in searcher.corpus]
    expected = formula(whole, re.findall(r"[a-z0-9]+", QUESTION.lower().replace("é", "e")))
    scores, rows = searcher.nearest(searcher.tokens([QUESTION]), 4)
    np.testing.assert_allclose(scores[0], expected[rows[0]], rtol=1e-5)
    plain = BM25Searcher(blocks, "cpu")
    assert not np.allclose(plain.nearest(plain.tokens([QUESTION]), 4)[0], scores)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a hiker"}\n')
    with pytest.raises(ConfigError, match="--bm25-tokens"):
        EvalEm(blocks=blocks, questions=tmp_path / "queries.jsonl", bm25_tokens="words", retrieval="dense").check()


@pytest.mark.parametrize("model_type", [*families.TYPES, *families.WITHOUT_FIRST_BLANK])
def test_words_of_every_kind_of_tokenizer_are_whole(model_type, tmp_path):
    """Byte-level pieces hold parts of the letters of Köln and of Hangul."""
    families.tokenizer(model_type).save_pretrained(tmp_path)
    words = Tokenizer.load(tmp_path)
    assert Stems("de", words).read(words.ids("Köln, Rhein. Rheins Köln")).tolist() == [0, 1, 1, 0]
    ids = words.ids("서울 수도, 서울")
    assert words.unk in ids or Stems(None, words).read(ids).tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("language", "same"), [("tr", "Irak ırak IRAK irak"), ("tr", "İstanbul istanbul"), (None, "İzmir izmir")]
)
def test_the_dots_of_turkish_do_not_count(language, same):
    words = train([f"{same} kitap"] * 3, TokenizerRecipe("wordpiece", 100, lowercase=False, keep_marks=True))
    stems = Stems(language, words)
    assert {*stems.read(words.ids(same)).tolist()} == {0}
    assert stems.read(words.ids("kitap")).tolist() == [1]


def test_the_stemmer_of_a_language():
    assert [stemmer_of(code) for code in ("de", "simple", "ko", "zh-hant", "no")] == ["de", "en", None, None, "no"]

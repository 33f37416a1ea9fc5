"""Corpora in other languages through the stages, as a user would run them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.artifacts.records import Records
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.settings import language_of
from realmctl.errors import ConfigError
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer
from stages.chunk import Chunk
from stages.eval_em import EvalEm
from stages.finetune import Finetune
from stages.mlm_init import MlmInit
from stages.revise import Revise
from stages.tag import Tag

CITIES = {"서울": "한강", "부산": "낙동강", "대구": "금호강", "광주": "영산강", "대전": "갑천", "울산": "태화강"}
DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="ko"><siteinfo><namespaces>
<namespace key="6">파일</namespace><namespace key="14">분류</namespace></namespaces></siteinfo>{pages}</mediawiki>"""
PAGE = """<page><title>{city}</title><ns>0</ns><id>{number}</id><revision><text>'''{city}'''은 [[대한민국]]의 도시이다. {city}은 [[{river}]]을 끼고
있다.{ref} 1995년 3월 {number}일에 시가 되었다.
[[파일:a.jpg|섬네일|그림]]
== 각주 ==
글
[[분류:도시]]</text></revision></page>"""


@pytest.fixture(scope="module")
def korean(tmp_path_factory):
    """Blocks of a small Korean dump, and the file of its questions."""
    folder = tmp_path_factory.mktemp("korean")
    pages = [
        PAGE.format(city=city, river=river, number=number, ref="&lt;ref&gt;책&lt;/ref&gt;")
        for number, (city, river) in enumerate(CITIES.items(), 1)
    ]
    (folder / "kowiki.xml").write_text(DUMP.format(pages="".join(pages)), encoding="utf-8")
    asked = [{"question": f"{city}은 어느 강을 끼고 있는가?", "answer": [river]} for city, river in CITIES.items()]
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    blocks = Chunk(corpus=(folder / "kowiki.xml",), tokenizer="train:130", workers=1).make(folder / "blocks")
    return blocks, folder / "questions.jsonl", folder


def test_a_dump_says_its_language_and_a_revision_keeps_it(korean):
    blocks, _, folder = korean
    assert language_of(blocks) == "ko" and blocks.settings["language"] == "auto"
    block = Corpus(blocks).block(0)
    assert block.text == "서울은 대한민국의 도시이다. 서울은 한강을 끼고 있다. 1995년 3월 1일에 시가 되었다."
    assert len(block.sentences) == 3
    (folder / "edits.jsonl").write_text(
        json.dumps({"op": "add", "id": "9", "title": "수원", "text": "수원은 도시이다."}) + "\n"
    )
    revised = Revise(blocks=blocks, edits=folder / "edits.jsonl", workers=1).make(folder / "revised")
    assert language_of(revised) == "ko"


def test_names_and_dates_of_korean_are_tagged(korean, capsys):
    blocks, _, folder = korean
    spans = Tag(blocks=blocks, workers=1).make(folder / "spans")
    sentences = list(Records(spans.file("sentences.jsonl.zst")))
    found = [{each["text"][start:end]: label for start, end, label in each["spans"]} for each in sentences]
    assert {"1995년 3월 1일": "DATE"} in found
    assert any("대한민국" in names for names in found)
    with pytest.raises(ConfigError, match="hf:"):
        Tag(blocks=blocks, workers=1, tagger="rules").make(folder / "spans")


def test_bm25_finds_answers_with_particles_behind_them(korean):
    blocks, questions, folder = korean
    scores = EvalEm(blocks=blocks, questions=questions, retrieval="bm25", hits=5).make(folder / "recall")
    assert scores.metrics["recall@1"] == 1.0


def test_an_unknown_language_and_one_without_rules(tmp_path, capsys):
    with pytest.raises(ConfigError, match="klingon"):
        Chunk(corpus=(tmp_path,), language="klingon")
    text = {
        "id": "1",
        "title": "Uusi Helsinki",
        "text": "Suomessa on Uusi Helsinki joen rannalla. Vuonna 1990 oli toisin.",
    }
    (tmp_path / "corpus.jsonl").write_text(json.dumps(text) + "\n")
    blocks = Chunk(corpus=(tmp_path / "corpus.jsonl",), language="fi", tokenizer="train:100", workers=1).make(
        tmp_path / "blocks"
    )
    spans = Tag(blocks=blocks, workers=1).make(tmp_path / "spans")
    assert spans.metrics["spans"] == spans.metrics["spans_ENTITY"] > 0
    message = capsys.readouterr().err
    assert "fi" in message and "anchors" in message and "hf:" in message


def test_a_tokenizer_that_lacks_the_script_is_warned_about(korean, tmp_path, capsys):
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"id": "1", "title": "東京", "text": "東京は首都である。"}))
    made = Chunk(
        corpus=(tmp_path / "corpus.jsonl",), language="ja", tokenizer=str(korean[0].path / "tokenizer"), workers=1
    )
    blocks = made.make(tmp_path / "blocks")
    assert blocks.metrics["unknown_wordpieces"] >= 5 and "[UNK]" in capsys.readouterr().err
    assert korean[0].metrics["unknown_wordpieces"] == 0


def test_a_tokenizer_that_falls_back_on_bytes_is_warned_about(tmp_path, capsys):
    """Byte-level BPE has no unknown wordpiece: a character that it never saw is two or three bytes."""
    english, japanese = tmp_path / "english.jsonl", tmp_path / "japanese.jsonl"
    english.write_text(
        json.dumps({"id": "1", "title": "Tokyo", "text": "Tokyo is the capital of Japan, and its largest city."})
    )
    japanese.write_text(json.dumps({"id": "1", "title": "東京", "text": "東京は首都である。"}, ensure_ascii=False))
    learned = Chunk(corpus=(english,), tokenizer="train:bpe:300", workers=1).make(tmp_path / "learned")
    tokenizer = str(learned.path / "tokenizer")
    Chunk(corpus=(english,), tokenizer=tokenizer, workers=1).make(tmp_path / "known")
    assert tokenizer not in capsys.readouterr().err
    blocks = Chunk(corpus=(japanese,), language="ja", tokenizer=tokenizer, workers=1).make(tmp_path / "blocks")
    assert blocks.metrics["unknown_wordpieces"] == 0 and blocks.metrics["characters"] == 9
    warned = capsys.readouterr().err
    assert tokenizer in warned and "3.1" in warned


@pytest.mark.slow
def test_a_reader_is_taught_answers_whose_borders_are_inside_wordpieces(korean):
    """The block has 한강을, with a wordpiece that is no part of 한강. KorQuAD's scorer is the main one."""
    blocks, questions, folder = korean
    words = Tokenizer.load(blocks.path)
    alone = words.ids("한강").tolist()
    assert not len(occurrences(Corpus(blocks).tokens(0), np.array(alone)))
    encoder = MlmInit(blocks=blocks, bert="scratch:L1-H16", steps=1, batch_size=4, length=32).make(folder / "encoder")
    model = Finetune(
        blocks=blocks, encoder=encoder, questions=questions, retrieval="bm25", steps=1, reader_beam=6
    ).make(folder / "qa-model")
    assert model.metrics["answer_in_reader"] == 1.0
    scores = EvalEm(blocks=blocks, questions=questions, qa_model=model, scorer="korquad").make(folder / "scores")
    assert scores.metrics["scorer"] == "korquad" and "em_korquad" in scores.metrics

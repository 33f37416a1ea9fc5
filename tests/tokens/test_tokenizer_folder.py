"""Settings of tokenizers against transformers, which reads the same folders; and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AddedToken, AutoTokenizer, BertTokenizer

from realmctl.errors import InputError
from realmctl.tokens.frame import Frame
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.tokenizer_folder import stated_length
from tests.fixtures import families

TEXTS = [
    "Möchte für CAFÉ 東京は日本 naïve",
    "the <url> engine,<url>the  two   blanks",
    "  blanks at the ends  ",
    "a\nb\tc",
    "x" * 120,
    "",
    "İstanbul ß ﬁ ½ 👩‍👩‍👧",
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"strip_accents": False},
    {"strip_accents": True, "do_lower_case": False},
    {"do_lower_case": False},
    {"tokenize_chinese_chars": False},
    {"tokenize_chinese_chars": False, "strip_accents": False, "do_lower_case": False},
]


def bert_folder(folder: Path, settings: dict[str, Any], added: list[AddedToken], whole: bool) -> Path:
    """A BERT tokenizer with settings, as tokenizer.json or, in the old form, as vocab.txt."""
    letters = sorted({char for text in [*TEXTS, *families.TEXTS] for char in text + text.lower() if not char.isspace()})
    pieces = [*letters, *(f"##{letter}" for letter in letters), "the", "mochte", "möchte", "東京は日本"]
    vocabulary = {token: n for n, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])}
    made = BertTokenizer(vocab=vocabulary, **settings)
    made.add_tokens(added)
    folder.mkdir(exist_ok=True)
    if whole:
        made.save_pretrained(folder)
    else:
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary))
        decoder = {
            len(vocabulary) + n: {"content": token.content, "special": token.special, "normalized": token.normalized}
            for n, token in enumerate(added)
        }
        stated = {"tokenizer_class": "BertTokenizer", **settings, "added_tokens_decoder": decoder}
        (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    return folder


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("whole", [True, False], ids=["tokenizer.json", "vocab.txt"])
@pytest.mark.parametrize(
    "added", [[], [AddedToken("<url>")], [AddedToken("<url>", normalized=False)]], ids=["", "added", "raw"]
)
def test_settings_and_added_tokens_are_obeyed(
    tmp_path: Path, settings: dict[str, Any], whole: bool, added: list[AddedToken]
) -> None:
    folder = bert_folder(tmp_path / "f", settings, added, whole)
    theirs, ours = BertTokenizer.from_pretrained(folder), Tokenizer.load(folder)
    ours.save(tmp_path / "saved")
    again = AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in TEXTS:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.ids(text).tolist() == expected
        assert ours.encode_batch([text])[0][0].tolist() == expected
        assert again(text, add_special_tokens=False)["input_ids"] == expected
        assert Tokenizer.load(tmp_path / "saved").ids(text).tolist() == expected


every = pytest.mark.parametrize("model_type", [*families.TYPES, *families.WITHOUT_FIRST_BLANK])


@every
def test_texts_of_every_family(model_type: str, tmp_path: Path) -> None:
    theirs = families.tokenizer(model_type)
    theirs.save_pretrained(tmp_path / "f")
    ours = Tokenizer.load(tmp_path / "f")
    ours.save(tmp_path / "saved")
    saved = Tokenizer.load(tmp_path / "saved")
    assert saved.identity == ours.identity and saved.frame == ours.frame and saved.specials == ours.specials
    for text in [
        "Ada Lovelace, 1843",
        "Köln am Rhein",
        "東京は日本の首都です",
        "the two   blanks",
        "engine's (engine)",
        "\u1e9e \u6f22",
    ]:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert np.asarray(ours.at_start(ours.ids(text))).tolist() == expected
        assert AutoTokenizer.from_pretrained(tmp_path / "saved")(text)["input_ids"] == theirs(text)["input_ids"]
        after_blank = theirs(f"Ada {text}", add_special_tokens=False)["input_ids"]
        assert after_blank == [*np.asarray(ours.at_start(ours.ids("Ada"))).tolist(), *ours.ids(text).tolist()]


@every
def test_a_text_right_behind_another(model_type: str, tmp_path: Path) -> None:
    """As sentence-transformers has them: the tokenizer gets both as one text. The wordpieces of a tokenizer that counts no blanks do not say
    whether a text begins with one.
    """
    theirs = families.tokenizer(model_type)
    counts = theirs("  the")["input_ids"] != theirs("the")["input_ids"]
    theirs.save_pretrained(tmp_path / "f")
    ours = Tokenizer.load(tmp_path / "f")
    texts = [
        "Ada Lovelace, 1843",
        "Köln am Rhein",
        "東京は日本の首都です",
        "(in their time)",
        "the",
        "engine's engine",
        "    the engine",
        "\n\nnotes",
        "",
    ]
    for first in ("the: ", "the:", "notes:\n", "notes on\n\n", "(", "it had: engine:", "A  ", "the - "):
        before = ours.ids(first.rstrip()).tolist()
        for text in texts if counts or first.endswith(" ") else texts[:6]:
            found = np.asarray(ours.at_start(ours.behind(first, before, ours.ids(text)))).tolist()
            assert found == theirs((first + text).rstrip(), add_special_tokens=False)["input_ids"], (first, text)


@every
def test_words_offsets_and_literal_special_tokens(model_type: str, tmp_path: Path) -> None:
    families.tokenizer(model_type).save_pretrained(tmp_path)
    ours = Tokenizer.load(tmp_path)
    for text in families.TEXTS:
        ((ids, offsets),) = ours.encode_batch([text])
        assert not set(ids.tolist()) & ({*ours.specials} - {ours.unk})
        assert all(0 <= start <= end <= len(text) for start, end in offsets.tolist())
        assert not any(text[start].isspace() for start, end in offsets.tolist() if end > start)
        assert sum(count for _, count in ours.words(text)) == len(ids)
    text = "unbelievable engine"
    starts = [start for start, _ in ours.words(text)]
    assert starts == [0, 13]
    begins = np.flatnonzero(~ours.continues[ours.ids(text)])
    assert len(begins) == 2 and begins[0] == 0
    assert ours.text_of(ours.ids(text)) == text


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"}, "BertJapaneseTokenizer"),
        ({"tokenizer_class": "DebertaV2Tokenizer"}, "DebertaV2Tokenizer"),
        ({"tokenizer_class": ["BertTokenizer"]}, "BertTokenizer"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize"),
        ({"never_split": ["ab"]}, "never_split"),
        ({"tokenizer_class": "BertTokenizer", "strip_accents": "no"}, "strip_accents"),
    ],
)
def test_what_is_not_obeyed_is_refused_by_name(tmp_path: Path, stated: dict[str, Any], named: str) -> None:
    folder = bert_folder(tmp_path / "f", {}, [], False)
    (folder / "tokenizer_config.json").write_text(json.dumps(stated))
    with pytest.raises(InputError, match=named):
        Tokenizer.load(folder)


def test_a_tokenizer_without_a_frame_and_one_of_sentencepiece_are_refused(tmp_path: Path) -> None:
    words = families.tokenizer("xlm-roberta")
    words.backend_tokenizer.post_processor = families.processors.TemplateProcessing(
        single="$A", pair="$A $B", special_tokens=[]
    )
    words.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    alone = Tokenizer.load(tmp_path)
    assert alone.frame == Frame((), (), (), 0)
    with pytest.raises(InputError, match="of a retriever alone"):
        alone.require_masks("blocks")
    twice = families.processors.TemplateProcessing(single="<s> <s> $A", pair="$A $B", special_tokens=[("<s>", 0)])
    words.backend_tokenizer.post_processor = twice
    words.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="</s>"):
        Tokenizer.load(tmp_path)
    setup = json.loads((tmp_path / "tokenizer.json").read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**setup, "post_processor": None}))
    with pytest.raises(InputError, match="</s>"):  # whether two separators stand between two texts is not known
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").rename(tmp_path / "sentencepiece.bpe.model")
    with pytest.raises(InputError, match="sentencepiece"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(("stated", "length"), [(16, 16), (10**30, None), (None, None), ("x", None), (512.0, 512)])
def test_the_length_that_is_stated(tmp_path: Path, stated: Any, length: int | None) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": stated}))
    assert stated_length(tmp_path) == length

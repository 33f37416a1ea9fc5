from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from realmctl.corpus import sentences
from realmctl.execution.deadline import deadline


def parts(text: str, name: sentences.SplitterName = "rules") -> list[str]:
    return [text[start:end] for start, end in sentences.splitter(name)(text)]


@pytest.mark.parametrize(
    "marked",
    [
        "It ended.|Then it began!|Did it?|Yes.",
        "Dr. Smith met Mr. J. R. R. Tolkien in St. Louis.|He left.",
        "The U.S. Army left.|He lived in the U.S.|The army stayed.",
        "It was c. 1900 when No. 5 sold for $3.5 million.|Approx. 40 of them, e.g. the first, i.e. this "
        "one, etc. were lost.",
        "He moved to Apple Inc.|The company grew.|It was founded in Jan. 1976 by Steve Jobs et al. in California.",
        'He said "no."|Then he left.|"Why?" she asked.|"Because."',
        "As set in A.|The theme returns in plan B.|However, it failed.",
        "In v. Carr the Court held it (see vol. 3, p. 79).|It was 5 p.m. and dark.",
        "A list item|Another item.|A third",
        "Wait... what?|Yes!",
        "It cost 3.5.|He paid.",
    ],
)
def test_boundaries(marked):
    expected = marked.split("|")
    text = marked.replace("A list item|Another item.|", "A list item\nAnother item.\n").replace("|", " ")
    found = parts(text)
    assert found == expected


TEXTS = st.lists(
    st.sampled_from([*" \n\t.?!…", "\n\n", '"', "(", ")", "Mr", "U.S.", "A", "b", "The", "12", "é", "\u00a0"]),
    max_size=80,
).map("".join)


@given(TEXTS)
@settings(deadline=None)
@pytest.mark.parametrize("name", ["rules", "spacy"])
def test_sentences_cover_the_text_and_keep_to_their_lines(name, text):
    spans = sentences.splitter(name)(text)
    last = 0
    for start, end in spans:
        assert last <= start < end
        assert text[last:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        assert "\n" not in text[start:end]
        last = end
    assert text[last:].strip() == ""


def test_spacy_splits_at_full_stops():
    assert parts("One here. Two there.\nThree", "spacy") == ["One here.", "Two there.", "Three"]


@pytest.mark.parametrize(
    "text",
    [
        ". " * 100_000,
        "." * 200_000,
        " " * 300_000,
        "A. " * 100_000,
        '."' + '"' * 200_000,
        "a" * 300_000 + ".",
        "\n" * 200_000,
    ],
)
def test_hostile_text_takes_linear_time(text):
    with deadline(20):
        sentences.split(text)


PUNKT_MODEL = {
    "abbrev_types.txt": "approx\nzz",
    "collocations.tab": "##number##\tavenue",
    "ortho_context.tab": "ten\t2",
    "sent_starters.txt": "moreover",
}


@pytest.fixture
def punkt_model(tmp_path):
    for name, text in PUNKT_MODEL.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_punkt_is_nltks_with_the_model_of_the_folder(punkt_model):
    """A stop behind a known abbreviation ends nothing, and a newline does not either: the rules would cut there."""
    pytest.importorskip("nltk")
    text = " It was approx. forty years ago\nthat Zz. Top played there. Then they left.\n"
    found = [text[start:end] for start, end in sentences.splitter(f"punkt:{punkt_model}")(text)]
    assert found == ["It was approx. forty years ago\nthat Zz. Top played there.", "Then they left."]
    assert len(sentences.splitter("rules")(text)) > 2


@pytest.mark.parametrize("text", ["He asked (who? ). Then he left.", "It is (new! ) and old.", "See [it. ] Now."])
def test_no_sentence_starts_with_a_closing_bracket(text):
    """A block began with the half-line ")."."""
    assert not [text[a:b] for a, b in sentences.split(text) if text[a] in ")]"]


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("ja", "東京は首都である。|人口は多い。|「明日来る。」と彼は言った。|本当か？|そうだ！"),
        ("zh", "他说：“我来了。你呢？”|然后走了。|长３．５公里。"),
        ("ko", "서울은 수도이다.| 인구가 많다.| 1989년 2월 15일에 열렸다."),
        ("de", "Am 3. Oktober 1990 kam z. B. Dr. Müller.| Die Stadt liegt bzw. lag hier.| Es war 1990.| Danach ging er usw.| Der Rest."),
        ("fr", "M. Dupont vint av. J.-C. en janv. 1990.| Il partit."),
        ("es", "El Sr. López vive en EE. UU. desde 1990.| Es feliz."),
        ("ru", "Он родился в г. Москва в 1990 г. в семье.| Это был т. е. сын.| Он умер."),
        ("ar", "هل جاء؟| نعم.| ذهب إلى البيت."),
        ("he", "הוא נולד בתל אביב.| היא גרה בירושלים."),
        ("hi", "यह भारत है।| दिल्ली राजधानी है।"),
        ("de", "So geht's.| Dann kam z. B. er."),
        ("und", "Ng'o.| K. Nyerere can't.| Then he can’t."),
        ("sw", "Yeye ni mwalimu J. K. Nyerere.| Anaishi Dar."),
        ("el", "Πού είναι η πόλη;| Είναι στη Γαλλία.| «Πότε\u037e»| Το 1911· και μετά; όχι.| Τέλος."),
        ("fr", "Il vint ; Elle partit; Paul resta."),
        ("ka", "თბილისი დედაქალაქია.| ქალაქი 1990 წ. გაიზარდა!| სად არის?| აქ."),
    ],
)  # fmt: skip
def test_boundaries_by_language(language, marked):
    split = sentences.splitter("rules", language)
    text = marked.replace("|", "")
    assert [text[start:end] for start, end in split(text)] == [part.strip() for part in marked.split("|")]


def test_marks_are_those_of_unicode():
    terminal = regex.compile(r"\p{Sentence_Terminal}")
    marks = set(re.findall(f"[{sentences.WIDE}]", "".join(map(chr, range(0x10000)))))
    assert {*"。！？؟।۔።"} <= marks
    assert all(terminal.match(mark) for mark in marks)
    assert {char for char in map(chr, range(0x80, 0x1B00)) if terminal.match(char)} <= marks


@pytest.mark.parametrize("text", ["。" * 100_000, "「" * 100_000 + "。" * 100_000, "「一。" * 50_000, "z. " * 100_000])
def test_hostile_text_in_other_scripts_takes_linear_time(text):
    with deadline(20):
        sentences.splitter("rules", "de")(text)

"""Which words are names by their capitals, at sentence starts above all."""

import pytest

from realmctl.spans.proper_names import DocumentCasing, looks_like_name, name_runs, starts_sentence, trimmed

NOTHING_KNOWN = DocumentCasing([])

RUNS = [
    ("Albert Einstein was born in Ulm.", ["Albert Einstein", "Ulm"]),
    ("Later Einstein moved to Berlin.", ["Einstein", "Berlin"]),
    ("The University of Oxford is old.", ["University of Oxford"]),
    ("He read Simone de Beauvoir and Ludwig van Beethoven.", ["Simone de Beauvoir", "Ludwig van Beethoven"]),
    ("J. R. R. Tolkien knew C. S. Lewis.", ["J. R. R. Tolkien", "C. S. Lewis"]),
    ("They flew the Boeing 747 and Apollo 11 home.", ["Boeing 747", "Apollo 11"]),
    ("He fought in World War II near St. Louis.", ["World War II", "St. Louis"]),
    ("Einstein's wife met Jean-Paul Sartre and O'Neill.", ["Jean-Paul Sartre", "O'Neill"]),
    ("Then AT&T and the U.S. Navy came.", ["AT&T", "U.S. Navy"]),
    ("Émile Zola saw Ångström in Kraków.", ["Émile Zola", "Ångström", "Kraków"]),
    ("It was in May, on a Monday, and July 4 too.", []),
    ("What I saw was a dog.", []),
    ("Dogs bark.", []),
    ("He said: The dogs bark.", []),
    ("He had 20 men.", []),
]


@pytest.mark.parametrize(("sentence", "names"), RUNS)
def test_capitalised_runs(sentence, names):
    assert [sentence[start:end] for start, end in name_runs(sentence, NOTHING_KNOWN)] == names


def test_the_documents_own_casing_decides_at_a_sentence_start():
    known = DocumentCasing(["We saw Paris.", "Dogs in Dogs Street.", "the dogs", "Paris fell."])
    assert [*name_runs("Paris fell.", known)] == [(0, 5)]
    assert [*name_runs("Dogs bark.", known)] == []
    assert [*name_runs("Dogs Paris.", known)] == [(5, 10)]
    assert [*name_runs("Berlin fell.", known)] == []
    assert [*name_runs("The Dogs Paris.", known)] == [(9, 14)]
    assert [*name_runs("NASA fell.", known)] == [(0, 4)]


def test_a_word_is_a_name_if_the_document_has_it_inside_sentences_with_a_capital_alone():
    known = DocumentCasing(["Ur fell when Paris and Dogs did.", "the dogs"])
    assert [word for word in ("Ur", "Paris", "Dogs", "Berlin") if known.is_name(word)] == ["Paris"]


@pytest.mark.parametrize(
    ("sentence", "at", "starts"),
    [
        ("One two", 0, True),
        ("One two", 4, False),
        ('He said: "One', 10, True),
        ("He said: One", 9, True),
        ("He said One", 8, False),
        ("(One", 1, True),
        ("a, One", 3, False),
    ],
)
def test_where_a_capital_is_forced(sentence, at, starts):
    assert starts_sentence(sentence, at) is starts


@pytest.mark.parametrize(
    ("surface", "yes"),
    [
        ("Paris", True),
        ("Ur", True),
        ("Greek mythology", True),
        ("iPod", True),
        ("van Gogh", True),
        ("de la Cruz", True),
        ("NASA", True),
        ("philosophy", False),
        ("history of France", False),
        ("1905", False),
        ("19th century", False),
        ("July 4", False),
        ("The", False),
        ("X", False),
        ("", False),
        ("...", False),
    ],
)
def test_what_looks_like_a_name_in_mid_sentence(surface, yes):
    assert looks_like_name(surface, f"we saw {surface} there", 7, NOTHING_KNOWN) is yes


@pytest.mark.parametrize(
    ("surface", "core"),
    [
        ("the Beatles", "Beatles"),
        ("Einstein's", "Einstein"),
        ("The Beatles'", "Beatles"),
        ("a priori", "a priori"),
        ("A", "A"),
        (" X ", "X"),
    ],
)
def test_articles_and_possessives_are_trimmed(surface, core):
    text = f"<{surface}>"
    start, end = trimmed(text, 1, len(text) - 1)
    assert text[start:end] == core


@pytest.mark.parametrize("surface", ["18°S", "51°30′N", "51°30′26″N 0°7′39″W", "40° N., 5° E.", "30 °C", "18° S"])
def test_degrees_are_not_names(surface):
    """The rules took "18°S" for an entity."""
    for sentence in (f"It lies at {surface}. Paris is north.", f"the line ({surface}) is near Paris."):
        casing = DocumentCasing([sentence])
        assert not looks_like_name(surface, sentence, sentence.index(surface), casing)
        assert [sentence[a:b] for a, b in name_runs(sentence, casing)] in (["Paris"], [])
        assert "Paris" in sentence


def test_a_name_beside_degrees_stays_a_name():
    sentence = "At 18°S the Nile Delta meets Cairo."
    assert [sentence[a:b] for a, b in name_runs(sentence, DocumentCasing([sentence]))] == ["Nile Delta", "Cairo"]


def test_a_name_may_begin_with_a_common_word_inside_a_sentence():
    assert looks_like_name("After hours", "we saw After hours there", 7, NOTHING_KNOWN)
    assert not looks_like_name("After", "we saw After there", 7, NOTHING_KNOWN)

"""Taggers on blocks small enough to tag by hand; spaCy pipelines are made on the spot."""

import pytest
import spacy

from realmctl.corpus.blocks import Block, PackedWordpieces
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.spans.salient import ENTITY, SalientSpan, resolve_overlaps
from realmctl.spans.settings import find_spacy_model
from realmctl.spans.taggers import AnchorTagger, AutoTagger, RuleTagger, SentenceTagger, _needed_pipes, spacy_finder
from tests.fixtures.blocks import make_blocks


def block(*sentences: str, links: tuple[str, ...] = (), title: str = "Title of it", document: str = "1") -> Block:
    """Sentences joined by blanks; each of `links` is an anchor at its first occurrence."""
    text, bounds, anchors = " ".join(sentences), [], []
    for sentence in sentences:
        start = text.index(sentence, bounds[-1][1] if bounds else 0)
        bounds.append((start, start + len(sentence)))
    for link in links:
        anchors.append((text.index(link), text.index(link) + len(link), link))
    return Block(f"{document}-0", document, title, text, tuple(bounds), tuple(anchors), PackedWordpieces(b"", b"", ()))


def found(tagger, *blocks: Block) -> list[list[str]]:
    tagged = tagger.tag(blocks)
    assert len(tagged) == len(blocks)
    return [sorted({p.text[s.start : s.end] for s in spans}) for p, spans in zip(blocks, tagged, strict=True)]


def test_anchors_that_look_like_names():
    one = block(
        "Philosophy is old.",
        "He read the Republic of Plato in 1905 on logic.",
        links=("Philosophy", "the Republic", "Plato", "1905", "logic"),
    )
    assert found(AnchorTagger(), one) == [["Plato", "Republic"]]
    assert {span.label for span in AnchorTagger().tag([one])[0]} == {ENTITY}


def test_a_linked_name_is_found_again_unlinked_later_in_its_document_only():
    first = block("We saw Paris.", "Paris fell.", links=("Paris",))
    later = block("They left Paris and Parisians, and Paris-Nord.")
    other = block("They left Paris.", document="2")
    earlier = block("They left Paris.", document="1")
    assert found(AnchorTagger(), first, later, other) == [["Paris"], ["Paris"], []]
    assert len(AnchorTagger().tag([first])[0]) == 3  # the anchor, itself as a mention, and the second sentence
    assert found(AnchorTagger(), earlier, first)[0] == []


def test_a_mention_is_of_whole_words_in_the_same_case():
    one = block("We saw New York.", "New Yorkers left New york and New York's bay.", links=("New York",))
    assert {(s.start, s.end) for s in AnchorTagger().tag([one])[0]} == {(7, 15), (47, 55)}


def test_the_title_is_a_name_where_it_is_written_as_one():
    assert found(AnchorTagger(), block("He met Alan Turing.", title="Alan Turing")) == [["Alan Turing"]]
    assert found(AnchorTagger(), block("He met Mercury twice.", title="Mercury (planet)")) == [["Mercury"]]
    assert found(AnchorTagger(), block("Anarchism, or anarchism.", "On Anarchism.", title="Anarchism")) == [[]]


def test_rules_use_the_whole_document_as_evidence():
    first, second = block("Berlin grew."), block("They left Berlin.")
    assert found(RuleTagger(), first) == [[]]
    assert found(RuleTagger(), first, second) == [["Berlin"], ["Berlin"]]


def test_rule_spans_are_offsets_into_the_block():
    one = block("Nothing here.", "We met Ada Lovelace.")
    assert RuleTagger().tag([one]) == [[SalientSpan(21, 33, ENTITY)]]


def test_sentence_tagger_shifts_a_finders_spans():
    tagger = SentenceTagger(lambda texts: [[(0, 3, "X")] if text.startswith("Two") else [] for text in texts])
    assert tagger.tag([block("One.", "Two."), block("Three."), block("Two.")]) == [
        [SalientSpan(5, 8, "X")],
        [],
        [SalientSpan(0, 3, "X")],
    ]


@pytest.fixture(scope="module")
def ruler(tmp_path_factory):
    """A spaCy pipeline with an entity ruler, and a pipe that fails if it is ever run."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns(
        [{"label": "PERSON", "pattern": "Ada Lovelace"}, {"label": "GPE", "pattern": "London"}]
    )
    pipeline.add_pipe("textcat").add_label("UNUSED")
    folder = tmp_path_factory.mktemp("spacy") / "ruler"
    pipeline.to_disk(folder)
    return str(folder)


def test_spacy_entities_with_their_labels(ruler):
    finder = spacy_finder(ruler)
    assert [list(spans) for spans in finder(["Ada Lovelace left London.", "", "None."])] == [
        [(0, 12, "PERSON"), (18, 24, "GPE")],
        [],
        [],
    ]


def test_a_trained_spacy_ner_runs(tmp_path):
    pipeline = spacy.blank("en")
    ner = pipeline.add_pipe("ner")
    ner.add_label("PERSON")
    examples = [
        spacy.training.Example.from_dict(pipeline.make_doc(text), {"entities": [(4, 7, "PERSON")]})
        for text in ("met Ada.", "saw Ada.", "met Ada today.")
    ]
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(30):
        pipeline.update(examples, sgd=optimizer)
    pipeline.to_disk(tmp_path / "ner")
    assert [list(spans) for spans in spacy_finder(str(tmp_path / "ner"))(["met Ada."])] == [[(4, 7, "PERSON")]]


@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        ("Ada", ["names"]),
        ([{"lower": "ada"}, {"IS_TITLE": True}], ["names"]),
        ([{"POS": "PROPN"}], ["marker", "names"]),
        ([{"TEXT": "Ada"}, {"pos": {"IN": ["PROPN"]}}], ["marker", "names"]),
        ([{"_": {"known": True}}], ["marker", "names"]),
    ],
)
def test_a_ruler_keeps_the_pipes_that_its_patterns_need(tmp_path, pattern, needed):
    """A ruler may have any name, and what stands behind it is not needed."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("attribute_ruler", name="marker").add([[{"IS_TITLE": True}]], {"POS": "PROPN"})
    spacy.tokens.Token.set_extension("known", getter=lambda token: token.text == "Ada", force=True)
    pipeline.add_pipe("entity_ruler", name="names").add_patterns([{"label": "PERSON", "pattern": pattern}])
    pipeline.add_pipe("sentencizer")
    assert _needed_pipes(pipeline) == needed
    pipeline.to_disk(tmp_path / "pipeline")
    (found,) = spacy_finder(str(tmp_path / "pipeline"))(["She met Ada Lorn."])
    assert list(found)[-1][2] == "PERSON"


def test_a_pipeline_that_fails_is_told(ruler, monkeypatch):
    def fail(*_: object, **__: object):
        raise ValueError("[E155] the pipeline needs a part that it lacks")

    finder = spacy_finder(ruler)
    monkeypatch.setattr(spacy.language.Language, "pipe", fail)
    with pytest.raises(InputError, match=r"spacy:.*E155"):
        list(finder(["Ada."]))


def test_a_missing_spacy_model_says_how_to_get_it():
    with pytest.raises(InputError, match="spacy download en_no_such_model"):
        find_spacy_model("en_no_such_model")
    with pytest.raises(InputError, match="no such pipeline"):
        spacy_finder("../elsewhere")


def test_a_spacy_pipeline_without_entities_is_refused(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="ner"):
        spacy_finder(str(tmp_path / "blank"))


def test_a_broken_spacy_folder_is_refused(tmp_path):
    (tmp_path / "config.cfg").write_text("not a config")
    with pytest.raises(InputError, match="cannot load"):
        spacy_finder(str(tmp_path))


@pytest.mark.parametrize(
    ("language", "title", "text", "found"),
    [
        ("ko", "서울", "[[대한민국]]의 수도는 서울이다. 서울시는 남서울이 아니다. 대한민국은 넓다.", ["대한민국", "서울", "서울", "대한민국"]),
        ("ja", "東京", "[[日本]]の首都は東京である。東京都は[[アメリカ]]やアメリカンではない。", ["日本", "東京", "東京", "アメリカ"]),
        ("zh", "北京市", "北京市是[[中华人民共和国]]的首都，中华人民共和国[[1949年]]成立。", ["北京市", "中华人民共和国", "中华人民共和国"]),
        ("ar", "القاهرة", "القاهرة عاصمة [[مصر]] وتقع مصر في أفريقيا.", ["القاهرة", "مصر", "مصر"]),
        ("he", "תל אביב", "תל אביב היא עיר ב[[ישראל]]. ישראל קטנה.", ["תל אביב", "ישראל", "ישראל"]),
        ("ru", "Москва", "Город Москва — [[столица]] [[Россия|России]].", ["Москва", "России"]),
        ("ka", "თბილისი", "ქალაქი თბილისი [[საქართველო|საქართველოს]] გულია.", ["თბილისი", "საქართველოს"]),
    ],
)  # fmt: skip
def test_titles_and_links_are_names_in_every_language(tmp_path, language, title, text, found):
    [block] = Corpus(make_blocks(tmp_path / "blocks", {title: [[text]]}))
    [spans] = AnchorTagger(language).tag([block])
    assert [block.text[start:end] for start, end, _ in resolve_overlaps(spans)] == found


def test_only_english_has_rules_of_capital_letters(tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {"Wien": [["Die Stadt Wien liegt an der Donau."]]})
    [[block], english, german] = list(Corpus(blocks)), AutoTagger(), AutoTagger("de")
    assert [len(spans) for spans in (*english.tag([block]), *german.tag([block]))] == [2, 1]

from __future__ import annotations

import bz2
import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from realmctl.artifacts.records import Records
from realmctl.corpus import chunking, document, reading
from realmctl.corpus.blocks import BlockPacker
from realmctl.corpus.corpus import Corpus
from realmctl.corpus.sentences import PUNKT_FILES
from realmctl.corpus.wiki import wikitext
from realmctl.errors import ConfigError, InputError
from realmctl.pipeline import planning
from realmctl.tokens.recipes import TokenizerRecipe
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.training import train
from stages.chunk import Chunk

WORDS = [
    "river",
    "stone",
    "lamp",
    "cloud",
    "horse",
    "bread",
    "music",
    "winter",
    "garden",
    "letter",
    "harbour",
]


def article(number: int) -> str:
    draw = random.Random(number)
    lines = (
        " ".join(draw.choices(WORDS, k=draw.randint(3, 12))).capitalize() + f" [[{draw.choice(WORDS)}]]."
        for _ in range(30)
    )
    return "\n\n".join(lines) + "\n==References==\n* a book"


def dump(path: Path, *pages: tuple[str, str]) -> Path:
    body = "".join(
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><text>{text}</text></revision></page>"
        for number, (title, text) in enumerate(pages)
    )
    path.write_bytes(bz2.compress(f"<mediawiki>{body}</mediawiki>".encode()))
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    pages = [(f"Page {n}", article(n)) for n in range(150)]
    pages += [("List of pages", "x"), ("B", "#REDIRECT [[A]]"), ("Empty", "{{stub}}"), ("Two", article(1))]
    return dump(tmp_path_factory.mktemp("corpus") / "dump.xml.bz2", *pages)


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    return Chunk(corpus=(source,), tokenizer="train:200", max_wordpieces=64, workers=1).make(
        tmp_path_factory.mktemp("w") / "blocks"
    )


def test_the_artifact_is_what_the_readers_expect(made):
    corpus = Corpus(made)
    tokenizer = Tokenizer.load(made.path)
    records = Records(made.file("blocks.jsonl.zst"))
    assert len(corpus) == len(records) == made.metrics["blocks"] > 300
    for row in range(0, len(records), 17):
        record = records[row]
        assert corpus.tokens(row).tolist() == tokenizer.ids(record["text"]).tolist()
        assert corpus.title(row).tolist() == tokenizer.ids(record["title"]).tolist()
        starts = corpus.sentences(row).tolist()
        assert starts[0] == 0 and len(starts) == len(record["sentences"])
        assert 3 + len(corpus.title(row)) + len(corpus.tokens(row)) <= 64
        for start, end, target in record["anchors"]:
            assert record["text"][start:end] == target.lower()
    assert corpus.tokens(0).dtype == np.uint16
    assert [records[0]["id"], records[0]["document"], records[0]["title"]] == ["0-0", "0", "Page 0"]
    assert "book" not in records[3]["text"]


def test_every_page_is_accounted_for(made):
    metrics = made.metrics
    assert metrics["pages"] == 154
    assert metrics["dropped"] == {"list": 1, "no_prose": 1, "redirect": 1}
    assert metrics["documents"] == 151
    assert metrics["quarantined"] == 0
    assert metrics["duplicate_blocks"] == 0
    assert metrics["anchors"] == 151 * 30
    assert metrics["wordpieces"] == len(np.load(made.file("tokens.npy")))
    assert metrics["longest_wordpieces"] <= 61


@pytest.mark.usefixtures("workers_at_once")
def test_any_number_of_workers_makes_the_same_content(source, made, tmp_path):
    again = Chunk(corpus=(source,), tokenizer="train:200", max_wordpieces=64, workers=2).make(tmp_path / "blocks")
    assert again.content == made.content


def test_a_given_tokenizer_is_copied(made, source, tmp_path):
    given = Chunk(corpus=(source,), tokenizer=str(made.path / "tokenizer"), max_wordpieces=64, workers=1).make(
        tmp_path / "blocks"
    )
    assert given.manifest.files["tokens.npy"] == made.manifest.files["tokens.npy"]
    assert given.manifest.files["tokenizer/vocab.txt"] == made.manifest.files["tokenizer/vocab.txt"]


def test_a_tokenizer_counts_by_its_own_files(made, source, tmp_path):
    """So blocks are reused when an encoder's weights change, and none are fetched from the hub."""
    shutil.copytree(made.path / "tokenizer", tmp_path / "encoder")
    settings = {"corpus": (source,), "max_wordpieces": 32}
    first = Chunk(**settings, tokenizer=str(made.path / "tokenizer")).make(tmp_path / "blocks")
    (tmp_path / "encoder" / "model.safetensors").write_bytes(b"weights")
    assert Chunk(**settings, tokenizer=str(tmp_path / "encoder")).make(tmp_path / "blocks").path == first.path
    (tmp_path / "encoder" / "tokenizer_config.json").write_text("{}")
    assert Chunk(**settings, tokenizer=str(tmp_path / "encoder")).make(tmp_path / "blocks").path != first.path


def test_transformers_takes_the_tokenizer(made):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(made.path / "tokenizer")
    record = Records(made.file("blocks.jsonl.zst"))[0]
    assert theirs(record["text"], add_special_tokens=False)["input_ids"] == Corpus(made).tokens(0).tolist()


def test_a_page_that_hangs_is_listed(source, tmp_path, monkeypatch):
    clean = wikitext.prose

    def hang(text, media):
        while text == article(7):
            pass
        return clean(text, media)

    monkeypatch.setattr(wikitext, "prose", hang)
    monkeypatch.setattr(document, "PAGE_SECONDS", 0.3)
    tokenizer = train(WORDS * 3, TokenizerRecipe("wordpiece", 200))
    tokenizer.save(tmp_path / "t")
    made = Chunk(corpus=(source,), tokenizer=str(tmp_path / "t"), workers=1).make(tmp_path / "blocks")
    assert list(Records(made.file("quarantine.jsonl.zst"))) == [
        {"id": "7", "title": "Page 7", "reason": "not cleaned within 0.3 s"}
    ]
    assert (made.metrics["quarantined"], made.metrics["documents"]) == (1, 150)


def test_a_long_sentence_is_split_or_kept(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"id": 1, "title": "T", "text": " ".join(WORDS * 40) + "."}) + "\n")
    split = Chunk(corpus=(path,), tokenizer="train:200", workers=1).make(tmp_path / "split")
    kept = Chunk(corpus=(path,), tokenizer="train:200", long_sentences="keep", workers=1).make(tmp_path / "kept")
    assert (split.metrics["split_sentences"], split.metrics["longest_wordpieces"] <= 284) == (1, True)
    assert (kept.metrics["split_sentences"], kept.metrics["blocks"], kept.metrics["longest_wordpieces"]) == (
        0,
        1,
        441,
    )


def test_passages_keep_their_ids(tmp_path, capsys):
    path = tmp_path / "c.tsv"
    rows = [("7", "One river."), ("x-1", "A stone. " * 200)]
    path.write_text("id\ttext\ttitle\n" + "".join(f"{key}\t{text}\tT\n" for key, text in rows))
    stage = Chunk(corpus=(path,), tokenizer="train:200", max_wordpieces=32, keep_passages=True, workers=1)
    made = stage.make(tmp_path / "blocks")
    records = list(Records(made.file("blocks.jsonl.zst")))
    assert [(record["id"], record["document"]) for record in records] == [("7", "7"), ("x-1", "x-1")]
    assert made.metrics["shortened_passages"] == 1 and made.metrics["longest_wordpieces"] <= 28
    assert "1 passage is longer than a block" in capsys.readouterr().err


def test_the_paragraphs_of_a_squad_file_are_its_passages(tmp_path):
    path = tmp_path / "s.json"
    paragraphs = [{"context": f"The {word}. A stone.", "qas": []} for word in ("river", "lamp")]
    path.write_text(json.dumps({"data": [{"title": "A_B", "paragraphs": paragraphs}]}))
    stage = Chunk(corpus=(path,), tokenizer="train:200", max_wordpieces=64, keep_passages=True, workers=1)
    records = list(Records(stage.make(tmp_path / "blocks").file("blocks.jsonl.zst")))
    assert [(r["id"], r["document"], r["title"], r["text"]) for r in records] == [
        ("s.json-0-0", "s.json-0-0", "A B", "The river. A stone."),
        ("s.json-0-1", "s.json-0-1", "A B", "The lamp. A stone."),
    ]


def test_an_error_leaves_no_artifact(tmp_path):
    path = dump(tmp_path / "d.xml.bz2", ("A", article(1)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"d\.xml\.bz2"):
        Chunk(corpus=(path,), workers=1).make(tmp_path / "blocks")
    assert not list((tmp_path / "blocks").glob("v*"))
    bare = dump(tmp_path / "e.xml.bz2", ("A", "{{stub}}"))
    with pytest.raises(InputError, match="1 pages"):
        Chunk(corpus=(bare,), tokenizer="train:200", workers=1).make(tmp_path / "blocks")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_wordpieces": 20}, "--max-wordpieces 20"),
        ({"tokenizer": "train:many"}, "--tokenizer"),
        ({"tokenizer": "train:5"}, "--tokenizer"),
    ],
)
def test_settings_that_cannot_work_are_refused_first(source, tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        Chunk(corpus=(source,), **settings).make(tmp_path / "blocks")


def test_casing_belongs_to_the_tokenizer_that_is_given(source, made, tmp_path):
    with pytest.raises(ConfigError):
        Chunk(corpus=(source,), tokenizer=str(made.path / "tokenizer"), lowercase=False).make(tmp_path / "blocks")


def test_a_sample_of_a_large_corpus_trains_the_tokenizer(source, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("realmctl.corpus.chunking.TRAINING_BYTES", 20_000)
    made = Chunk(corpus=(source,), tokenizer="train:200", workers=1).make(tmp_path / "blocks")
    assert "one document in" in capfd.readouterr().err
    assert made.metrics["documents"] == 151


@pytest.mark.parametrize("given", [False, True])
def test_the_format_is_said_once_whether_or_not_wordpieces_are_learnt(given, made, tmp_path, capfd):
    (tmp_path / "a.txt").write_text("Some text about a river, a stone and a lamp.")
    tokenizer = str(made.path / "tokenizer") if given else "train:200"
    Chunk(corpus=(tmp_path / "a.txt",), tokenizer=tokenizer, workers=1).make(tmp_path / "blocks")
    assert capfd.readouterr().err.count(f"{tmp_path / 'a.txt'}: ") == 1


def test_a_title_is_kept_whole_only_where_sentences_are(tmp_path):
    (tmp_path / "a.txt").write_text("Some text.")
    with pytest.raises(ConfigError, match="--long-sentences keep"):
        Chunk(corpus=(tmp_path / "a.txt",), long_titles="keep").check()
    Chunk(corpus=(tmp_path / "a.txt",), long_titles="keep", long_sentences="keep").check()


def test_a_punkt_model_counts_by_its_content(tmp_path):
    pytest.importorskip("nltk")
    (tmp_path / "a.txt").write_text("It was approx. forty. Then they left.")
    recipes = []
    for name, abbreviation in (("one", "approx"), ("two", "approx"), ("three", "forty")):
        (tmp_path / name).mkdir()
        for file in PUNKT_FILES:
            (tmp_path / name / file).write_text(abbreviation if file == "abbrev_types.txt" else "")
        stage = Chunk(corpus=(tmp_path / "a.txt",), sentence_splitter=f"punkt:{tmp_path / name}")
        stage.check()
        recipes.append(stage.origin().recipe)
    assert recipes[0] == recipes[1] != recipes[2]
    (tmp_path / "one/ortho_context.tab").unlink()
    with pytest.raises(InputError, match=r"ortho_context\.tab"):
        Chunk(corpus=(tmp_path / "a.txt",), sentence_splitter=f"punkt:{tmp_path / 'one'}").check()
    with pytest.raises(ConfigError, match="punkt:FOLDER"):
        Chunk(corpus=(tmp_path / "a.txt",), sentence_splitter="punkt").check()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_dry_run_estimates_the_time_of_all_documents_from_some(tmp_path, monkeypatch, workers):
    """The clock goes on by a second for each document that is cut."""
    now = [0.0]
    cut = BlockPacker.blocks
    monkeypatch.setattr(chunking, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(chunking, "TRIAL_CHARS", 5_000)

    def slow(packer, document):
        now[0] += 1
        return cut(packer, document)

    monkeypatch.setattr(BlockPacker, "blocks", slow)
    (tmp_path / "docs").mkdir()
    for number in range(40):
        (tmp_path / f"docs/{number}.txt").write_text("A river ran. " * 80)
    stage = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", workers=workers)
    assert stage.trial().seconds == pytest.approx(40 / workers, rel=0.01)
    assert now[0] == 5, "a small share of the work"
    planned = planning.plan(stage, tmp_path / "blocks", measure=True)
    assert planned["estimate"]["seconds"] > 0 and not (tmp_path / "blocks").exists()


def test_a_dry_run_estimates_the_time_of_a_folder_of_many_kinds(tmp_path, monkeypatch):
    """The clock goes on by a second for each file that is read, and by ten for each of the kind that comes first."""
    now, kept = [0.0], reading.kept
    monkeypatch.setattr(chunking, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(chunking, "TRIAL_SECONDS", 60)

    def slow(file, *rest):
        now[0] += 10 if "slow" in file.name else 1
        return kept(file, *rest)

    monkeypatch.setattr(reading, "kept", slow)
    for name in ("a-slow", "b"):
        (tmp_path / "docs" / name).mkdir(parents=True)
        for number in range(50):
            (tmp_path / f"docs/{name}/{number}.txt").write_text("A river ran. " * 80)
    found = Chunk(corpus=(tmp_path / "docs",), tokenizer="train:300", workers=1).trial().seconds
    assert now[0] < 100 and found == pytest.approx(2 * 550, rel=0.2), "50 files of 10 s and 50 of 1 s, read twice"

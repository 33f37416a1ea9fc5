"""The world generator: what it promises about its files is what makes the demo's numbers mean something."""

import hashlib
import json
import math
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from realmctl.extras.demo.world import facts
from realmctl.extras.demo.world.names import make_inventory
from realmctl.extras.demo.world.relations import RELATIONS
from realmctl.extras.demo.world.settings import SIZES, WorldSettings

WORLD_PROGRAM = Path(__file__).parents[3] / "examples" / "world"
SPLITS = ("train", "seen", "dev", "test")

Record = dict[str, Any]


def run_program(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(WORLD_PROGRAM / "make_world.py"), "--out", str(out), *options]
    return subprocess.run(command, capture_output=True, text=True)


def make(out: Path, *options: str) -> Path:
    run_program(out, *options).check_returncode()
    return out


def json_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def documents(corpus: Path) -> list[Record]:
    return [record for file in sorted(corpus.glob("*/wiki_*")) for record in json_lines(file)]


def plain(text: str) -> str:
    return re.sub(r"<[^>]*>", "", text)


def links(text: str) -> list[str]:
    return [unquote(target) for target in re.findall(r'<a href="([^"]*)">', text)]


def tells_of(sentence: str, name: str) -> bool:
    """Whether that name stands there without a link: the subject of a dispatch."""
    return re.search(rf"\b{re.escape(name)}\b", re.sub("<a .*?</a>", "", sentence)) is not None


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(p.relative_to(folder)).encode() + p.read_bytes() for p in files)).hexdigest()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("small"), "--size", "small")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("demo"), "--parallel-worlds", "0")


def test_same_settings_same_bytes(small: Path, tmp_path: Path) -> None:
    assert digest(make(tmp_path / "again", "--size", "small")) == digest(small)
    assert digest(make(tmp_path / "other", "--size", "small", "--seed", "1")) != digest(small)


def test_seeds_share_names_but_not_facts(small: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", "--size", "small", "--seed", "1")
    facts, other_facts = json_lines(small / "facts.jsonl"), json_lines(other / "facts.jsonl")
    cities = {f["subject"] for f in facts if f["relation"] == "twin"}
    assert cities == {f["subject"] for f in other_facts if f["relation"] == "twin"}
    triples = {(f["subject"], f["relation"], f["value"]) for f in facts}
    repeated = [f for f in other_facts if (f["subject"], f["relation"], f["value"]) in triples]
    assert len(repeated) < len(facts) / 20


def test_splits_have_disjoint_facts_and_the_asked_sizes(small: Path) -> None:
    facts = json_lines(small / "facts.jsonl")
    keys = [(f["subject"], f["relation"]) for f in facts]
    assert len(set(keys)) == len(keys)
    counts = Counter(f["split"] for f in facts if f["split"])
    assert counts == {"train": 200, "seen": 50, "dev": 50, "test": 50}
    for split in SPLITS:
        asked = {(f["question"], f["value"]) for f in facts if f["split"] == split}
        assert {(q["question"], *q["answer"]) for q in json_lines(small / f"{split}.jsonl")} == asked


def test_questions_are_unique(demo: Path) -> None:
    questions = [q["question"] for split in SPLITS for q in json_lines(demo / f"{split}.jsonl")]
    assert len(set(questions)) == len(questions)


def test_held_out_entities_appear_in_the_knowledge_corpus_only(small: Path) -> None:
    held_out = json.loads((small / "world.json").read_text())["held_out"]
    assert len(held_out) == 18 + 4 + 4 + 2
    shared = [plain(d["text"]) for d in documents(small / "sentences")]
    shared += [json.dumps(q) for split in ("train", "seen") for q in json_lines(small / f"{split}.jsonl")]
    assert [name for name in held_out for text in shared if name in text] == []
    subjects = {f["subject"] for f in json_lines(small / "facts.jsonl") if f["split"] in ("dev", "test")}
    assert subjects <= set(held_out)


def test_every_fact_stands_in_its_document(small: Path) -> None:
    about = {r.name: r.subject for r in RELATIONS}
    by_id = {d["id"]: d for d in documents(small / "knowledge")}
    for fact in json_lines(small / "facts.jsonl"):
        document = by_id[fact["document"]]
        whole, last = fact["subject"], fact["subject"].split()[-1]
        assert document["title"] == (last if about[fact["relation"]] == "person" else whole)
        assert fact["subject"] in plain(document["text"]).split(".")[0]
        assert fact["value"] in plain(document["text"])


def test_a_share_of_the_facts_is_told_again_in_another_wording_of_a_second_document(
    small: Path, tmp_path: Path
) -> None:
    world = make(tmp_path / "restated", "--size", "small", "--restated-share", "0.5")
    facts, plain_facts = json_lines(world / "facts.jsonl"), json_lines(small / "facts.jsonl")
    assert [{key: value for key, value in f.items() if key != "restated_in"} for f in facts] == plain_facts
    before, after = documents(small / "knowledge"), documents(world / "knowledge")
    assert after[: len(before)] == before
    by_id = {d["id"]: d for d in after}
    again = [f for f in facts if "restated_in" in f]
    assert 0.4 < len(again) / len(facts) < 0.6
    assert {number for f in again for number in f["restated_in"]} == {d["id"] for d in after[len(before) :]}
    wordings = {r.name: r.knowledge for r in RELATIONS}
    for fact in again:
        ((first, second),) = [[by_id[number] for number in (fact["document"], *fact["restated_in"])]]
        assert first["title"] == second["title"] and fact["subject"] in plain(second["text"]).split(".")[0]
        told = [wordings_of(plain(d["text"]), wordings[fact["relation"]], fact["value"]) for d in (first, second)]
        assert told[0] and told[1] and not told[0] & told[1], fact


def wordings_of(text: str, wordings: Iterable[str], value: str) -> set[str]:
    """Which of the wordings state the value in the text, whatever they call the subject."""
    patterns = {
        each: re.sub(r"\\{[SOP]\\}", ".+?", re.escape(each)).replace(r"\{V\}", re.escape(value)) for each in wordings
    }
    return {each for each, pattern in patterns.items() if re.search(f"(?i){pattern}", text)}


def test_full_names_stand_once_in_a_document_or_in_as_many_sentences_as_asked(small: Path, tmp_path: Path) -> None:
    none = make(tmp_path / "none", "--size", "small", "--full-name-share", "0")
    once, often = ([plain(d["text"]).count(name) for name, d in people(world)] for world in (none, small))
    assert set(once) == {1} and len(once) == 60 * 3
    later = sum(often) / len(often) - 1
    sentences = 11 / 3 - 1  # a person's eleven facts in three documents, but for the first of each
    assert 0.2 * sentences < later < 0.4 * sentences


def people(world: Path) -> list[tuple[str, Record]]:
    """Each person's name beside each document of that person."""
    by_id = {d["id"]: d for d in documents(world / "knowledge")}
    told = {f["document"]: f["subject"] for f in json_lines(world / "facts.jsonl")}
    return [(name, by_id[number]) for number, name in told.items() if by_id[number]["title"] != name]


def test_told_facts_stand_in_the_sentence_corpus_once(small: Path) -> None:
    told = [f for f in json_lines(small / "facts.jsonl") if f["told_in_sentences"]]
    sentences = [s for d in documents(small / "sentences") for s in d["text"].split(". ")]
    for fact in told:
        stated = [s for s in sentences if tells_of(s, fact["subject"]) and fact["value"] in plain(s)]
        assert stated, fact
    assert 0.5 < len(sentences) / len(told) < 0.7  # a third of the sentences tell one fact, the others two


def test_person_has_three_documents_or_as_many_as_asked(small: Path, tmp_path: Path) -> None:
    one = make(tmp_path / "one", "--size", "small", "--blocks-per-person", "1")
    assert len(documents(small / "knowledge")) == 60 * 3 + 12 + 12 + 6
    assert len(documents(one / "knowledge")) == 60 + 12 + 12 + 6


def test_wordings_are_disjoint_and_whole() -> None:
    relations = RELATIONS
    stated = [w for r in relations for w in r.knowledge]
    told = ["{S} " + w + "." for r in relations for w in r.sentences]
    asked = [w for r in relations for w in r.questions]
    assert Counter(stated + told + asked).most_common(1)[0][1] == 1
    assert all(sorted(set(re.findall("{.}", w)) - {"{S}", "{O}", "{P}"}) == ["{V}"] for w in stated)
    assert all(len(re.findall("{.}", w)) == 2 for w in stated + told)
    assert all(re.findall("{.}", w) == ["{S}"] and w.endswith("?") for w in asked)


def test_questions_have_words_of_the_sentences() -> None:
    for relation in RELATIONS:
        told, asked = (
            {word[:5] for text in texts for word in words(text) if len(word) > 3}
            for texts in (relation.sentences, relation.questions)
        )
        assert told & asked, relation.name


def test_a_dispatch_names_its_subject_first_behind_an_opener_or_last(demo: Path) -> None:
    names = {f["subject"] for f in json_lines(demo / "facts.jsonl")}
    told = [s.rstrip(".") for d in documents(demo / "sentences") for s in d["text"].split(". ")]
    first = sum(any(s.startswith(n) for n in names) for s in told) / len(told)
    last = sum(s.startswith("The one that ") and s.rpartition(" was ")[2] in names for s in told) / len(told)
    assert 0.28 < first < 0.38 and 0.28 < last < 0.38


def test_names_do_not_contain_each_other() -> None:
    inventory = make_inventory(WorldSettings())
    names = [name for kind in inventory.names.values() for name in kind]
    assert [(a, b) for a in names for b in names if a in b and a != b] == []
    assert len(set(names)) == len(names)
    two_words = [name for name in inventory.names["city"] if " " in name]
    assert 0.15 < len(two_words) / len(inventory.names["city"]) < 0.35


def test_parallel_worlds_share_no_fact() -> None:
    settings = SIZES["small"]
    inventory = make_inventory(settings)
    world = facts.draw_world(settings, inventory, random.Random(0))
    same_draw = facts.draw_world(settings, inventory, random.Random(0))
    assert same_draw.values() == world.values()
    other = facts.draw_world(settings, inventory, random.Random(0), unlike=world.values())
    assert set(other.values()) & set(world.values()), "the worlds should have entities in common"
    assert set(other.values().items()) & set(world.values().items()) == set()


def test_parallel_corpora_are_written_with_the_same_names(small: Path) -> None:
    parallel, main = documents(small / "parallel" / "knowledge"), documents(small / "knowledge")
    assert len(parallel) == len(main)
    assert len({d["id"] for d in parallel}) == len(parallel)
    vocabulary = {word for d in main for word in plain(d["text"]).split()}
    unknown = [w for d in parallel for w in plain(d["text"]).split() if w not in vocabulary]
    assert len(unknown) < sum(len(plain(d["text"]).split()) for d in parallel) / 10


def test_quizzes_ask_about_parallel_worlds_and_answer_nothing(small: Path) -> None:
    quizzes = documents(small / "parallel" / "questions")
    named = " ".join(plain(d["text"]).split(".")[0] for d in documents(small / "parallel" / "knowledge"))
    questions = [q for d in quizzes for q in re.split(r"(?<=\?) ", d["text"])]
    assert len(questions) > 20 and all(q.endswith("?") for q in questions)
    assert all(len(links(q)) == 1 and links(q)[0] in named for q in questions)


def test_both_corpora_can_be_chunked_as_one(small: Path) -> None:
    ids = [d["id"] for d in documents(small / "knowledge") + documents(small / "sentences")]
    assert len(set(ids)) == len(ids)


def test_off_corpus_dispatches_are_about_strangers(tmp_path: Path) -> None:
    world = make(tmp_path / "off", "--size", "small", "--off-corpus-share", "0.5")
    dispatches = documents(world / "sentences")
    strange = [d for d in dispatches if d["id"].startswith("dispatch-off-")]
    assert 0.4 < len(strange) / len(dispatches) < 0.6
    known = {f["subject"] for f in json_lines(world / "facts.jsonl")}
    sentences = [s for d in strange for s in d["text"].split(". ")]
    assert sentences and [(s, name) for s in sentences for name in known if tells_of(s, name)] == []
    families = inventory_of_strangers("small").names["last"]
    assert sum(any(f" {name}" in s for name in families) for s in sentences) > 0.9 * len(sentences)


def test_no_encyclopedia_knows_the_family_name_of_a_stranger(demo: Path) -> None:
    text = " ".join(d["text"] + d["title"] for d in documents(demo / "knowledge") + documents(demo / "sentences"))
    assert [name for name in inventory_of_strangers("demo").names["last"] if name in text] == []


def inventory_of_strangers(size: str) -> Any:
    return make_inventory(SIZES[size]).of_strangers()


def test_probes_are_about_the_held_out_and_about_strangers(small: Path) -> None:
    held_out = set(json.loads((small / "world.json").read_text())["held_out"])
    everyone = {f["subject"] for f in json_lines(small / "facts.jsonl")}
    told = {s for d in documents(small / "sentences") for s in d["text"].split(". ")}
    for part, known in (("held-out", held_out), ("strangers", None)):
        sentences = [s for d in documents(small / "evaluation" / part) for s in d["text"].split(". ")]
        assert len(sentences) > 25 and not told & set(sentences)
        assert all(any(tells_of(s, name) for name in known or everyone) == bool(known) for s in sentences)


def test_the_taggers_recall_is_counted_against_the_told_values(small: Path, tmp_path: Path) -> None:
    from stages.chunk import Chunk
    from stages.tag import Tag

    blocks = Chunk(corpus=(str(small / "sentences"),), tokenizer="train:500", workers=1).make(tmp_path / "sentences")
    spans = Tag(blocks=blocks, workers=1).make(tmp_path / "spans")
    counted = subprocess.run(
        [sys.executable, "-B", str(WORLD_PROGRAM / "tagger_recall.py"), str(small), str(spans.path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    told = [f for f in json_lines(small / "facts.jsonl") if f["told_in_sentences"]]
    wanted, right, spans_found = (
        int(n.replace(",", ""))
        for n in re.search(
            r"of ([\d,]+) values told, the tagger found ([\d,]+) .* of its ([\d,]+) spans", counted
        ).groups()
    )
    assert wanted == len(told) and 0.95 * wanted <= right <= wanted <= spans_found == spans.metrics["spans"]


def test_the_tagger_recall_says_in_a_line_what_is_missing(small: Path, tmp_path: Path) -> None:
    for world, spans in ((small, tmp_path / "nowhere"), (tmp_path / "nowhere", small)):
        refused = subprocess.run(
            [sys.executable, "-B", str(WORLD_PROGRAM / "tagger_recall.py"), str(world), str(spans)],
            capture_output=True,
            text=True,
        )
        assert refused.returncode == 1 and "nowhere" in refused.stderr and refused.stderr.count("\n") == 1


def test_too_many_questions_are_refused_in_words(tmp_path: Path) -> None:
    refused = run_program(tmp_path / "w", "--size", "small", "--train-questions", "100000")
    assert refused.returncode != 0
    assert "request fewer questions" in refused.stderr and "Traceback" not in refused.stderr
    assert not (tmp_path / "w").exists()


def test_demo_blocks_are_short_and_bm25_leaves_room(demo: Path) -> None:
    corpus = documents(demo / "knowledge")
    lengths = sorted(len(words(plain(d["text"]))) for d in corpus)
    assert 20 <= lengths[len(lengths) // 2] <= 45 and lengths[-1] <= 60
    gold = {f["question"]: f["document"] for f in json_lines(demo / "facts.jsonl") if f["split"] == "dev"}
    best = bm25_best({d["id"]: words(f"{d['title']} {plain(d['text'])}") for d in corpus}, gold)
    recall = sum(best[q] == document for q, document in gold.items()) / len(gold)
    assert 0.35 < recall < 0.60


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def bm25_best(corpus: dict[str, list[str]], questions: Iterable[str]) -> dict[str, str]:
    """The document that BM25 (k1 1.2, b 0.75) ranks first for each question."""
    average = sum(map(len, corpus.values())) / len(corpus)
    postings: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for document, tokens in corpus.items():
        for word, count in Counter(tokens).items():
            postings[word].append((document, count))
    best = {}
    for question in questions:
        scores: dict[str, float] = defaultdict(float)
        for word in set(words(question)):
            found = postings.get(word, [])
            rarity = math.log(1 + (len(corpus) - len(found) + 0.5) / (len(found) + 0.5))
            for document, count in found:
                norm = 0.25 + 0.75 * len(corpus[document]) / average
                scores[document] += rarity * count * 2.2 / (count + 1.2 * norm)
        best[question] = max(scores, key=lambda d: scores[d])
    return best

"""`adapt --teacher`: what it cuts, what it makes within the minutes, and when the student is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import realmctl as package
from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.lab.language_models.generate_queries import GenerateQueries
from realmctl.lab.teachers import teaching
from realmctl.lab.teachers.cut_queries import CutQueries
from realmctl.lab.teachers.cutting import words_of
from realmctl.pipeline.trial import Trial
from realmctl.training import budget
from realmctl.training.evaluation.cloze_recall import Gain, held_out
from stages.embed import Embed
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, documents
from tests.fixtures.chat_server import chat_server
from tests.fixtures.encoder_folders import folder_for

pytest.importorskip("ir_measures")


def test_queries_are_pieces_of_sentences_that_measure_nothing(chain: Chain, tmp_path):
    made = CutQueries(blocks=chain.blocks, words=4, sentences=10).make(tmp_path / "queries")
    corpus = Corpus(chain.blocks)
    rows, measured = {block.id: row for row, block in enumerate(corpus)}, held_out(corpus, 10, 0)
    queries = [json.loads(line) for line in made.file("queries.jsonl").read_text().splitlines()]
    judged = dict(line.split("\t")[:2] for line in made.file("qrels/train.tsv").read_text().splitlines()[1:])
    assert made.metrics["queries"] == len(queries) == len(judged) > 30 and measured
    for query in queries:
        block = corpus[rows[judged[query["_id"]].replace("%20", " ")]]
        sentences = [
            block.text[start:stop]
            for number, (start, stop) in enumerate(block.sentences)
            if number not in measured.get(rows[block.id], ())
        ]
        assert len(query["text"].split()) <= 4 and any(query["text"] in " ".join(each.split()) for each in sentences)
    empty = make_blocks(tmp_path / "blocks", {"T": [["Short one."]]})
    with pytest.raises(InputError, match="no sentence of 4 words"):
        CutQueries(blocks=empty).make(tmp_path / "none")


def test_a_script_without_blanks_gives_queries_too(tmp_path):
    sentences = ["昔の町の橋は川の上に長くかかっている。", "冬になると北の山から冷たい風が吹いてくる。", "短い文。"]
    blocks = make_blocks(tmp_path / "blocks", {"橋": [sentences]})
    made = CutQueries(blocks=blocks, words=4, sentences=0).make(tmp_path / "queries")
    [query] = map(json.loads, made.file("queries.jsonl").read_text(encoding="utf-8").splitlines())
    assert 6 <= len(query["text"]) <= 8 and any(query["text"] in each for each in sentences[:2])
    assert words_of("See  橋の上に\nand it", 0, 3) == "See 橋の上に" and words_of("a b", 2, 3) == ""
    assert words_of("one two\n three", 1, 5) == "two three"


def test_documents_and_blocks_that_are_judged_become_blocks(chain: Chain, tmp_path, monkeypatch):
    corpus = [*Corpus(chain.blocks)]
    owner = next(block.document for block in corpus if sum(each.document == block.document for each in corpus) > 1)
    lines = [
        f"a\t{owner.replace(' ', '%20')}\t1",
        f"b\t{corpus[-1].id.replace(' ', '%20')}\t2",
        "c\tnobody\t1",
        f"d\t{corpus[0].id.replace(' ', '%20')}\t0",
    ]
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "dev.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    (tmp_path / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": each, "text": f"Who is {each}?"}) + "\n" for each in "abcd")
    )
    with pytest.raises(InputError, match=r"2 of 4 judged queries have a text and an answer .* 32 are needed"):
        teaching.block_judgements(tmp_path, chain.blocks)
    monkeypatch.setattr(teaching, "FEWEST_QUESTIONS", 2)
    assert teaching.block_judgements(tmp_path, chain.blocks) == {
        "a": [block.id for block in corpus if block.document == owner],
        "b": [corpus[-1].id],
    }
    rows = [row for row, block in enumerate(corpus) if block.document == owner]
    monkeypatch.setattr(teaching, "left_out", lambda held_out, corpus: np.array(rows if held_out else [], np.int64))
    with pytest.raises(InputError, match=r"1 of 4 judged .* that teach, of which a part is left out to measure"):
        teaching.block_judgements(tmp_path, chain.blocks, chain.blocks)


def test_the_series_of_queries_is_asked_and_judged_by_its_name(realmctl, chain: Chain, tmp_path):
    """`rank --queries artifacts/queries --qrels artifacts/queries`, as the stage that made them told their place."""
    made = CutQueries(blocks=chain.blocks, words=4, sentences=10).make(tmp_path / "queries")
    for name, queries in (("series", tmp_path / "queries"), ("version", made.path)):
        code, out, err = realmctl(
            *("rank", "--queries", queries, "--qrels", queries, "--method", "bm25"),
            *("--blocks", chain.blocks.path, "--out", tmp_path / "ranking"),
        )
        assert code == 0 and open_artifact(out.strip()).path.name == "v1", (name, err)


@pytest.fixture
def questions(chain: Chain, tmp_path):
    """Questions of two documents, as generate-queries writes them."""
    folder, writer = tmp_path / "held-out", GenerateQueries(blocks=chain.blocks, lm="m", endpoint="http://127.0.0.1:9")
    rows = [row for row, block in enumerate(Corpus(chain.blocks)) if block.title in ("Ada Lorn", "Ben Mott")]

    def written(stage, out):
        names = [Corpus(chain.blocks)[row].id.replace(" ", "%20") for row in rows]
        out.file("queries.jsonl").write_text(
            "".join(json.dumps({"_id": f"q{n}", "text": "Who is Ada Lorn?"}) + "\n" for n in range(len(rows)))
        )
        out.file("qrels/train.tsv").write_text(
            "a\tb\tc\n" + "".join(f"q{n}\t{name}\t1\n" for n, name in enumerate(names))
        )
        return {"queries": len(rows)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GenerateQueries, "run", written)
        return writer.make(folder)


def test_documents_whose_questions_measure_give_no_query_and_no_passage(chain: Chain, questions, tmp_path):
    made = CutQueries(blocks=chain.blocks, words=4, sentences=10, held_out=questions).make(tmp_path / "queries")
    corpus = Corpus(chain.blocks)
    spared = {block.id for block in corpus if block.title in ("Ada Lorn", "Ben Mott")}
    judged = {
        line.split("\t")[1].replace("%20", " ") for line in made.file("qrels/train.tsv").read_text().splitlines()[1:]
    }
    every = {block.id for block in corpus}
    assert len(spared) == 4 and not judged & spared and judged <= every and len(judged) > 25
    one, other = sorted(spared)[0], sorted(every - spared)
    records = [
        {"query": "a", "positive_passages": [{"docid": other[0]}], "negative_passages": [{"docid": one}, {"docid": other[1]}]},
        {"query": "b", "positive_passages": [{"docid": one}], "negative_passages": [{"docid": other[1]}]},
        {"query": "c", "positive_passages": [{"docid": other[0]}], "negative_passages": [{"docid": one}]},
    ]  # fmt: skip
    path, to = tmp_path / "train.jsonl", tmp_path / "kept.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    kept = [
        json.loads(line)
        for line in teaching.passages_without(path, questions, chain.blocks, to).read_text().splitlines()
    ]
    assert kept == [{**records[0], "negative_passages": [{"docid": other[1]}]}]


def test_the_gain_on_questions_is_that_of_reciprocal_ranks(chain: Chain, questions):
    same = teaching.gain_on_questions(questions, chain.blocks, chain.retriever, chain.retriever)
    assert tuple(same) == (0.0, 0.0, 0.0) and not same.shown


@pytest.fixture
def adapted(realmctl, chain: Chain, tmp_path, monkeypatch):
    """Runs adapt with a teacher on a few documents; trainings have 20 steps."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        "".join(
            json.dumps(
                {"id": f"{title} {number}", "title": title, "text": " ".join(block).replace("[[", "").replace("]]", "")}
            )
            + "\n"
            for title, blocks in documents().items()
            for number, block in enumerate(blocks)
        )
    )
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(60.0, each=0.01))
    monkeypatch.setattr(budget, "_seconds", lambda *given: 0.95 * 6 / 30)
    monkeypatch.setattr(teaching, "MOST_STEPS", 20)
    monkeypatch.setattr(teaching, "ranks_worse", lambda reread: False)  # a random teacher does
    encoder = folder_for(chain.blocks, tmp_path / "encoder")

    def run(*more, lm: bool = True):
        if not lm or "--teacher" not in more:
            return adapt(*more)
        with chat_server(lambda number, body: f"Who is it in year {body['seed'] % 1000}?") as server:
            return adapt(*more, "--lm", "m", "--endpoint", server.url)

    def adapt(*more):
        words = (
            "adapt",
            corpus,
            "--encoder",
            encoder,
            "--minutes",
            2,
            "--sentences",
            12,
            "--language",
            "de",
            "--workspace",
            "w",
            *more,
        )
        return realmctl(*words)

    return run


def with_gain(monkeypatch, low: float) -> None:
    """Have the last measurement show this."""
    monkeypatch.setattr(teaching, "gain_on_questions", lambda *given: Gain(low + 0.01, low, low + 0.02))


@pytest.mark.slow
def test_a_student_that_gains_is_searched_with(adapted, cross_encoder, monkeypatch):
    with_gain(monkeypatch, 0.01)
    code, out, err = adapted("--teacher", cross_encoder, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["teacher"]["kept"] and found["teacher"]["steps"] == 20 and found["teacher"]["questions"] > 20
    retriever = open_artifact(found["made"]["retriever"])
    assert retriever.settings["loss"] == "kl" and open_artifact("w/retriever").path == retriever.path
    assert package.load_search("w").search("Where was Ada Lorn born?", 3)
    again = json.loads(adapted("--teacher", cross_encoder, "--json")[1])
    assert again["made"] == found["made"] and again["teacher"] == found["teacher"]
    text = adapted("--teacher", cross_encoder)[1]
    assert "in the reciprocal rank of questions of documents left out. It is kept." in text
    asked, judge = open_artifact("w/written-questions"), open_artifact("w/held-out-questions")
    assert asked.metrics["asked_blocks"] > judge.metrics["asked_blocks"]
    of = {block.id: block.document for block in Corpus(open_artifact("w/blocks"))}
    named = [
        {
            of[line.split("\t")[1].replace("%20", " ")]
            for line in made.file("qrels/train.tsv").read_text().splitlines()[1:]
        }
        for made in (asked, judge)
    ]
    assert all(named) and not named[0] & named[1], "no document both teaches and measures"


@pytest.mark.slow
def test_without_a_language_model_nothing_could_tell_whether_to_keep_it(adapted, cross_encoder):
    code, _, err = adapted("--teacher", cross_encoder, lm=False)
    assert code == 2 and "--teacher needs --lm, a language model: the teacher reads its questions" in err, err
    assert not Path("w").exists()


@pytest.mark.slow
def test_a_teacher_is_trained_and_a_student_without_a_gain_is_left(adapted, monkeypatch):
    with_gain(monkeypatch, -0.01)
    code, out, err = adapted("--teacher", "train", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert not found["teacher"]["kept"] and open_artifact(found["made"]["cross-encoder"]).kind == "cross-encoder"
    retriever = open_artifact(found["made"]["retriever"])
    assert "loss" not in retriever.settings and open_artifact("w/retriever").path == retriever.path
    assert package.load_search("w").search("Where was Ada Lorn born?", 3)


@pytest.mark.slow
def test_nothing_is_learnt_of_a_teacher_that_ranks_worse(adapted, cross_encoder, monkeypatch):
    monkeypatch.setattr(teaching, "ranks_worse", lambda reread: True)
    code, out, err = adapted("--teacher", cross_encoder)
    assert code == 0 and "So nothing is learnt of it" in out, err
    assert open_artifact("w/retriever").settings.get("loss") is None and not Path("w/teacher/scored").exists()


def ask_of_documents(count: int) -> None:
    """Questions in BEIR's layout, whose judgements name documents, in the folder `asked`."""
    names = [f"{title} {number}" for title, blocks in documents().items() for number in range(len(blocks))][:count]
    Path("asked/qrels").mkdir(parents=True, exist_ok=True)
    Path("asked/queries.jsonl").write_text(
        "".join(json.dumps({"_id": f"q{n}", "text": f"Who is {name}?"}) + "\n" for n, name in enumerate(names))
    )
    Path("asked/qrels/train.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\t{name}\t1\n" for n, name in enumerate(names))
    )


@pytest.mark.slow
def test_questions_that_name_documents_teach_as_many_as_the_minutes_allow(adapted, cross_encoder, monkeypatch):
    with_gain(monkeypatch, 0.01)
    ask_of_documents(40)
    monkeypatch.setattr(teaching, "FEWEST_QUESTIONS", 20)
    monkeypatch.setattr(teaching, "MOST_QUESTIONS", 25)
    code, out, err = adapted("--teacher", cross_encoder, "--questions", "asked", "--json")
    assert code == 0, err
    told = json.loads(out)["teacher"]
    assert told["questions"] == 25 and told["kept"] and 0 < told["nDCG@10_before"] <= 1, told


def test_questions_are_looked_at_before_any_training(adapted, cross_encoder):
    ask_of_documents(5)
    code, _, err = adapted("--teacher", cross_encoder, "--questions", "asked")
    assert code == 3 and "5 of 5 judged queries have a text and an answer" in err and "32 are needed" in err, err
    ask_of_documents(40)
    code, _, err = adapted("--teacher", cross_encoder, "--questions", "asked")
    assert code == 3 and "28 of 40 judged queries have a text and an answer" in err and "a part is left out" in err, err
    held = Path("asked/queries.jsonl").read_text()
    Path("asked/queries.jsonl").write_text("".join(held.splitlines(keepends=True)[:9]))
    code, _, err = adapted("--teacher", cross_encoder, "--questions", "asked")
    assert code == 3 and "9 of 40 judged queries have a text and an answer" in err, err
    Path("asked/queries.jsonl").unlink()
    code, _, err = adapted("--teacher", cross_encoder, "--questions", "asked")
    assert code == 3 and "no folder in BEIR's layout" in err, err
    code, _, err = adapted("--questions", "asked")
    assert code == 2 and "they need --teacher" in err, err
    assert (
        open_artifact("w/retriever").manifest.stage == "import" and not Path("w/index").exists()
    )  # nothing was trained


def test_what_does_not_rerank_is_refused_before_any_work(adapted, chain: Chain):
    code, _, err = adapted("--teacher", chain.blocks.path)
    assert code == 4 and "does not rerank" in err
    code, _, err = adapted("--teacher", "nothing at all")
    assert code == 3 and "no such file or folder" in err


def test_a_training_for_which_the_minutes_are_too_few_says_how_many_are_enough(tmp_path):
    """The time of a step decides, and is measured once: a second run says the same."""

    class Slow:
        trials = 0

        def __init__(self, **settings):
            pass

        @staticmethod
        def command():
            return "rerank-finetune"

        def trial(self):
            Slow.trials += 1
            return Trial(0.0, each=30.0)

    for _ in range(2):
        plan = teaching._Plan(tmp_path / "plan.json", {"minutes": 25.0})
        with pytest.raises(budget.TooFewSteps, match=r"10 steps fit into --minutes 25.* need --minutes 50 on"):
            teaching._trained(Slow, {}, plan, 300.0, tmp_path / "made")
    assert Slow.trials == 1
    other = teaching._Plan(tmp_path / "plan.json", {"minutes": 25.0, "teacher": "another"})
    assert other.number("rerank-finetune steps", lambda: 3) == 3  # what was decided for one is none of the other's
    assert teaching._Plan(tmp_path / "plan.json", {"minutes": 25.0}).number("rerank-finetune steps", lambda: 3) == 10


def test_minutes_of_which_half_are_the_teachers_are_told_whole(adapted, cross_encoder, monkeypatch):
    def found(*more):
        code, _, err = adapted("--minutes", 4, *more)
        said = re.search(r"--minutes (\S+) leaves time for 0 steps .* Give it --minutes (\d+) on", err)
        assert code == 2 and said, err
        return said[1], int(said[2])

    monkeypatch.setattr(budget, "_seconds", lambda *given: 60.0)
    (given, half), (told, whole) = found("--minutes", 2), found("--teacher", cross_encoder)
    assert (given, told) == ("2", "4") and whole == 2 * half


@pytest.mark.slow
def test_without_time_for_a_teacher_the_adapted_retriever_stays(adapted, cross_encoder, monkeypatch):
    monkeypatch.setattr(teaching, "MOST_STEPS", 7)
    code, out, err = adapted("--teacher", cross_encoder)
    assert code == 0 and "7 steps fit into --minutes 2" in out and "stays as it was" in out, err
    assert open_artifact("w/retriever").settings.get("loss") is None
    assert package.load_search("w").search("Where was Ada Lorn born?", 3)

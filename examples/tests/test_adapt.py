"""The measurements of adaptation without labels, and their page."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from realmctl.errors import InputError
from realmctl.extras.hub.imports.importing import ImportExtras, import_checkpoint

EXAMPLES = Path(__file__).parents[2] / "examples" / "adapt"
sys.path.append(str(EXAMPLES))

import gains  # noqa: E402
import gains_page as page  # noqa: E402
import measure_ways as run  # noqa: E402
import rivals  # noqa: E402

from tests.fixtures.blocks import make_blocks  # noqa: E402
from tests.fixtures.chat_server import chat_server  # noqa: E402
from tests.fixtures.encoders import make_sentence_encoder  # noqa: E402
from tests.fixtures.language_models import make_babbler  # noqa: E402


def line(arm: str, search: str, seed: int, values: list[float], encoder: str = "mini") -> dict[str, object]:
    return {
        "domain": "towns", "split": "test", "encoder": encoder, "arm": arm, "search": search, "seed": seed, "ndcg": values,
        "cpu_minutes": 1.0, "cloze": {},
    }  # fmt: skip


def test_the_interval_is_over_queries_and_over_seeds():
    """Against the standard error: sd² of the queries' means / Q, plus sd² of the seeds' means / S."""
    rng = np.random.default_rng(1)
    seeds, queries = 8, 400
    shift = rng.normal(0, 0.05, (seeds, 1))
    values = 0.3 + shift + rng.normal(0, 0.2, (seeds, queries))
    found = gains.difference(values, np.full((1, queries), 0.3))
    error = (values.mean(1).var() / seeds + values.mean(0).var() / queries) ** 0.5
    assert found.mean == pytest.approx(shift.mean(), abs=0.03)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.25)
    same = gains.difference(values, values)
    assert (same.low, same.high, same.verdict) == (0, 0, "not shown")


def test_the_target_of_hybrid_search_counts_collections_and_no_shown_loss(tmp_path):
    """Over the best search without training: here BM25 on one set, and the encoder on the others."""
    start, best, better, worse, noisy = [0.4] * 50, [0.5] * 50, [0.6] * 50, [0.3] * 50, [0.3, 0.7] * 25
    places = ("covidqa", "test"), ("mlquestions", "test"), ("man-pages", "test"), ("man-pages", "nl2bash")
    of_arms = {
        "met": (better, best, better, noisy),
        "one-collection": (best, best, better, better),
        "lost": (better, better, better, worse),
        "unmeasured": (better, better),
    }
    records = []
    for number, (domain, split) in enumerate(places):
        bm25, dense = (best, start) if number == 0 else (start, best)
        measured = [line("bm25", "bm25", 0, bm25, encoder=""), line("encoder", "dense", 0, dense)]
        measured += [line(arm, "scores", 0, values[number]) for arm, values in of_arms.items() if number < len(values)]
        records += [{**each, "domain": domain, "split": split} for each in measured]
    results = tmp_path / "runs.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    loaded = gains.Results(results)
    verdicts = {arm: page.over_best(loaded, (arm, "scores"))[0].split(" | ")[-1] for arm in of_arms}
    assert verdicts == {"met": "met |", "one-collection": "missed |", "lost": "missed |", "unmeasured": "open |"}
    [row] = page.over_best(loaded, ("met", "scores"))
    assert row.count("+0.100") == 2 * 3 and page.over_best(loaded, ("nobody", "scores")) == []
    assert "(BM25, BM25)" in page.targets_page(loaded)


def test_the_page_says_first_what_each_arm_brought(tmp_path):
    gained = [0.2] * 40 + [0.0] * 10
    start = [0.4] * 50
    records = [
        line("bm25", "bm25", 0, [0.3] * 50, encoder=""),
        line("encoder", "dense", 0, start),
        *(line("ict", "dense", seed, [a + b for a, b in zip(start, gained, strict=True)]) for seed in range(3)),
        line("retromae", "dense", 0, [0.1] * 50),
        line("encoder", "scores", 0, [0.5] * 50),
        line("ict", "scores", 0, [0.5, 0.6] * 25),
        line("labels-64", "dense", 0, [0.5] * 50),
        {**line("another way", "dense", 0, [0.4] * 50), "cpu_minutes": 0.0},
    ]
    results = tmp_path / "runs.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    text = page.page(gains.Results(results))
    overview = text[text.index("## Every way") : text.index("## How it was measured")]
    rows = {
        line.split(" | ")[0] + "," + line.split(" | ")[1]: line
        for line in overview.splitlines()
        if line.startswith("| ")
    }
    assert "| **+0.100** |" in rows["| encoder as published,hybrid, weighted sum"]
    assert "| **-0.300** |" in rows["| RetroMAE,dense"] and rows["| RetroMAE,dense"].endswith("| 1 |")
    assert rows["| another way,dense"].endswith("| +0.000 | +0.000 | +0.000 | 1 |")
    assert [*rows][-1] == "| 64 labelled questions,dense" and "## Ways measured on some sets" not in text
    holds = text.partition("## What holds")[2].partition("## ")[0]
    said = [line for line in holds.splitlines() if line.startswith("- ")]
    assert len(said) == 3 and "mean +0.100; a gain on 1 of 1 sets" in said[0]
    assert said[1].startswith(
        "- **Training that is always kept (ICT)**: a gain on 1 of 1 sets (up to +0.160, towns test)"
    )
    assert "**Training on 64 labelled questions**" in said[2] and said[2].endswith("1 seed.")
    assert "| ICT | dense | 0.560 | +0.160 [" in text and re.search(r"\| another way \| dense .*\| 1 \| - \|", text)
    for chosen in (None, page.HEADLINES):
        page.save(page.gains_figure(gains.Results(results), chosen), tmp_path / "gains.svg")
        assert "towns test" in (tmp_path / "gains.svg").read_text()


def told(arm: str, seed: int, split: str = "test", kept: int | None = None, **ranks: float) -> dict[str, object]:
    return {
        "domain": "towns", "split": split, "encoder": "mini", "arm": arm, "search": "cloze", "seed": seed,
        "cloze": {**ranks, "kept_step": kept},
    }  # fmt: skip


def test_how_well_cloze_recall_predicts_is_computed_from_the_records(tmp_path):
    """Sentences order five runs as the questions do, but for the sign of one; titles turn the order round."""
    records = [told("encoder", 0, split, dense_rr=0.5, title_rr=0.5) for split in ("test", "other")]
    records += [{**line("encoder", "dense", 0, [0.4] * 9), "split": split} for split in ("test", "other")]
    for split, arm, seed, sentences, titles, questions in (
        ("test", "ict", 0, 0.51, 0.49, 0.39),
        ("test", "ict", 1, 0.52, 0.48, 0.41),
        ("test", "crops", 0, 0.53, 0.47, 0.42),
        ("other", "ict", 0, 0.54, 0.46, 0.43),
        ("other", "ict", 1, 0.48, None, 0.38),
    ):
        ranks = {"dense_rr": sentences, **({} if titles is None else {"title_rr": titles})}
        records += [told(arm, seed, split, **ranks), {**line(arm, "dense", seed, [questions] * 9), "split": split}]
    records += [
        told("ict-kept", 0, kept=0, dense_rr=0.9),
        line("ict-kept", "dense", 0, [0.1] * 9),
    ]  # chosen by cloze recall
    records += [told("spider", 0, dense_rr=0.9)]  # no questions were asked
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    results = gains.Results(file)
    text = page.page(results)
    assert "**Sentences** order 5 runs on 2 sets well: rank correlation +1.00" in text and "in 4 of 5" in text
    assert (
        "**Titles** order 4 runs on 2 sets the wrong way round: rank correlation -1.00 with the questions, within a set -1.00 to -1.00"
        in text
        and "in 1 of 4" in text
    )
    assert "| towns other | ICT | 1 | -0.020 | - | - | - | -0.020 |" in text and "(told.svg)" in text
    told_runs = [each for place in results.places for each in results.told(place)]
    page.save(page.told_figure(told_runs), tmp_path / "told.svg")
    assert "towns other" in (tmp_path / "told.svg").read_text()


def by_model(arm: str, seed: int, search: str, value: float) -> dict[str, object]:
    place = {"domain": "towns", "split": "test", "encoder": "mini", "arm": arm, "search": search, "seed": seed}
    return {**place, "told": value, "cloze": {"kept_step": None}}


def test_how_well_a_language_model_predicts_is_computed_from_the_records(tmp_path):
    """Against scipy's rank correlation, with the interval of a bootstrap over arms; runs that cloze recall chose are left out."""
    rng = np.random.default_rng(2)
    arms = ["ict", "crops", "spider", "retromae", "tsdae", "realm"]
    records = [line("encoder", "dense", 0, [0.4] * 9), by_model("encoder", 0, "generated", 0.6)]
    gained = {(arm, seed): rng.normal(0, 0.1, 3) for arm in arms for seed in (0, 1)}
    for (arm, seed), (questions, one, two) in gained.items():
        written, judged = questions + one / 3, two
        records += [
            line(arm, "dense", seed, [0.4 + questions] * 9),
            by_model(arm, seed, "generated", 0.6 + written),
            by_model(arm, seed, "judged", judged),
        ]
    kept = {**line("ict-kept", "dense", 0, [0.9] * 9), "cloze": {"kept_step": 50}}
    records += [kept, by_model("ict-kept", 0, "generated", 0.1)]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    results = gains.Results(tmp_path / "runs.jsonl")
    text = page.page(results)
    questions, one, two = np.array([*gained.values()]).T
    for name, values in (("Questions of a language model", questions + one / 3), ("What it judges of them", two)):
        expected = stats.spearmanr(values, questions).statistic
        found = re.search(
            rf"\*\*{name}\*\* order 12 runs on 1 set .*rank correlation ([-+.\d]+) \[([-+.\d]+), ([-+.\d]+)\]", text
        )
        assert found and float(found[1]) == pytest.approx(expected, abs=0.006)
        low, high = float(found[2]), float(found[3])
        assert low < expected < high
    runs = [each for place in results.places for each in results.told(place)]
    by_arm, draws = [[each for each in runs if each.arm == arm] for arm in arms], []
    for _ in range(500):
        some = [each for number in rng.integers(6, size=6) for each in by_arm[number]]
        draws.append(stats.spearmanr([each.judged for each in some], [each.questions for each in some]).statistic)
    assert (low, high) == pytest.approx(np.quantile(draws, (0.025, 0.975)), abs=0.12)
    assert "| ICT | 0 | - | - |" in text and "kept only" not in text.partition("## What cloze recall told")[2]


def test_what_the_rule_of_adapt_decided_is_told_beside_the_same_training_without_it(tmp_path):
    def kept(seed: int, value: float, step: int, split: str = "test") -> dict[str, object]:
        return {**line("ict-kept", "dense", seed, [value] * 9), "split": split, "cloze": {"kept_step": step}}

    records = [{**line("encoder", "dense", 0, [0.4] * 9), "split": split} for split in ("test", "other")]
    records += [kept(0, 0.5, 25), kept(1, 0.45, 50), kept(2, 0.38, 50), kept(0, 0.4, 0, "other")]
    records += [{**line("ict-distilled", "dense", 0, [0.37] * 9), "split": "other"}]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    [said] = page.decided(gains.Results(tmp_path / "runs.jsonl"))
    assert said == (
        "**The rule of `adapt`** (sentences must gain, and titles) kept the training in 3: by people's questions 2 gained (towns test: +0.050 to +0.100) and "
        "1 lost (towns test: -0.020 to -0.020), of 4 runs on 2 sets. It kept the encoder in 1; the same training, always kept, was -0.030 on towns other."
    )


def test_realm_is_compared_with_its_own_start_seed_by_seed(tmp_path):
    """`realm` gains .1 over the ICT of its seed, wherever that is; seed 2 has no ICT and does not count; the causal reader starts from the encoder."""
    records = [
        line("encoder", "dense", 0, [0.4] * 20),
        *(line("ict", "dense", seed, [0.3 + 0.2 * seed] * 20) for seed in (0, 1)),
        *(line("realm", "dense", seed, [0.4 + 0.2 * seed] * 20) for seed in (0, 1, 2)),
        *({**line("causal", "dense", seed, [0.38] * 20), "device": "cuda"} for seed in (0, 1)),
        line("realm-kept", "dense", 0, [0.9] * 20),
        line("ict", "scores", 0, [0.6] * 20),
        line("realm", "scores", 0, [0.5] * 20),
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    text = page.page(gains.Results(file))
    assert "2 of the 11 measurements were made on a GPU" in text
    section = text.partition("## REALM beside what it started from")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "target" not in line]
    assert len(rows) == 3, "the start of the third arm was not measured"
    assert rows[0].endswith("| ICT | dense | **+0.100** | 2 | met |")
    assert rows[1].endswith("| ICT | hybrid, weighted sum | **-0.100** | 1 | missed |")
    assert rows[2].endswith("| encoder as published | dense | **-0.020** | 2 | missed |")
    assert re.search(r"\| a frozen causal[^\n]*\| dense .*\| 2 \| - \|", text), (
        "the minutes of a GPU are not those of a core"
    )


def test_the_same_seed_on_another_device_is_another_run(tmp_path):
    """On the GPU `realm` gains .1 over the ICT of the GPU, and on the CPU .2 over that of the CPU."""
    on_gpu = {"device": "cuda"}
    records = [
        line("encoder", "dense", 0, [0.4] * 20),
        line("ict", "dense", 0, [0.3] * 20),
        {**line("ict", "dense", 0, [0.5] * 20), **on_gpu},
        line("realm", "dense", 0, [0.5] * 20),
        {**line("realm", "dense", 0, [0.6] * 20), **on_gpu},
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    results = gains.Results(file)
    [place] = results.places
    found = results.over_start(place, "realm", "dense")
    assert found is not None and (found.seeds, round(found.mean, 6)) == (2, 0.15)
    assert results.values(place, ("ict", "dense")).mean() == pytest.approx(0.4)


def test_tsdae_deletes_three_words_in_five():
    rng, sentence = random.Random(0), " ".join(f"w{n}" for n in range(20))
    left = [rivals.damaged(sentence, rng).split() for _ in range(200)]
    assert sum(map(len, left)) / 200 == pytest.approx(8, abs=0.5)
    assert all(words == [word for word in sentence.split() if word in words] for words in left), "the order stays"
    assert all(rivals.damaged("one two", rng) for _ in range(50)), "one word at least is left"


@pytest.mark.slow
def test_tsdae_trains_an_encoder_that_import_reads(tmp_path):
    pytest.importorskip("sentence_transformers")
    texts = {f"Page {n}": [[f"The river number {n} runs to the town of {n}.", "It is long and old."]] for n in range(8)}
    blocks = make_blocks(tmp_path / "blocks", texts)
    make_sentence_encoder(tmp_path / "encoder", [text for [block] in texts.values() for text in block])
    encoder = str(tmp_path / "encoder")
    assert rivals.train_tsdae(encoder, blocks, 0, 2, 4, tmp_path / "trained")
    made = import_checkpoint(str(tmp_path / "trained"), tmp_path / "w", ImportExtras())["retriever"]
    before = import_checkpoint(encoder, tmp_path / "before", ImportExtras())["retriever"]
    assert made.content != before.content


def test_equal_values_share_their_rank():
    assert page.rank_correlation([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(3 / (10**0.5))
    assert page.rank_correlation([5, 1, 9], [-1, -2, 0]) == pytest.approx(1)
    assert np.isnan(page.rank_correlation([1, 1, 1], [1, 2, 3]))


def test_pages_are_ranked_by_their_best_passage(tmp_path):
    ranked = [("q", "ls#3", 9.0), ("q", "cp#0", 8.0), ("q", "ls#0", 7.0), ("r", "ls#0", 5.0)]
    (tmp_path / "run").write_text("".join(f"{query} Q0 {name} 1 {score} x\n" for query, name, score in ranked))
    lines = run._by_page(tmp_path / "run", tmp_path / "pages").read_text().splitlines()
    assert [each.split()[0::2][:2] for each in lines] == [["q", "ls"], ["q", "cp"], ["r", "ls"]]


def test_a_domain_of_squads_layout_judges_the_paragraph_of_each_question(tmp_path):
    article = {
        "title": "Bern",
        "paragraphs": [{"context": "A.", "qas": []}, {"context": "B.", "qas": [{"id": 7, "question": "?"}]}],
    }
    (tmp_path / "squad.json").write_text(json.dumps({"data": [article]}))
    domain = run.Domain.named(f"bern={tmp_path / 'squad.json'}", tmp_path)
    passages = [json.loads(each) for each in domain.corpus.read_text().splitlines()]
    assert [passage["text"] for passage in passages] == ["A.", "B."]
    assert domain.qrels.read_text().splitlines()[1].split() == ["7", passages[1]["_id"], "1"]
    pages = run.Domain.named("man=/data/man,dev,pages", tmp_path)
    assert (pages.folder, pages.split, pages.pages) == (Path("/data/man"), "dev", True)


def test_labels_are_drawn_by_the_seed_from_dev_queries(tmp_path):
    (tmp_path / "qrels").mkdir()
    lines = ["query-id\tcorpus-id\tscore", *(f"q{n}\tpage{n}\t1" for n in range(9))]
    (tmp_path / "qrels" / "dev.tsv").write_text("\n".join(lines) + "\n")
    pages = run.Domain("man", tmp_path, pages=True)

    def drawn(seed: int) -> list[str]:
        return pages.labels(4, seed, tmp_path / "out").read_text().splitlines()

    head, *rows = drawn(0)
    assert head == lines[0] and len(rows) == 4 and all(row.split("\t")[1].endswith("#0") for row in rows)
    assert {row.replace("#0", "") for row in rows} <= set(lines) and drawn(0) == [head, *rows] != drawn(1)
    assert pages.labels(10, 0, tmp_path) is None
    assert run.Domain("man", tmp_path, "dev").labels(4, 0, tmp_path) is None  # never those that are asked


def test_without_the_encoder_itself_there_is_no_page(tmp_path, monkeypatch, capsys):
    results, written = tmp_path / "runs.jsonl", tmp_path / "page.md"
    results.write_text(json.dumps(line("ict", "dense", 0, [0.5])) + "\n")
    monkeypatch.setattr(sys, "argv", ["gains_page.py", str(results), "--page", str(written)])
    page.main()
    assert "`encoder`" in capsys.readouterr().out and not written.exists()


def test_what_the_results_have_is_not_measured_again(tmp_path):
    recorder = run.Recorder(tmp_path / "runs.jsonl")
    recorder.append(line("encoder", "dense", 0, [1.0]))
    again = run.Recorder(tmp_path / "runs.jsonl")
    domain = run.Domain("towns", tmp_path / "nothing-is-read")
    bench = run.Bench(domain=domain, blocks=None, start=None, encoder="", folder=tmp_path, seed=0)
    again.measure(domain, bench, "encoder", "mini", ("dense",))
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 1


def test_an_arm_that_documents_do_not_allow_is_left_out(tmp_path, monkeypatch, capsys):
    def impossible(bench: run.Bench) -> None:
        raise InputError("0 documents with a recurring span")

    monkeypatch.setitem(run.ARMS, "spider", impossible)
    recorder = run.Recorder(tmp_path / "runs.jsonl")
    bench = run.Bench(run.Domain("towns", tmp_path), blocks=None, start=None, encoder="", folder=tmp_path, seed=0)
    recorder.measure(bench.domain, bench, "spider", "mini", ("dense",))
    assert "spider is not possible. 0 documents" in capsys.readouterr().err and not recorder.results.exists()


@pytest.mark.slow
def test_the_script_trains_arms_and_writes_the_page(tmp_path):
    """The inverse cloze task, and a causal language model that reads or writes questions, on two sets at once, measured without labels too. What is done is
    not done again.
    """

    def answer(number: int, body: dict[str, Any]) -> str:
        asked = body["messages"][0]["content"]
        return (
            f'{{"reason": "so", "grade": {len(asked) % 4}}}'
            if "judge" in asked
            else f"Where is number {body['seed']} told of?"
        )

    words = ["river", "stone", "lamp", "forest", "castle", "harbour", "bridge", "garden", "tower", "valley"]
    passages = [
        f"The {a} stands near the {b}. Its {b} is older than any {a}. People call it {a} {b}."
        for a in words
        for b in words
    ]
    domain = tmp_path / "towns"
    (domain / "qrels").mkdir(parents=True)
    rows = [{"_id": str(n), "title": text.split()[1], "text": text} for n, text in enumerate(passages)]
    (domain / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [{"_id": f"q{n}", "text": " ".join(passages[n].split()[-2:])} for n in range(0, 100, 9)]
    (domain / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    judged = "".join(f"{query['_id']}\t{query['_id'][1:]}\t1\n" for query in queries)
    (domain / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    paragraphs = [
        {"context": text, "qas": [{"id": f"s{n}", "question": text.split(".")[-2]}]}
        for n, text in enumerate(passages[:60])
    ]
    (tmp_path / "towns.json").write_text(json.dumps({"data": [{"title": "Towns", "paragraphs": paragraphs}]}))
    make_sentence_encoder(tmp_path / "encoder", passages)
    make_babbler(tmp_path / "gpt2")
    results, page_file = tmp_path / "runs.jsonl", tmp_path / "page.md"

    def adapt(endpoint: str) -> None:
        subprocess.run(
            ["bash", EXAMPLES.parent / "adapt.sh", tmp_path / "w", tmp_path / "encoder", f"towns={domain}", f"squad={tmp_path / 'towns.json'}"],
            env={
                **os.environ, "PYTHON": sys.executable, "RESULTS": str(results), "PAGE": str(page_file), "SEEDS": "1", "JOBS": "2",
                "ARMS": "encoder,ict,causal,generated,generated-hard", "SEARCHES": "dense,profile,generated,judged", "READER_LM": str(tmp_path / "gpt2"), "LM": "m", "ENDPOINT": endpoint,
            },
            check=True,
        )  # fmt: skip

    with chat_server(answer) as server:
        adapt(server.url)
    lines = results.read_text().splitlines()
    arms = "encoder", "ict", "causal", "generated", "generated-hard"
    for name in ("towns", "squad"):
        found = [json.loads(line) for line in lines]
        assert sorted((each["arm"], each["search"]) for each in found if each["domain"] == name) == sorted(
            [
                ("bm25", "bm25"),
                *((arm, search) for arm in arms for search in ("dense", "profile", "generated", "judged")),
            ]
        )
    assert "causal language model" in page_file.read_text()
    told = {
        (each["domain"], each["arm"]): each["told"] for each in map(json.loads, lines) if each["search"] == "judged"
    }
    assert len(told) == 10 and told["towns", "encoder"] == 0
    adapt("http://127.0.0.1:9")  # no server is asked again
    assert results.read_text().splitlines() == lines


def test_what_was_measured_on_some_sets_alone_has_a_table_of_its_own(tmp_path):
    records = [
        *({**line("encoder", "dense", 0, [0.4] * 50), "split": split} for split in ("test", "other")),
        *({**line("ict", "dense", 0, [0.5] * 50), "split": split} for split in ("test", "other")),
        {**line("spider", "dense", 0, [0.5] * 50), "split": "other"},
    ]
    results = tmp_path / "runs.jsonl"
    results.write_text("".join(json.dumps(record) + "\n" for record in records))
    text = page.page(gains.Results(results))
    first, some = (text.partition(f"## {title}")[2].partition("## ")[0] for title in ("Every way", "Ways measured on"))
    assert "| ICT | dense | **+0.100** | **+0.100** | +0.100 | +0.100 | 1 |" in first and "| Spider |" not in first
    assert "| Spider | dense | - | **+0.100** | 1 |" in some and "| ICT |" not in some

"""Cloze recall against brute force over texts, and the training that it watches."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError, InputError, NotFiniteError, QualityError
from realmctl.models.inputs import Collator
from realmctl.models.retriever import Retriever
from realmctl.tokens.token_search import occurrences
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.evaluation import cloze_recall
from realmctl.training.evaluation.cloze_recall import ClozePassages, gain, recall
from realmctl.training.evaluation.on_cloze import AMONG
from realmctl.training.ict import InverseClozeObjective
from realmctl.training.settings.retriever import IctSettings
from stages.eval_cloze import EvalCloze
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, Stopped, metrics_of, pretrain, stop_at
from tests.fixtures.cloze import scripted
from tests.fixtures.retriever import make_retriever

ICT = {"steps": 6, "batch_size": 8, "lr": 1e-2, "warmup": 1, "precision": "fp32", "checkpoint_every": 2}
WATCHED = {**ICT, "cloze_recall": 12, "cloze_every": 2}


def ict(chain: Chain, **values: object) -> IctInit:
    return IctInit(blocks=chain.blocks, retriever=chain.retriever, **{**WATCHED, **values})


def test_the_ranks_are_those_of_brute_force_over_the_blocks(chain: Chain):
    """Each block is laid out by hand, with the sentence left out where one was drawn, and compared one by one."""
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    passages, retriever = ClozePassages.drawn(corpus, 12, 30, seed=3), Retriever.load(chain.retriever.path)
    assert len(passages.sentences) == 12 and len(passages) == 30
    found = passages.ranks(retriever.train(), collator, "fp32")
    assert retriever.training
    retriever.eval()
    with torch.no_grad():
        blocks = [
            retriever.embed_blocks(collator.block([title], [body], 48))[0]
            for title, body in zip(passages.titles, passages.bodies, strict=True)
        ]
        for number, sentence in enumerate(passages.sentences):
            query = retriever.embed_queries(collator.query([sentence], 512))[0]
            scores = [float(query @ block) for block in blocks]
            assert found[number] == 1 + sum(score > scores[number] for score in scores)


@torch.no_grad()
def test_scores_that_are_not_finite_are_no_ranks(chain: Chain):
    """Finite vectors whose products overflow: NaN is neither above nor below, and a rank of 0 would be the best."""
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    retriever = Retriever.load(chain.retriever.path)
    retriever.query_tower.norm.weight.fill_(1e30)
    with pytest.raises(NotFiniteError, match=r"the retriever gives scores that are not finite"):
        ClozePassages.drawn(corpus, 12, 30, seed=3).ranks(retriever, collator)


def test_a_sentence_is_cut_out_of_its_own_block_alone(chain: Chain):
    corpus = Corpus(chain.blocks)
    passages, again = (ClozePassages.drawn(corpus, 12, 0, seed=1) for _ in range(2))
    assert len(passages) == len(corpus) and [*map(list, passages.sentences)] == [*map(list, again.sentences)]
    bodies = sorted(tuple(corpus.tokens(row)) for row in range(len(corpus)))
    restored = []
    for body, sentence in zip(passages.bodies, [*passages.sentences, *([None] * 99)], strict=False):
        if sentence is None:
            restored.append(tuple(body))
            continue
        whole = [tuple(np.concatenate([body[:at], sentence, body[at:]])) for at in range(len(body) + 1)]
        restored.append(next(each for each in whole if each in bodies))
        assert len(sentence) >= 5 and len(body)
    assert sorted(restored) == bodies


def test_ict_does_not_train_on_the_sentences_that_measure_it(chain: Chain):
    """Neither on those of its own seed nor on those of the next, with which `adapt` measures again."""
    settings = IctSettings(blocks=chain.blocks, encoder=None, batch_size=40, cloze_recall=30, seed=5)
    corpus, collator = Corpus(chain.blocks), Collator.of(Tokenizer.load(chain.blocks.path))
    objectives = [
        InverseClozeObjective(Retriever.load(chain.retriever.path), corpus, collator, each)
        for each in (settings, replace(settings, cloze_recall=0))
    ]
    measured = {
        (passages.titles[place].tobytes(), sentence.tobytes())
        for seed in (5, 6)
        for passages in [ClozePassages.drawn(corpus, 30, 0, seed)]
        for place, sentence in enumerate(passages.sentences)
    }
    asked = [
        [
            (example.blocks[0][0].tobytes(), example.query.tobytes()) in measured
            for step in range(20)
            for example in objective.examples(step)
        ]
        for objective in objectives
    ]
    assert len(asked[0]) == 800 and not any(asked[0]) and any(asked[1])


def test_a_block_whose_sentences_all_measure_is_trained_on_all_the_same(tmp_path):
    two = {f"Page {n}": [[f"The first sentence of page {n}.", f"And the second one of {n}."]] for n in range(6)}
    blocks = make_blocks(tmp_path / "blocks", two)
    settings = IctSettings(blocks=blocks, encoder=None, batch_size=6, cloze_recall=6)
    retriever = Retriever.load(make_retriever(tmp_path / "retriever", blocks).path)
    objective = InverseClozeObjective(retriever, Corpus(blocks), Collator.of(Tokenizer.load(blocks.path)), settings)
    assert 2 in map(len, objective.held_out.values()) and len(objective.examples(0)) == 6


def test_a_copy_of_a_block_does_not_take_part(tmp_path):
    """The copy has the whole sentence, so it would stand before the block that lost it."""
    bodies = [[f"The first sentence of page {n}.", f"And the second one of {n}."] for n in range(8)]
    corpus = Corpus(make_blocks(tmp_path / "blocks", {"Page": bodies + bodies[:6]}))
    passages = ClozePassages.drawn(corpus, 8, 0, seed=0)
    assert len(passages) == len(passages.sentences) == 8
    for sentence in passages.sentences:
        assert not any(len(occurrences(body, sentence)) for body in passages.bodies)


def test_more_sentences_are_asked_for_than_blocks_have(tmp_path):
    """Blocks that cannot lose a sentence are among the passages still, and no more passages than are asked for."""
    two = {f"Page {n}": [[f"The first sentence of page {n}.", f"And the second one of {n}."]] for n in range(6)}
    blocks = make_blocks(tmp_path / "blocks", {**two, **{f"Line {n}": [[f"A line {n}."]] for n in range(9)}})
    for passages, expected in ((12, 12), (99, 15), (0, 15), (4, 6)):
        found = ClozePassages.drawn(Corpus(blocks), 12, passages, seed=0)
        assert (len(found.sentences), len(found)) == (6, expected)


def test_short_queries_are_runs_of_the_same_sentences(chain: Chain):
    whole, short = (ClozePassages.drawn(Corpus(chain.blocks), 12, 30, seed=1, longest=longest) for longest in (0, 4))
    assert [*map(list, whole.bodies[:12])] == [*map(list, short.bodies[:12])]
    for sentence, query in zip(whole.sentences, short.sentences, strict=True):
        runs = [list(sentence[at : at + 4]) for at in range(len(sentence) - 3)]
        assert list(query) in runs
    assert any(query[0] != sentence[0] for query, sentence in zip(short.sentences, whole.sentences, strict=True))


def test_a_third_of_the_titles_is_in_other_words(tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "FEWEST_TITLES", 2)
    rivers, hills, towns = ("Elbe", "Oder", "Rhine"), ("Deister", "Harz", "Solling"), ("Ulm", "Kiel", "Trier")
    pages = {
        **{f"{name} river": [[f"The river {name} is long."]] for name in rivers},
        **{f"{name} hills": [[f"Some call it {name} forest."]] for name in hills},
        **{f"{name} harbour": [["Boats lie here."]] for name in towns},
    }
    corpus = Corpus(make_blocks(tmp_path / "blocks", pages))
    named = {corpus.title(row).tobytes(): block.title for row, block in enumerate(corpus)}
    for seed in range(3):
        titles = ClozePassages.titled(corpus, 9, 0, seed=seed)
        reworded = [
            named[title.tobytes()]
            for title, other in zip(titles.sentences, titles.in_other_words(), strict=True)
            if other
        ]
        assert sorted(reworded) == sorted(f"{name} harbour" for name in towns)
    monkeypatch.setattr(cloze_recall, "FEWEST_TITLES", 5)
    assert ClozePassages.titled(corpus, 9, 0, seed=0).in_other_words().sum() == 5


def test_blocks_without_sentences_to_cut_are_refused(tmp_path):
    blocks = make_blocks(tmp_path / "blocks", {f"Page {n}": [["One sentence that stands alone."]] for n in range(3)})
    with pytest.raises(InputError, match="0 blocks"):
        ClozePassages.drawn(Corpus(blocks), 5, 0, seed=0)


def test_a_title_asks_for_a_block_that_does_not_contain_it(tmp_path):
    pages = {
        f"Town {n}": [[f"Town {n} stands alone."], [f"Its river is number {n}."], ["Nobody knows."]] for n in range(8)
    }
    blocks = make_blocks(tmp_path / "blocks", {**pages, "": [["A page without a title."]]})
    corpus = Corpus(blocks)
    titles = {tuple(corpus.title(row)) for row in range(len(corpus))} - {()}
    found = ClozePassages.titled(corpus, 5, 0, seed=0)
    assert len({*map(tuple, found.sentences)}) == 5 and {*map(tuple, found.sentences)} <= titles
    assert not any(len(occurrences(body, title)) for title, body in zip(found.sentences, found.bodies, strict=False))
    assert not any(map(len, found.titles)) and len(found) == len(titles) + 1  # one block a title, and that without one
    again, other = (ClozePassages.titled(corpus, 5, 0, seed=seed) for seed in (0, 1))
    assert [*map(list, again.sentences)] == [*map(list, found.sentences)] != [*map(list, other.sentences)]
    assert len(ClozePassages.titled(corpus, 5, 7, seed=0)) == 7
    assert ClozePassages.titled(corpus, 9, 0, seed=0) is None  # eight titles are too few


def test_recall_and_paired_gain_have_their_closed_forms():
    ranks, start = np.array([1, 1, 2, 6, 30]), np.array([2, 1, 4, 6, 60])
    found = recall(ranks)
    assert [found[f"cloze_recall@{depth}"] for depth in (1, 5, 20)] == [0.4, 0.6, 0.8]
    assert found["cloze_rr"] == pytest.approx(np.mean([1, 1, 1 / 2, 1 / 6, 1 / 30]), abs=1e-6)
    assert found["cloze_recall@1_low"] < 0.4 < found["cloze_recall@1_high"]
    differences = [0.5, 0, 0.25, 0, 1 / 60]
    half = 1.96 * np.std(differences, ddof=1) / math.sqrt(5)
    won = gain(ranks, start)
    assert won == pytest.approx(
        (np.mean(differences), np.mean(differences) - half, np.mean(differences) + half), abs=1e-6
    )
    assert not won.shown and gain(np.full(9, 1), np.full(9, 2)).shown


def test_it_is_measured_at_the_start_between_and_at_the_end_and_changes_no_weight(chain: Chain, tmp_path):
    plain = ict(chain, cloze_every=6).make(tmp_path / "plain")
    made = ict(chain).make(tmp_path / "watched")
    lines = metrics_of(made)
    assert [line["step"] for line in lines if "cloze_recall@5" in line] == [1, 3, 5, 6]  # after 0, 2, 4 and 6 steps
    assert [line.get("loss") for line in lines[:6]] == [line.get("loss") for line in metrics_of(plain)[:6]]
    assert made.file("block/model.safetensors").read_bytes() == plain.file("block/model.safetensors").read_bytes()
    collator, start = Collator.of(Tokenizer.load(chain.blocks.path)), Retriever.load(chain.retriever.path)
    passages = ClozePassages.drawn(Corpus(chain.blocks), 12, AMONG, seed=0)
    first, last = (passages.ranks(each, collator, "fp32") for each in (start, Retriever.load(made.path)))
    assert lines[0]["cloze_rr"] == recall(first)["cloze_rr"] and lines[0]["cloze_gain"] == 0
    assert made.metrics["cloze_gain"] == lines[-1]["cloze_gain"] == gain(last, first).mean


def weights_after(chain: Chain, folder, steps: int) -> bytes:
    """The weights after some steps."""
    made = ict(chain, keep="best").make(folder)
    assert made.metrics["kept_step"] == steps
    return made.file("block/model.safetensors").read_bytes()


def test_the_best_weights_are_kept_and_without_a_shown_gain_the_start(chain: Chain, tmp_path, monkeypatch):
    scripted(monkeypatch, 5, 3, 2, 4)  # after 0, 2, 4 and 6 steps
    best = weights_after(chain, tmp_path / "best", 4)
    scripted(monkeypatch, 5, 3, 2, 4)
    made = ict(chain, keep="gain").make(tmp_path / "gain")
    assert made.file("block/model.safetensors").read_bytes() == best and made.metrics["kept_step"] == 4
    scripted(monkeypatch, 5, 6, 7, 8)
    kept = ict(chain, keep="gain").make(tmp_path / "start")
    start = chain.retriever.file("block/model.safetensors").read_bytes()
    assert kept.file("block/model.safetensors").read_bytes() == start != best
    assert kept.file("block/model.safetensors").samefile(chain.retriever.file("block/model.safetensors")), "not twice"
    assert kept.metrics["cloze_gain"] == kept.metrics["kept_step"] == 0
    assert kept.metrics["last_cloze_gain"] == pytest.approx((1 / 8 + 1 / 9 - 1 / 5 - 1 / 6) / 2, abs=1e-6)


def test_a_gain_of_sentences_does_not_count_where_titles_show_none(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "occurrences", lambda *given: ())  # these blocks contain their titles
    scripted(monkeypatch, 5, 3, 2, 1, titles=(4, 3, 4, 6))
    made = ict(chain, keep="gain", cloze_titles=12).make(tmp_path / "gain")
    assert made.metrics["kept_step"] == 2  # later sentences gain more, and titles no more than the start
    assert [np.sign(line["title_gain"]) for line in metrics_of(made) if "title_gain" in line] == [0, 1, 0, -1]
    assert made.metrics["title_rr"] == pytest.approx((1 / 3 + 1 / 4) / 2, abs=1e-6)
    within_noise = [1, *[4, 5] * 5, 5]
    scripted(monkeypatch, 5, 3, 2, 1, titles=(4, within_noise, within_noise, 4))
    start = ict(chain, keep="gain", cloze_titles=12).make(tmp_path / "start")
    assert [line["title_gain"] > 0 for line in metrics_of(start) if "title_gain" in line] == [False, True, True, False]
    assert start.metrics["kept_step"] == 0 == start.metrics["title_gain"] == start.metrics["last_title_gain"]
    scripted(monkeypatch, 5, 3, 2, 1, titles=(4, 5, 5, 5))
    assert ict(chain, keep="best", cloze_titles=12).make(tmp_path / "best").metrics["kept_step"] == 6


def test_a_gain_of_titles_does_not_count_where_those_in_other_words_show_none(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "occurrences", lambda *given: ())  # these blocks contain their titles
    monkeypatch.setattr(ClozePassages, "in_other_words", lambda passages: np.arange(12) < 4)
    alike = [4] * 4 + [1] * 8
    scripted(monkeypatch, 5, 3, 2, 1, titles=(4, alike, alike, alike))
    made = ict(chain, keep="gain", cloze_titles=12).make(tmp_path / "start")
    assert made.metrics["kept_step"] == 0 == made.metrics["last_reworded_title_gain"]
    assert made.metrics["last_title_gain_low"] > 0


def test_unless_lost_keeps_the_last_weights_without_a_shown_loss(chain: Chain, tmp_path, monkeypatch):
    within_noise = [1, *[6, 5] * 5, 6]
    scripted(monkeypatch, 5, 3, within_noise, 8)
    made = ict(chain, keep="unless-lost").make(tmp_path / "noise")
    lines = [line for line in metrics_of(made) if "cloze_gain" in line]
    assert [line["cloze_gain_low"] > 0 for line in lines] == [False, True, False, False]
    assert [line["cloze_gain_high"] < 0 for line in lines] == [False, False, False, True]
    assert made.metrics["kept_step"] == 4
    scripted(monkeypatch, 5, 6, 7, 8)
    assert ict(chain, keep="unless-lost").make(tmp_path / "start").metrics["kept_step"] == 0
    scripted(monkeypatch, 5, 5, 5, 5)
    assert ict(chain, keep="unless-lost").make(tmp_path / "equal").metrics["kept_step"] == 6


def test_unless_lost_asks_titles_for_a_gain(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "occurrences", lambda *given: ())  # these blocks contain their titles
    scripted(monkeypatch, 5, 5, 5, 5, titles=(4, 3, 4, 4))
    made = ict(chain, keep="unless-lost", cloze_titles=12).make(tmp_path / "gain")
    assert made.metrics["kept_step"] == 2


def test_titles_are_measured_again_by_a_run_that_goes_on(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "occurrences", lambda *given: ())
    settings = {"keep": "gain", "cloze_titles": 12}
    whole = ict(chain, **settings).make(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 4)
        with pytest.raises(Stopped):
            ict(chain, **settings).make(tmp_path / "again")
    again = ict(chain, **settings).make(tmp_path / "again")
    assert again.content == whole.content and again.metrics["title_gain"] == whole.metrics["title_gain"]


def test_a_run_that_was_stopped_keeps_what_one_that_was_not_keeps(chain: Chain, tmp_path, monkeypatch):
    whole = ict(chain, keep="best").make(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 5)
        with pytest.raises(Stopped):
            ict(chain, keep="best").make(tmp_path / "again")
    assert ict(chain, keep="best").make(tmp_path / "again").content == whole.content


def test_a_shown_loss_raises_the_alarm_and_may_stop_the_run(chain: Chain, tmp_path, monkeypatch):
    scripted(monkeypatch, 2, 4, 4, 4)
    made = ict(chain).make(tmp_path / "r")
    assert made.metrics["alarms"]["cloze_lost"] == 1 and metrics_of(made)[2]["alarms"] == ["cloze_lost"]
    scripted(monkeypatch, 2, 2, 2, 2)
    assert not ict(chain).make(tmp_path / "equal").metrics["alarms"].get("cloze_lost")
    scripted(monkeypatch, 2, 4)
    with pytest.raises(QualityError, match="cloze_lost"):
        ict(chain, stop_on=("cloze_lost",)).make(tmp_path / "stopped")


def test_pretraining_logs_it_too(chain: Chain, tmp_path):
    cloze = {name: value for name, value in WATCHED.items() if name.startswith("cloze")}
    made = pretrain(chain, **{**cloze, "steps": 3}).make(tmp_path / "model")
    assert sum("cloze_recall@5" in line for line in metrics_of(made)) >= 2 and "cloze_gain" in made.metrics


@pytest.mark.parametrize(
    "settings",
    [
        *({"keep": "gain"}, {"cloze_titles": 9}, {"cloze_every": 9}),
    ],
)
def test_what_needs_the_measure_asks_for_it(chain: Chain, settings):
    with pytest.raises(ConfigError, match="--cloze-recall"):
        IctInit(blocks=chain.blocks, retriever=chain.retriever, **settings)


def test_of_one_sentence_or_title_there_is_no_interval(chain: Chain):
    for asked in ({"cloze_recall": 1}, {"cloze_recall": 12, "cloze_titles": 1}):
        with pytest.raises(ConfigError, match=f"--{[*asked][-1].replace('_', '-')} 1: .*interval"):
            ict(chain, **asked)
    with pytest.raises(ConfigError, match=r"--titles 1: .*interval"):
        EvalCloze(blocks=chain.blocks, retriever=chain.retriever, titles=1)


def test_eval_cloze_measures_either_search(chain: Chain, tmp_path):
    """BM25 against its searcher over blocks that really lack the sentences."""
    inputs = {"blocks": chain.blocks, "sentences": 12, "precision": "fp32"}
    passages = ClozePassages.drawn(Corpus(chain.blocks), 12, 0, seed=0)
    collator = Collator.of(Tokenizer.load(chain.blocks.path))
    other = make_retriever(tmp_path / "other", chain.blocks, seed=5)
    ranks, start = (passages.ranks(Retriever.load(each.path), collator, "fp32") for each in (chain.retriever, other))
    dense = EvalCloze(**inputs, retriever=chain.retriever, start=other).make(tmp_path / "dense").metrics
    assert {name: dense[name] for name in recall(ranks)} == recall(ranks)
    assert (dense["gain"], dense["gain_low"], dense["gain_high"]) == gain(ranks, start)
    expected = []
    counts = [Counter([*title, *body]) for title, body in zip(passages.titles, passages.bodies, strict=True)]
    mean = sum(sum(each.values()) for each in counts) / len(counts)
    for number, sentence in enumerate(passages.sentences):
        scores = []
        for each in counts:
            norm = 0.9 * (1 - 0.4 + 0.4 * sum(each.values()) / mean)
            holding = {word: sum(word in one for one in counts) for word in sentence}
            scores.append(
                sum(
                    math.log(1 + (len(counts) - holding[word] + 0.5) / (holding[word] + 0.5))
                    * each[word]
                    / (each[word] + norm)
                    for word in sentence
                )
            )
        expected.append(sum(score >= scores[number] - 1e-6 for score in scores))
    bm25 = EvalCloze(**inputs, method="bm25").make(tmp_path / "bm25").metrics
    assert {name: bm25[name] for name in recall(np.array(expected))} == recall(np.array(expected))


def test_eval_cloze_asks_titles_too(chain: Chain, tmp_path, monkeypatch):
    monkeypatch.setattr(cloze_recall, "occurrences", lambda *given: ())  # these blocks contain their titles
    inputs = {"blocks": chain.blocks, "sentences": 12, "titles": 12, "precision": "fp32"}
    other = make_retriever(tmp_path / "other", chain.blocks, seed=5)
    stage = EvalCloze(**inputs, retriever=chain.retriever, start=other)
    found = stage.make(tmp_path / "w").metrics
    gains = {name for name in found if "gain" in name}
    assert {*stage.measure_names()} == {*(f"cloze_recall@{k}" for k in (1, 5, 20)), "cloze_rr", "title_rr"} | gains
    titles, collator = (
        ClozePassages.titled(Corpus(chain.blocks), 12, 0, 0),
        Collator.of(Tokenizer.load(chain.blocks.path)),
    )
    ranks, start = (titles.ranks(Retriever.load(each.path), collator, "fp32") for each in (chain.retriever, other))
    assert found["titles"] == 12 and found["title_rr"] == pytest.approx((1 / ranks).mean(), abs=1e-6)
    assert (found["title_gain"], found["title_gain_low"], found["title_gain_high"]) == gain(ranks, start)
    with pytest.raises(ConfigError, match="--titles"):
        EvalCloze(**inputs, method="bm25").check()


def test_bm25_of_stems_finds_a_passage_by_other_endings(chain: Chain):
    words = Tokenizer.load(chain.blocks.path)
    sentence, *bodies = words.tokens(["painting", "painted walls", "sting in pain"])
    passages = ClozePassages([sentence], [np.array([], np.int64)] * 2, bodies)
    by_stems = passages.bm25_scores(words, "english")[0]
    assert by_stems[0] > 0 == by_stems[1]
    assert (passages.bm25_scores(words)[0] != by_stems).any()
    assert not passages.bm25_scores(words, compared="words").any()

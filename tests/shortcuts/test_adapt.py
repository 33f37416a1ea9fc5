"""`realmctl adapt`: documents, an encoder and minutes become a search, with words on what was gained."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.settings import language_of
from realmctl.errors import InputError
from realmctl.models.retriever import Retriever
from realmctl.pipeline.trial import Trial
from realmctl.shortcuts import adapt
from realmctl.training import budget
from realmctl.training.evaluation.cloze_recall import ClozePassages
from stages.embed import Embed
from tests.fixtures.chain import Chain, documents
from tests.fixtures.cloze import scripted
from tests.fixtures.encoder_folders import folder_for


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"id": f"{title} {number}", "title": title, "text": " ".join(block).replace("[[", "").replace("]]", "")}
        for title, blocks in documents().items()
        for number, block in enumerate(blocks)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_from_documents_to_an_adapted_search(realmctl, chain: Chain, tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(60.0))  # so training has a tenth of the minute
    monkeypatch.setattr(budget, "_seconds", lambda *given: 0.95 * 6 / 20.5)  # twenty steps fit
    monkeypatch.setattr(
        budget, "time", SimpleNamespace(monotonic=lambda: 0.0)
    )  # and a measurement takes no time, however busy the machine
    plain = ClozePassages.ranks
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    words = (
        "adapt",
        corpus,
        "--encoder",
        encoder,
        "--minutes",
        1,
        "--sentences",
        12,
        "--language",
        "de",
        "--workspace",
        tmp_path / "w",
    )
    scripted(monkeypatch, *range(60, 1, -1))  # each measurement is better than the one before
    code, out, err = realmctl(*words, "--json")
    found = json.loads(out)
    assert code == 0 and found["steps"] == found["kept_step"] == 20, err
    told = err.splitlines()  # what was decided, and nothing of the stages
    assert len(told) == 2 and "40 blocks of 40 documents, language de" in told[0] and "minutes of training" in told[1]
    assert found["made"]["retriever"].endswith("retriever/v2") and found["blocks"] == 40
    monkeypatch.setattr(ClozePassages, "ranks", plain)
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(1.0))  # a second run keeps the share of the first
    code, out, err = realmctl(*words)
    assert code == 0 and "After 20 steps" in out and 'realmctl search "your words"' in out, err
    assert language_of(open_artifact(tmp_path / "w/blocks/v1")) == "de"
    code, out, err = realmctl("search", "Where was Ada Lorn born?", "--workspace", tmp_path / "w", "--json")
    assert code == 0 and json.loads(out)["results"][0]["hits"], err
    assert json.loads(out)["search"]["bm25_stemmer"] == "de" and json.loads(out)["search"]["method"] == "hybrid"
    start, adapted = (Retriever.load(open_artifact(tmp_path / "w/retriever" / each).path) for each in ("v1", "v2"))
    assert start.layout == adapted.layout and start.block_encoder_hash() != adapted.block_encoder_hash()


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_minutes_that_leave_too_few_steps_are_refused_and_the_minutes_that_are_enough_are_named(
    realmctl, chain: Chain, tmp_path, corpus, monkeypatch, again
):
    """Twenty steps of six seconds, and a minute and more for the rest. What is there is no obstacle to a faster machine."""
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(60.0))
    monkeypatch.setattr(budget, "_seconds", lambda *given: 6.0)
    words = ("adapt", corpus, "--encoder", folder_for(chain.blocks, tmp_path / "encoder"), "--sentences", 12)
    code, _, err = realmctl(*words, "--minutes", 1, "--workspace", tmp_path / "w")
    assert code == 2 and "leaves time for 0 steps" in err and "realmctl index-docs" in err
    assert re.search(r"--minutes [34] on this machine", err), err
    if again:
        monkeypatch.setattr(budget, "_seconds", lambda *given: 0.01)
        code, _, err = realmctl(*words, "--minutes", 2, "--workspace", tmp_path / "w")
        assert code == 0, err


def test_with_too_few_sentences_it_says_what_works_instead(realmctl, chain: Chain, tmp_path, corpus):
    few = tmp_path / "few"
    few.mkdir()
    (few / "few.jsonl").write_text("".join(corpus.read_text().splitlines(keepends=True)[:6]))
    (few / "scan.pdf").write_bytes(b"%PDF-1.4\n")
    encoder = folder_for(chain.blocks, tmp_path / "encoder")
    words = ("adapt", few, "--encoder", encoder, "--language", "en", "--workspace", tmp_path / "w")
    code, _, err = realmctl(*words)
    assert code == InputError.exit_code and "has 6 different blocks" in err
    code, _, err = realmctl(*words, "--bad-files", "fail")
    assert code == InputError.exit_code and "scan.pdf" in err and "has 6 blocks" not in err
    code, _, err = realmctl(*words, "--bad-files", "skip")
    assert code == InputError.exit_code and "has 6 different blocks" in err and "realmctl index-docs" in err
    assert not (tmp_path / "w/retriever/v2").exists()


def test_training_has_what_the_rest_of_the_minutes_leaves(chain: Chain, tmp_path, monkeypatch):
    made = {
        "blocks": chain.blocks,
        "retriever": chain.retriever,
    }  # 40 blocks, embedded once, and twice by the last measurement
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(3.0))
    monkeypatch.setattr(adapt.time, "monotonic", lambda: 12.0)
    assert adapt.minutes_of_training(1.0, 0.0, made, tmp_path) == pytest.approx(1 - (12 + 1.1 * 9) / 60, abs=1e-3)
    monkeypatch.setattr(Embed, "trial", lambda stage: Trial(5.0))
    assert adapt.minutes_of_training(1.0, 0.0, made, tmp_path) > 0.6
    assert adapt.minutes_of_training(2.0, 0.0, made, tmp_path) == pytest.approx(2 - (12 + 1.1 * 15) / 60, abs=1e-3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "before it was 30.0%"),
        ({"gain_low": -0.01}, "on these pieces no gain is shown"),
        ({"kept_step": 0}, "the encoder is kept as it was: 30.0%"),
        ({"kept_step": 0}, "of sentences by +0.030 [+0.010, +0.050]."),
        (
            {
                "kept_step": 0,
                "last_title_gain": 0.01,
                "last_title_gain_low": 0.004,
                "last_title_gain_high": 0.016,
                **dict.fromkeys(("last_reworded_title_gain", "last_reworded_title_gain_low"), -0.01),
                "last_reworded_title_gain_high": 0.008,
            },
            "of titles by +0.010 [+0.004, +0.016], and that of reworded titles (fewest words shared with their block) by -0.010 [-0.010, +0.008]. All must gain.",
        ),
        ({"kept_step": 1, "steps": 1}, "After 1 step of training"),
    ],
)
def test_it_says_what_was_gained_and_how_to_search(changes, said):
    found = {
        "blocks": 40,
        "minutes": 2.0,
        "steps": 50,
        "kept_step": 40,
        "sentences": 400,
        "recall@5_before": 0.3,
        "recall@5_after": 0.4,
        "gain": 0.05,
        "gain_low": 0.02,
        "gain_high": 0.08,
        "last_cloze_gain": 0.03,
        "last_cloze_gain_low": 0.01,
        "last_cloze_gain_high": 0.05,
        "search": 'realmctl search "your words"',
        "made": {"retriever": "my w/retriever/v2", "index": "my w/index/v1"},
    }
    assert said in adapt.text_of({**found, **changes})

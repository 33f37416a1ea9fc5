"""Closed-book T5 and GPT-2 from the command line: salient spans, questions, answers; and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.extras.practice.reading_practice import partners
from realmctl.lab.language_models.lm_finetune import LmFinetune
from realmctl.lab.language_models.models.files import load_language_model
from realmctl.lab.language_models.objective import SalientSpanPairs
from realmctl.spans.tagged_queries import TaggedQueries
from stages.eval_em import EvalEm
from tests.fixtures.chain import Stopped, stop_at
from tests.fixtures.language_models import byte_tokenizer, make_gpt2, make_t5

SMALL = {"batch_size": 4, "steps": 4, "warmup": 1, "checkpoint_every": 2, "answer_length": 12, "precision": "fp32"}


@pytest.fixture
def facts(tmp_path):
    """Twenty questions, no two alike, each with a short answer."""
    path = tmp_path / "facts.jsonl"
    lines = [
        json.dumps({"question": f"{name}?", "answer": [name[::-1] + chr(70 + number)]})
        for number, name in enumerate(first + second for first in "abcde" for second in "wxyz")
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("make", [make_t5, pytest.param(make_gpt2, marks=pytest.mark.slow)])
def test_it_memorises_twenty_answers(make, chain, facts, tmp_path):
    lm = make(tmp_path / "lm", dropout=0.0, width=64)
    tuned = LmFinetune(
        lm=str(lm), questions=facts, steps=150, batch_size=20, lr=3e-3, warmup=10, answer_length=8, precision="fp32"
    ).make(tmp_path / "qa")
    scores = EvalEm(qa_model=tuned, blocks=chain.blocks, questions=facts).make(tmp_path / "scores")
    assert scores.metrics["em"] == 1.0
    assert tuned.metrics["accuracy"] > 0.99


def test_a_resumed_run_has_the_same_weights(chain, tmp_path, monkeypatch):
    """Dropout is on, so the random numbers of a step must be the same too."""
    stage = LmFinetune(lm=str(make_t5(tmp_path / "t5")), questions=chain.questions, **SMALL)
    whole = stage.make(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        with pytest.raises(Stopped):
            stage.make(tmp_path / "stopped")
    assert stage.make(tmp_path / "stopped").content == whole.content


def test_answers_under_another_name(facts, tmp_path):
    named = tmp_path / "named.jsonl"
    named.write_text(facts.read_text().replace('"answer"', '"gold"'))
    lm = str(make_t5(tmp_path / "t5", dropout=0.0))
    known = LmFinetune(lm=lm, questions=facts, **SMALL).make(tmp_path / "known")
    assert (
        LmFinetune(lm=lm, questions=named, answer_field="gold", **SMALL).make(tmp_path / "named").content
        == known.content
    )


def test_salient_spans_then_questions_then_answers(realmctl, chain, tmp_path):
    lm = make_t5(tmp_path / "t5")
    code, out, err = realmctl(
        "lm-init", "--spans", chain.spans.path, "--lm", lm, "--steps", 2, "--batch-size", 3, "--out", "lm"
    )
    assert code == 0, err
    made = open_artifact(out.strip())
    assert made.kind == "language-model" and made.manifest.sources["lm"][0].name == "t5/"
    assert {name.rpartition(".")[2] for name in made.manifest.files} == {"json", "jsonl", "safetensors"}
    code, out, err = realmctl(
        "lm-finetune",
        "--language-model",
        "lm",
        "--questions",
        chain.questions,
        "--steps",
        2,
        "--beams",
        3,
        "--answer-length",
        5,
        "--out",
        "qa",
    )
    assert code == 0, err
    assert open_artifact(out.strip()).lineage["language-model"] == made.content
    inputs = ("--qa-model", "qa", "--blocks", chain.blocks.path)
    code, out, err = realmctl("eval-em", *inputs, "--questions", chain.questions)
    assert code == 0, err
    scores = open_artifact(out.strip())
    assert "em" in scores.metrics and not any("recall" in name for name in scores.metrics)
    code, out, err = realmctl("ask", "Where was Ada Lorn born?", *inputs, "--json")
    assert code == 0, err
    answers = json.loads(out)["answers"]
    assert 1 <= len(answers) <= 3 and answers == sorted(answers, key=lambda answer: -answer["score"])


def test_salient_spans_are_in_t5s_format(chain, tmp_path):
    model = load_language_model(make_t5(tmp_path / "t5"))
    queries = TaggedQueries(chain.spans)
    pairs = SalientSpanPairs(model, queries, length=128)
    for number in range(len(pairs)):
        source, target = (
            model.tokenizer.decode(ids, skip_special_tokens=False)
            for ids in pairs.draw(number, np.random.default_rng(0))
        )
        hidden = target.removeprefix("<extra_id_0> ").removesuffix(" <extra_id_1></s>")
        record = queries.records[number]
        assert source.replace("<extra_id_0>", hidden) == record["text"]
        assert hidden in [record["text"][start:end] for start, end, _ in record["spans"]]
    short = SalientSpanPairs(model, queries, length=8)
    hidden_id = model.tokenizer.token_to_id("<extra_id_0>")
    for number in range(len(short)):
        source, _ = short.draw(number, np.random.default_rng(0))
        assert len(source) <= 7 and hidden_id in source


def test_a_causal_model_goes_on_with_the_span(chain, tmp_path):
    model, queries = load_language_model(make_gpt2(tmp_path / "gpt2")), TaggedQueries(chain.spans)
    pairs = SalientSpanPairs(model, queries, length=128)
    for number in range(len(pairs)):
        source, target = pairs.draw(number, np.random.default_rng(0))
        before, hidden = (model.tokenizer.decode(ids) for ids in (source[1:], target))
        record = queries.records[number]
        assert source[0] == model.special.start and record["text"].startswith(before + hidden)
        assert hidden.strip() in [record["text"][start:end] for start, end, _ in record["spans"]]


@pytest.mark.parametrize("make", [make_t5, make_gpt2])
def test_reading_practice_puts_the_block_that_tells_before_its_sentence(make, chain, tmp_path):
    model, queries, corpus = (
        load_language_model(make(tmp_path / "lm")),
        TaggedQueries(chain.spans),
        Corpus(chain.blocks),
    )
    pairs = SalientSpanPairs(model, queries, 250, corpus)
    texts, best, told, random = [block.text for block in corpus], partners(queries, corpus)[:, 0], 0, 0
    assert len(pairs) == (best >= 0).sum()
    for number, row in enumerate(np.flatnonzero(best >= 0)):
        source, target = (model.tokenizer.decode(ids) for ids in pairs.draw(number, np.random.default_rng(number)))
        [block] = [place for place, text in enumerate(texts) if f"\n{text}\n\n" in source]
        record, read = queries.records[int(row)], source.partition(f"{texts[block]}\n\n")[2]
        if make is make_gpt2:
            assert (read, target) == ("", record["text"])
        else:
            spans = [record["text"][start:end] for start, end, *_ in record["spans"]]
            assert target.strip() in spans and (
                target.strip() in texts[block] or not any(s in texts[block] for s in spans)
            )
        told, random = told + (block == best[row]), random + (block != best[row])
    assert told > 3 * random > 0


def test_what_is_refused(realmctl, chain, tmp_path):
    t5, unmarked = make_t5(tmp_path / "t5"), make_t5(tmp_path / "unmarked")
    byte_tokenizer(("<pad>", "</s>")).save(str(unmarked / "tokenizer.json"))
    bare = make_t5(tmp_path / "bare")
    (bare / "tokenizer.json").unlink()
    asked = ("--questions", chain.questions)
    for code, text, command in (
        (3, "<extra_id_0>", ("lm-init", "--lm", unmarked, "--spans", chain.spans.path)),
        (3, "has no tokenizer.json", ("lm-finetune", "--lm", bare, *asked)),
        (2, "needs --lm or --language-model", ("lm-finetune", *asked)),
        (2, "Use --language-model", ("lm-finetune", "--lm", chain.spans.path.parent, *asked)),
        (2, "must contain {question} once", ("lm-finetune", "--lm", t5, "--prompt", "Q:", *asked)),
        (
            2,
            "no question fits",
            ("lm-finetune", "--lm", t5, "--prompt", "Question: {question}", "--question-length", 8, *asked),
        ),
        (
            2,
            "the model has 256 positions",
            ("lm-finetune", "--lm", make_gpt2(tmp_path / "gpt2"), "--question-length", 250, *asked),
        ),
        (2, "nothing to learn from", ("lm-finetune", "--lm", t5, "--answer-length", 1, *asked)),
        (2, "--beams 0 ", ("lm-finetune", "--lm", t5, "--beams", 0, *asked)),
        (2, "--dropout 1", ("lm-finetune", "--lm", t5, "--dropout", 1, *asked)),
        (2, "--length 3", ("lm-init", "--lm", t5, "--spans", chain.spans.path, "--length", 3)),
    ):
        got, out, err = realmctl(*command, "--out", "made")
        assert (got, out) == (code, "") and text in " ".join(err.split()), err
        assert not list(tmp_path.glob("**/made/v*"))


def test_a_hub_id_is_fetched_by_the_hubs_client(realmctl, chain, tmp_path, monkeypatch):
    """The snapshot's folder is named after the revision, which the manifest keeps."""
    revision = "f" * 40
    folder = make_t5(tmp_path / "snapshots" / revision)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, allow_patterns: str(folder))
    asked = ("--questions", chain.questions, "--steps", 1, "--batch-size", 2)
    code, out, err = realmctl("lm-finetune", "--lm", "someone/t5", *asked, "--out", "qa")
    assert code == 0, err
    assert open_artifact(out.strip()).manifest.sources["lm"][0].name == f"{revision}/"

    def offline(name, allow_patterns):
        raise OSError("cannot reach the hub")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    code, _, err = realmctl("lm-finetune", "--lm", "someone/other", *asked, "--out", "qa")
    assert code == 3 and "could not be fetched from the hub (cannot reach the hub)" in " ".join(err.split())

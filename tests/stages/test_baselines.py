"""BM25 and closed book from the command line: fine-tune, evaluate, ask; and the combinations that are refused."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import open_artifact
from tests.fixtures.chain import Chain

SMALL = ("--steps", 2, "--batch-size", 2, "--retriever-beam", 8, "--reader-beam", 2, "--reader-length", 40)
DEPTHS = ("recall@1", "recall@5", "recall@20")


@pytest.fixture
def finetuned(realmctl, chain: Chain):
    """The qa-model of a baseline, made by the command."""

    def make(retrieval, *options):
        inputs = ("--blocks", chain.blocks.path, "--questions", chain.questions)
        start = options or ("--encoder", chain.encoder.path)
        return realmctl("finetune", "--retrieval", retrieval, *inputs, *start, *SMALL, "--out", "qa")

    return make


def scored(realmctl, chain, *options):
    code, out, err = realmctl(
        "eval-em",
        "--blocks",
        chain.blocks.path,
        "--questions",
        chain.questions,
        "--hits",
        20,
        *options,
        "--out",
        "scores",
    )
    assert code == 0, err
    return open_artifact(out.strip()), err


def asked(realmctl, chain, *options):
    question = "Where was Ada Lorn born?"
    code, out, err = realmctl("ask", question, "--qa-model", "qa", "--blocks", chain.blocks.path, *options)
    assert code == 0, err
    return out


def test_bm25_from_an_encoder_to_an_answer(finetuned, realmctl, chain):
    code, out, err = finetuned("bm25")
    assert code == 0, err
    made = open_artifact(out.strip())
    assert set(made.manifest.parts) == {"bm25", "reader"} and made.settings["retrieval"] == "bm25"
    assert "model" not in made.manifest.inputs
    scores, _ = scored(realmctl, chain, "--qa-model", "qa")
    assert {"em", "disagreements", *DEPTHS} <= set(scores.metrics)
    alone, _ = scored(realmctl, chain, "--retrieval", "bm25")
    assert alone.path != scores.path and "em" not in alone.metrics and not alone.has("predictions.jsonl")
    assert {name: alone.metrics[name] for name in DEPTHS} == {name: scores.metrics[name] for name in DEPTHS}
    assert alone.metrics["recall@5"] == 1.0
    best = json.loads(asked(realmctl, chain, "--json"))["answers"][0]
    assert best["text"][best["start"] : best["end"]] == best["answer"] and best["title"].startswith("Ada")


def test_closed_book_from_an_encoder_to_an_answer(finetuned, realmctl, chain):
    code, out, err = finetuned("none")
    assert code == 0, err
    assert set(open_artifact(out.strip()).manifest.parts) == {"reader"}
    scores, _ = scored(realmctl, chain, "--qa-model", "qa")
    assert "em" in scores.metrics and not any("recall" in name for name in scores.metrics)
    assert not scores.has("retrieved.json") and scores.has("predictions.jsonl")
    found = json.loads(asked(realmctl, chain, "--json"))["answers"]
    assert [set(answer) for answer in found] == [{"answer", "score"}] * 3
    assert f"1. {found[0]['answer']}   score" in asked(realmctl, chain) and "no evidence" in asked(realmctl, chain)


def test_a_models_reader_is_where_it_starts_unless_another_is_named(finetuned, chain, tmp_path):
    from tests.fixtures.chain import pretrain

    model = pretrain(chain, steps=1).make("artifacts/model")
    code, out, err = finetuned("bm25", "--workspace", "artifacts")
    assert code == 0, err
    assert open_artifact(out.strip()).manifest.inputs["model"] == model.content
    code, out, _ = finetuned("none", "--workspace", "artifacts", "--bert", "scratch:L1-H16")
    assert code == 0 and "model" not in open_artifact(out.strip()).manifest.inputs


@pytest.mark.parametrize("retrieval", ["bm25", "none"])
def test_a_retriever_or_an_index_is_of_no_use(finetuned, chain, retrieval):
    for name in ("retriever", "index"):
        start = ("--encoder", chain.encoder.path, f"--{name}", getattr(chain, name).path)
        code, _, err = finetuned(retrieval, *start)
        assert code == 2 and f"--retrieval {retrieval} uses no --retriever and no --index" in err
    code, _, err = finetuned(retrieval, "--workspace", "empty")
    assert code == 3 and "needs --model" in err


def test_an_unknown_searcher_is_refused_with_the_known_ones(finetuned, realmctl, chain):
    code, _, err = finetuned("bm24")
    assert code == 2 and "--retrieval: 'bm24' is not one of dense, bm25, none." in err
    inputs = ("--blocks", chain.blocks.path, "--questions", chain.questions)
    code, _, err = realmctl("eval-em", *inputs, "--retrieval", "none")
    assert code == 2 and "--retrieval: 'none' is not one of dense, bm25." in err
    _, out, _ = realmctl("finetune", "--help")
    assert "dense,bm25,none" in "".join(out.replace("│", "").split())


def test_dense_parts_may_be_evaluated_by_name(realmctl, chain):
    inputs = ("--blocks", chain.blocks.path, "--questions", chain.questions, "--hits", 5)
    parts = ("--retriever", chain.retriever.path, "--index", chain.index.path)
    named, plain = (
        open_artifact(realmctl("eval-em", *inputs, *parts, *options)[1].strip())
        for options in (("--retrieval", "dense"), ())
    )
    assert named.content == plain.content
    code, _, err = realmctl("eval-em", *inputs, "--retrieval", "dense")
    assert code == 2 and "needs a retriever and an index. Name --retriever and --index." in err


def test_no_room_for_a_question(finetuned, chain):
    code, _, err = finetuned("none", "--encoder", chain.encoder.path, "--span-width", 36)
    assert code == 2 and "--reader-length 40 leaves no room for a question and --span-width 36" in err


def test_closed_book_needs_the_head(finetuned, chain, tmp_path):
    from realmctl.models.bert.files import load_masked_lm, save_bert

    folder = tmp_path / "headless"
    save_bert(load_masked_lm(chain.encoder.path)[0].bert, folder)
    code, _, err = finetuned("none", "--bert", folder)
    assert code == 3 and "has no masked-language-model head" in err and "mlm-init" in err
    assert finetuned("bm25", "--bert", folder)[0] == 0


def test_the_first_questions_alone(realmctl, chain):
    whole, _ = scored(realmctl, chain, "--retrieval", "bm25")
    first, _ = scored(realmctl, chain, "--retrieval", "bm25", "--limit", 2)
    assert whole.metrics["questions"] > first.metrics["questions"] == 2
    retrieved = [json.loads(made.file("retrieved.json").read_text("utf-8")) for made in (whole, first)]
    assert retrieved[0][:2] == retrieved[1]
    inputs = ("--blocks", chain.blocks.path, "--questions", chain.questions, "--retrieval", "bm25")
    for option in ("--limit", "--reader-beam", "--hits"):
        code, _, err = realmctl("eval-em", *inputs, option, 0)
        assert code == 2 and f"{option} 0" in err


def test_evaluations_that_contradict_themselves(realmctl, chain):
    inputs = ("--blocks", chain.blocks.path, "--questions", chain.questions)
    code, _, err = realmctl("eval-em", *inputs, "--retrieval", "bm25", "--index", chain.index.path)
    assert code == 2 and "--retrieval bm25 evaluates that searcher alone" in err
    code, _, err = realmctl("eval-em", *inputs, "--retrieval", "bm25", "--all-scorers")
    assert code == 2 and "--all-scorers needs --qa-model" in err


def test_all_scorers_lists_the_disagreements_again_and_again(finetuned, realmctl, chain, monkeypatch, tmp_path):
    """A decomposed accent is right for ORQA's scorer alone; the list is shown whether the scores were made now or found."""
    from realmctl.retrieval.answering.answerer import Answer
    from realmctl.retrieval.answering.closed_book import ClosedBookAnswerer

    finetuned("none")
    path = tmp_path / "asked.jsonl"
    lines = [{"question": "Where?", "answer": ["Caf\u00e9"]}, {"question": "Who?", "answer": ["Ada"]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    monkeypatch.setattr(
        ClosedBookAnswerer, "answer", lambda self, tokens, hits, top: [[Answer("Cafe\u0301", 0.0)] for _ in tokens]
    )
    options = ("--qa-model", "qa", "--questions", path)
    quiet, err = scored(realmctl, chain, *options)
    assert quiet.metrics["disagreements"] == 1 and "disagree" not in err
    for _ in range(2):
        again, err = scored(realmctl, chain, *options, "--all-scorers")
        assert again.path == quiet.path
        assert "1 questions on which they disagree\n'Where?'" in err and "orqa match, squad no match" in err
        assert "Who?" not in err

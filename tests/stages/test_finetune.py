"""`realmctl finetune` and `realmctl eval-em`: a model or its parts, and what is refused."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from realmctl.artifacts import open_artifact, require_descent
from realmctl.cli.app import build
from realmctl.models.retriever_settings import read_settings
from realmctl.training.finetune import FinetuneObjective
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import documents, finetune, make_index, pretrain
from tests.fixtures.retriever import make_retriever

SMALL = ["--steps", "2", "--batch-size", "2", "--retriever-beam", "8", "--reader-beam", "2", "--reader-length", "40"]


@pytest.fixture(scope="module")
def model(chain, tmp_path_factory):
    return pretrain(chain, steps=2).make(tmp_path_factory.mktemp("finetune") / "model")


@pytest.fixture(scope="module")
def qa_model(chain, model):
    return finetune(chain, model, steps=2).make(model.path.parent.parent / "qa-model")


def realmctl(*arguments):
    return CliRunner().invoke(build(str(arguments[0])), [str(argument) for argument in arguments])


def error_of(result):
    """The one paragraph that a user reads."""
    [line] = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert "Traceback" not in result.stderr
    return line


def finetune_of(chain, tmp_path, *options):
    return realmctl(
        "finetune",
        "--blocks",
        chain.blocks.path,
        "--questions",
        chain.questions,
        *SMALL,
        *options,
        "--out",
        tmp_path / "qa",
    )


def test_a_qa_model_goes_on_from_where_it_is(chain, model, qa_model, tmp_path):
    """The first step of a warm-up has rate 0, so that a run of one step must give back what it started from."""
    made = open_artifact(
        finetune_of(chain, tmp_path, "--model", qa_model.path, "--steps", "1", "--warmup", "1").stdout.strip()
    )
    assert made.part("index").content == model.part("index").content
    assert read_settings(made.part("retriever").path).block_retriever == model.part("retriever").content
    for part, name in (
        ("reader", "model.safetensors"),
        ("reader", "span_head.safetensors"),
        ("retriever", "retriever.json"),
    ):
        assert made.part(part).file(name).read_bytes() == qa_model.part(part).file(name).read_bytes()
    learning = ["--steps", "4", "--reader-beam", "8", "--lr", "1e-3"]
    onward = open_artifact(finetune_of(chain, tmp_path, "--model", qa_model.path, *learning).stdout.strip())
    assert onward.part("reader").content != qa_model.part("reader").content
    foreign = make_index(tmp_path, chain.blocks, make_retriever(tmp_path / "r", chain.blocks, seed=5))
    refused = finetune_of(chain, tmp_path, "--model", qa_model.path, "--index", foreign.path)
    assert refused.exit_code == 4 and "was fine-tuned with" in error_of(refused)


def test_from_a_model_and_from_its_parts(chain, model, tmp_path):
    result = finetune_of(chain, tmp_path, "--model", model.path)
    assert result.exit_code == 0, result.output
    made = open_artifact(result.stdout.strip())
    require_descent(made.part("index"), chain.blocks, model.part("retriever"))
    parts = [part for name in ("retriever", "index", "encoder") for part in (f"--{name}", getattr(chain, name).path)]
    orqa = open_artifact(finetune_of(chain, tmp_path, *parts).stdout.strip())
    assert orqa.path.name == "v2" and orqa.lineage["retriever"] == chain.retriever.content


def test_one_part_may_be_replaced(chain, model, tmp_path):
    result = finetune_of(chain, tmp_path, "--model", model.path, "--encoder", chain.encoder.path)
    assert result.exit_code == 0, result.output
    assert "encoder" in open_artifact(result.stdout.strip()).manifest.inputs


def test_the_parts_must_be_complete_and_fit(chain, model, tmp_path):
    result = finetune_of(chain, tmp_path, "--workspace", tmp_path / "empty", "--retriever", chain.retriever.path)
    assert result.exit_code == 3 and "finetune needs --model" in error_of(result)
    result = finetune_of(chain, tmp_path, "--model", model.path, "--index", chain.index.path)
    assert result.exit_code == 4 and "does not belong to" in error_of(result)
    result = finetune_of(chain, tmp_path, "--model", model.path, "--retriever-beam", "1")
    assert result.exit_code == 2 and "--retriever-beam 1 is below --reader-beam 2" in error_of(result)
    assert not list(tmp_path.glob("qa/v*"))


def test_cloze_questions_are_trained_on_beside_the_questions(chain, model, tmp_path, monkeypatch):
    drawn = []

    def parts(self, numbers, *rest, **options):
        drawn.append([self.questions[number].id.startswith("cloze-") for number in numbers])
        return original(self, numbers, *rest, **options)

    original = FinetuneObjective.parts
    monkeypatch.setattr(FinetuneObjective, "parts", parts)
    sizes = ("--model", model.path, "--spans", chain.spans.path, "--batch-size", "4", "--cloze-share", "0.75")
    made = open_artifact(finetune_of(chain, tmp_path, *sizes, "--dev", chain.questions).stdout.strip())
    assert drawn[:2] == [[False, True, True, True]] * 2
    assert not any(any(batch) for batch in drawn[2:]) and len(drawn) > 2  # the dev questions
    assert made.metrics["questions"] == 20
    assert chain.spans.content in json.dumps(made.manifest.inputs["spans"])
    plain = open_artifact(finetune_of(chain, tmp_path, "--model", model.path, "--batch-size", "4").stdout.strip())
    assert plain.part("reader").content != made.part("reader").content


def test_epochs_count_the_questions_without_the_cloze_questions(chain, model, tmp_path):
    sizes = {"batch_size": 4, "reader_beam": 2, "retriever_beam": 8, "reader_length": 40, "epochs": 0.3, "steps": 0}
    passes = finetune(chain, model, **sizes, spans=chain.spans)
    assert passes.make(tmp_path / "qa").metrics["steps"] == 3  # 0.3 * 20 questions in steps of 2 and 2 cloze questions


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--cloze-share", "0.25"), "--cloze-share needs --spans"),
        (("--spans", "SPANS", "--cloze-share", "0.1"), "is 0: a step needs at least one cloze question"),
        (("--spans", "SPANS", "--cloze-share", "1"), "--cloze-share 1"),
        (("--spans", "SPANS", "--retrieval", "none"), "--spans concern blocks that are read"),
    ],
)
def test_cloze_questions_that_cannot_be_are_refused(chain, model, tmp_path, options, why):
    named = [chain.spans.path if option == "SPANS" else option for option in options]
    result = finetune_of(chain, tmp_path, "--model", model.path, *named)
    assert result.exit_code == 2 and why in error_of(result)


def test_answers_under_another_name(chain, model, tmp_path):
    path = tmp_path / "named.jsonl"
    records = [json.loads(line) for line in chain.questions.read_text().splitlines()]
    path.write_text(
        "".join(json.dumps({**record, "answer": ["other"], "gold": record["answer"]}) + "\n" for record in records)
    )
    options = ("--model", model.path, "--steps", "2")
    named = finetune_of(chain, tmp_path, *options, "--questions", path, "--dev", path, "--answer-field", "gold")
    known = finetune_of(chain, tmp_path, *options, "--dev", chain.questions)
    readers = [open_artifact(made.stdout.strip()).part("reader") for made in (named, known)]
    assert readers[0].content == readers[1].content
    wrong = finetune_of(chain, tmp_path, *options, "--answer-field", "golden")
    assert wrong.exit_code == 3 and "golden" in error_of(wrong)


@pytest.mark.parametrize(
    "line", ['{"question": "Where?", "answer": ["x"', '{"question": "Where?", "answer": "x"}}', '{"answer": ["x"]}']
)
def test_a_bad_line_of_the_questions_is_named(chain, model, tmp_path, line):
    path = tmp_path / "bad.jsonl"
    path.write_text(chain.questions.read_text() + line + "\n")
    result = realmctl(
        "finetune",
        "--model",
        model.path,
        "--blocks",
        chain.blocks.path,
        "--questions",
        path,
        *SMALL,
        "--out",
        tmp_path / "qa",
    )
    assert result.exit_code == 3 and "bad.jsonl:21" in error_of(result)
    assert not list(tmp_path.glob("qa/v*"))


def test_evaluation_of_what_does_not_fit(chain, qa_model, tmp_path):
    pages = {
        **documents(),
        "Ada Lorn": [["Ada Lorn was born in [[Ashby]].", "The family was poor."], ["The work began in 1900."]],
    }
    other = make_blocks(tmp_path / "blocks", pages)
    result = realmctl(
        "eval-em",
        "--qa-model",
        qa_model.path,
        "--blocks",
        other.path,
        "--questions",
        chain.questions,
        "--out",
        tmp_path / "scores",
    )
    assert result.exit_code == 4 and "build-index" in error_of(result)
    index = make_index(tmp_path, chain.blocks, make_retriever(tmp_path / "retriever", chain.blocks, seed=1))
    options = [
        "--retriever",
        chain.retriever.path,
        "--index",
        index.path,
        "--blocks",
        chain.blocks.path,
        "--questions",
        chain.questions,
    ]
    result = realmctl("eval-em", *options, "--out", tmp_path / "scores")
    assert result.exit_code == 4 and "does not belong" in error_of(result)
    assert not list(tmp_path.glob("scores/v*"))


def test_ask_and_fill_mask(chain, model, qa_model):
    asked = realmctl(
        "ask",
        "Where was Ada Lorn born?",
        "--qa-model",
        qa_model.path,
        "--blocks",
        chain.blocks.path,
        "--top",
        "2",
        "--json",
    )
    value = json.loads(asked.stdout)
    assert value["schema_version"] == 1 and len(value["answers"]) == 2
    assert {"answer", "score", "probability_of_block", "title", "block", "text", "start", "end"} == set(
        value["answers"][0]
    )
    text = realmctl(
        "ask", "Where was Ada Lorn born?", "--qa-model", qa_model.path, "--blocks", chain.blocks.path
    ).stdout
    assert text.startswith("1. ") and ">>" in text
    filled = realmctl(
        "fill-mask", "Ada Lorn was born in [MASK].", "--model", model.path, "--blocks", chain.blocks.path, "--json"
    )
    value = json.loads(filled.stdout)
    assert len(value["candidates"]) == 8 and value["candidates"][0]["title"] == "(null document)"
    assert sum(found["probability"] for found in value["candidates"]) == pytest.approx(1)
    refused = realmctl("fill-mask", "No mask.", "--model", model.path, "--blocks", chain.blocks.path)
    assert refused.exit_code == 2 and "[MASK]" in error_of(refused)


def test_the_blocks_of_another_chain_answer_nothing(qa_model, tmp_path):
    other = make_blocks(tmp_path / "blocks", {"One": [["Quite other words here."]]})
    result = realmctl("ask", "Where?", "--qa-model", qa_model.path, "--blocks", other.path)
    assert result.exit_code == 4 and "vocabular" in error_of(result)

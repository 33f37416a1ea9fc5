"""`realmctl plan`: each stage says itself what it takes, on a sample of what it will read, and nothing is known of what cannot be tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from realmctl.extras.plan import planning
from realmctl.extras.plan.index_age import Aging
from realmctl.pipeline import trying
from realmctl.pipeline.discovery import own_stages
from realmctl.retrieval.embedding import embedding
from realmctl.tokens.tokenizer import Tokenizer
from stages.ict_init import IctInit
from tests.fixtures.chain import Chain, documents, write_questions
from tests.fixtures.cross_encoders import make_cross_encoder
from tests.fixtures.encoder_folders import plain as plain_encoder
from tests.fixtures.kinds import colbert
from tests.fixtures.language_models import make_babbler, make_t5
from tests.fixtures.recurring import documents_that_share_a_span

PIPELINE = """
workspace: w
stages:
  blocks: {stage: chunk, corpus: [corpus.jsonl], tokenizer: "train:300", max-wordpieces: 48, workers: 1}
  spans: {stage: tag, tagger: rules, workers: 1}
  encoder: {stage: mlm-init, bert: "scratch:L1-H32-A2", steps: 400, batch-size: 4}
  retriever: {stage: ict-init, steps: 300, batch-size: 4, projection: 16}
  embeddings: {stage: embed}
  index: {stage: build-index, type: exact}
  model: {stage: pretrain, steps: 400, batch-size: 2, candidates: 4, refresh-every: 50}
"""


@pytest.fixture
def pipeline(tmp_path, monkeypatch, one_thread) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trying, "ENOUGH_SECONDS", 0.0)
    monkeypatch.setattr(embedding, "TRIAL_SECONDS", 0.0)
    names = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Augustus De Morgan"]
    with Path("corpus.jsonl").open("w") as corpus:
        for number in range(80):
            who, other = names[number % 4], names[(number + 1) % 4]
            text = (
                f"{who} met {other} in London in 18{number + 10}. They spoke of engines and of notes number {number}. "
            )
            corpus.write(json.dumps({"id": str(number), "title": f"Meeting {number}", "text": text * 4}) + "\n")
    Path("p.yaml").write_text(PIPELINE)
    return "p.yaml"


def planned(realmctl, *arguments):
    code, out, err = realmctl("plan", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_chain_is_planned_and_nothing_is_written(realmctl, pipeline):
    plan = planned(realmctl, pipeline, "--index-age", "60")
    rows = {row["name"]: row for row in plan["stages"]}
    assert plan["unknown"] == [] and all(row["seconds"] >= 0 for row in plan["stages"])
    assert plan["seconds"] == pytest.approx(sum(row["seconds"] for row in plan["stages"]))
    assert rows["embeddings"]["disk_bytes"] == plan["blocks"]["blocks"] * 16 * 4
    assert plan["index"]["ages"]["mean"] > 0 and plan["index"]["devices_for_age"] == 1
    assert {path.name for path in Path().iterdir()} == {"corpus.jsonl", "p.yaml"}, "a plan writes nothing"
    text = realmctl("plan", pipeline)[1]
    assert "together" in text and "index: a refresh takes" in text


def test_a_part_is_planned_with_what_it_needs(realmctl, pipeline):
    """What is not asked for is not tried: its model may not be at hand."""
    whole = Path(pipeline).read_text()
    Path("q.yaml").write_text(f"{whole}  questions: {{stage: generate-queries, blocks: blocks, lm: not/here}}\n")
    plan = planned(realmctl, "q.yaml", "--until", "embeddings", "--until", "spans")
    assert {row["name"] for row in plan["stages"]} == {"blocks", "spans", "encoder", "retriever", "embeddings"}
    code, _, err = realmctl("plan", "q.yaml", "--until", "nothing")
    assert code == 2 and "--until nothing: this file makes" in err


def test_a_number_of_blocks_stands_for_the_corpus(realmctl, pipeline):
    """Work that grows with the blocks grows with that number, and steps do not."""
    plan = planned(realmctl, pipeline, "--blocks", "1000000", "--refresh-devices", "4")
    rows = {row["name"]: row for row in plan["stages"]}
    assert plan["blocks"] == {"blocks": 1_000_000}
    assert rows["embeddings"]["disk_bytes"] == pytest.approx(1_000_000 * 16 * 4, rel=1e-3)
    assert rows["embeddings"]["seconds"] > 100 * rows["retriever"]["seconds"] / 300 and rows["spans"]["seconds"] > 10


def test_what_cannot_be_tried_is_not_known_and_neither_is_what_reads_it(realmctl, pipeline):
    Path("q.yaml").write_text(
        "workspace: w\nstages:\n  beir: {stage: collect, dataset: 'hf:some/one'}\n"
        "  blocks: {stage: chunk, corpus: [corpus.jsonl], tokenizer: 'train:300'}\n"
        "  ranking: {stage: rank, method: bm25, blocks: blocks, queries: '@beir/queries.jsonl'}\n"
    )
    code, out, err = realmctl("plan", "q.yaml")
    assert code == 0 and "not known until beir is made" in out and "fetch the collection" in out, err
    assert "without beir, ranking" in out and not list(Path().glob("w"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p.yaml", "--device", "h100"], "measured on this machine now"),
        (["--as-of-paper"], "measured on this machine now"),
        (["p.yaml", "--steps", "5"], "--var replaces"),
        (["p.yaml", "--rehearse", "2"], "tests/processes"),
        (["p.yaml", "--calibrate"], "Leave it out"),
        (["p.yaml", "--devicer", "1"], "See `realmctl plan --help`"),
        (["p.yaml", "--var", "x"], "name=value"),
    ],
)
def test_removed_and_wrong_options_say_what_to_do(realmctl, pipeline, arguments, message):
    code, out, err = realmctl("plan", *arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_corpus_that_is_missing_is_an_error_and_not_an_unknown(realmctl, pipeline):
    Path("corpus.jsonl").unlink()
    code, _, err = realmctl("plan", pipeline)
    assert code == 3 and "corpus.jsonl" in err


def test_the_width_of_vectors_and_hard_negatives_count(chain: Chain, tmp_path):
    """What the former formulas of `plan` left out: each stage says it itself."""
    embed = own_stages()["embed"]
    made = {
        width: IctInit(
            blocks=chain.blocks, encoder=chain.encoder, projection=width, steps=1, batch_size=2, precision="fp32"
        ).make(tmp_path / str(width))
        for width in (8, 16)
    }
    disk = {width: embed(blocks=chain.blocks, retriever=one).estimate()["disk_bytes"] for width, one in made.items()}
    assert disk == {8: 40 * 8 * 4, 16: 40 * 16 * 4}


EVERY_STAGE = """
workspace: w
stages:
  collection: {stage: collect, dataset: "hf:some/one"}
  blocks: {stage: chunk, corpus: [documents.jsonl], tokenizer: "train:300", max-wordpieces: 32, workers: 1}
  revised: {stage: revise, blocks: blocks, corpus: [documents.jsonl]}
  spans: {stage: tag, blocks: blocks, workers: 1}
  encoder: {stage: mlm-init, blocks: blocks, bert: "scratch:L1-H16-A2"}
  condenser: {stage: condenser-init, blocks: blocks, encoder: encoder}
  retromae: {stage: retromae-init, blocks: blocks, encoder: encoder}
  imported: {stage: import, source: encoder-folder}
  retriever: {stage: ict-init, blocks: blocks, encoder: encoder}
  spider: {stage: spider-init, blocks: blocks, encoder: encoder}
  embeddings: {stage: embed, blocks: blocks, retriever: retriever}
  index: {stage: build-index, embeddings: embeddings}
  model: {stage: pretrain, blocks: blocks, spans: spans, retriever: retriever, index: index, encoder: encoder}
  utility: {stage: eval-utility, blocks: blocks, spans: spans, model: model}
  qa-model: {stage: finetune, blocks: blocks, model: model, questions: questions.jsonl}
  scores: {stage: eval-em, blocks: blocks, qa-model: qa-model, questions: questions.jsonl}
  cloze: {stage: eval-cloze, blocks: blocks, retriever: retriever}
  ranking: {stage: rank, blocks: blocks, retriever: retriever, index: index, queries: questions.jsonl}
  ranking-scores: {stage: eval-run, blocks: blocks, ranking: ranking, questions: questions.jsonl}
  negatives: {stage: mine-negatives, blocks: blocks, ranking: ranking, questions: questions.jsonl}
  dpr: {stage: dpr-finetune, retriever: retriever, passages: "@negatives/train.jsonl"}
  queries: {stage: generate-queries, blocks: blocks, lm: babbler}
  language-model: {stage: lm-init, spans: spans, lm: t5}
  closed-book: {stage: lm-finetune, lm: t5, questions: questions.jsonl}
  revela: {stage: revela-init, blocks: blocks, retriever: retriever, lm: babbler}
  datastore: {stage: build-datastore, spans: spans, encoder: encoder}
  knn: {stage: eval-knn-lm, spans: spans, encoder: encoder, datastore: datastore}
  judgements: {stage: judge, blocks: blocks, rankings: [run.trec], queries: questions.jsonl, lm: m, endpoint: "http://127.0.0.1:9"}
  reranked: {stage: rerank, blocks: blocks, ranking: ranking, model: cross-encoder}
  cross-encoder: {stage: rerank-finetune, start: cross-encoder, passages: "@negatives/train.jsonl"}
  cut: {stage: cut-queries, blocks: blocks}
  bm25-weight: {stage: weigh-bm25, blocks: blocks, retriever: retriever, index: index, questions: asked.txt}
  late-index: {stage: late-embed, blocks: blocks, encoder: late/saved}
  late-encoder: {stage: late-finetune, start: late/saved, passages: "@negatives/train.jsonl"}
  late-ranking: {stage: late-rank, blocks: blocks, late-index: late-index, queries: questions.jsonl}
"""
"""Each stage with its defaults: only inputs and what has no default is given, and a size of the blocks that suits small documents."""


@pytest.fixture(scope="module")
def plan_of_every_stage(tmp_path_factory, one_thread) -> dict[str, planning.PlannedStage]:
    folder = tmp_path_factory.mktemp("every")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(trying, "ENOUGH_SECONDS", 0.0)
        patch.setattr(embedding, "TRIAL_SECONDS", 0.0)
        shared = [
            (name, [" ".join(block) for block in blocks]) for name, blocks in documents_that_share_a_span().items()
        ]
        people = [(name, [" ".join(block) for block in blocks]) for name, blocks in documents().items()]
        lines = [
            json.dumps({"id": name, "title": name, "text": "\n\n".join(text).replace("[", "").replace("]", "")})
            for name, text in [*people, *shared]
        ]
        Path("documents.jsonl").write_text("\n".join(lines) + "\n")
        write_questions(Path("questions.jsonl"))
        Path("run.trec").write_text("1 Q0 a 1 1 x\n")
        Path("asked.txt").write_text("\n".join(f"Who was Ada {number}?" for number in range(100)))
        make_t5(Path("t5"))
        make_babbler(Path("babbler"))
        colbert(Path("late"))
        plain_encoder(Path("encoder-folder"), "Contriever")
        make_cross_encoder(Path("cross-encoder"), Tokenizer.load(Path("encoder-folder")))
        Path("every.yaml").write_text(EVERY_STAGE)
        made = planning.make_plan(Path("every.yaml"), {}, own_stages(), Aging())
    return {row.command: row for row in made.stages}


@pytest.mark.parametrize("stage", own_stages())
def test_every_stage_with_its_defaults_has_a_plan(plan_of_every_stage, stage):
    """A number, or the stage's own word that it cannot be tried."""
    row = plan_of_every_stage[stage]
    untried = {"collect": "fetch the collection", "revise": "how many documents changed", "judge": "a server judges"}
    if stage in untried:
        assert row.seconds is None and untried[stage] in row.why
    else:
        assert row.why == "" and row.seconds is not None and row.seconds > 0

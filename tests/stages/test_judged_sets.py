"""A BEIR folder of the chain's own documents, through search, evaluation, export and fine-tuning."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.errors import ConfigError
from realmctl.questions.labelled import read_labelled
from realmctl.questions.questions import read_questions
from stages.eval_em import EvalEm
from tests.fixtures.chain import baseline
from tests.fixtures.retriever import make_retriever


@pytest.fixture(scope="module")
def beir(chain, tmp_path_factory):
    """The chain's questions as queries; relevant are the documents with an answer, which are at most a few."""
    folder = tmp_path_factory.mktemp("beir")
    texts: dict[str, tuple[str, str]] = {}
    for record in Corpus(chain.blocks):
        title, text = texts.get(record.document, (record.title, ""))
        texts[record.document] = title, f"{text} {record.text}"
    documents = [{"_id": name, "title": title, "text": text} for name, (title, text) in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    rows, queries = ["query-id\tcorpus-id\tscore"], []
    for question in read_questions(chain.questions):
        queries.append({"_id": question.id, "text": question.question, "metadata": {}})
        found = [name for name, (_, text) in texts.items() if any(answer in text for answer in question.answers)]
        rows += [f"{question.id}\t{name}\t1" for name in found]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels").mkdir()
    for split in ("train", "test"):
        (folder / f"qrels/{split}.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def scores(chain, beir):
    return EvalEm(blocks=chain.blocks, retrieval="bm25", questions=beir, hits=20).make(chain.folder / "judged-scores")


def test_recall_is_that_of_the_ranking_of_documents(realmctl, chain, beir, scores):
    pytest.importorskip("ir_measures")
    assert not any(name.startswith(("recall", "substring")) for name in scores.metrics)
    inputs = ("--blocks", chain.blocks.path, "--queries", beir, "--method", "bm25", "--unit", "document")
    assert realmctl("rank", *inputs, "--depth", 400)[0] == 0
    code, out, err = realmctl("eval-run", "--qrels", beir, "--measures", "Success@1")
    assert code == 0 and "judgements of test.tsv" in err, err
    measured = open_artifact(out.strip()).metrics
    assert 0 < measured["Success@1"] == pytest.approx(scores.metrics["provenance_recall@1"], abs=1e-6)
    assert "provenance_recall@1" in EvalEm.headline_text(scores.metrics)
    files = ("--questions", beir / "queries.jsonl", "--qrels", beir / "qrels/test.tsv", "--retrieval", "bm25")
    code, out, err = realmctl("eval-em", "--blocks", chain.blocks.path, *files, "--hits", 20)
    assert code == 0 and open_artifact(out.strip()).metrics == scores.metrics, err


def test_its_hits_become_hard_negatives_for_the_retriever(realmctl, chain, beir, scores, tmp_path):
    code, _, err = realmctl("export", scores.path, tmp_path / "train.json", "--form", "dpr-retriever")
    assert code == 0, err
    relevant = {line.split("\t")[0]: [] for line in (beir / "qrels/test.tsv").read_text().splitlines()[1:]}
    for line in (beir / "qrels/test.tsv").read_text().splitlines()[1:]:
        relevant[line.split("\t")[0]].append(line.split("\t")[1])
    names = {
        query["text"]: query["_id"]
        for query in map(json.loads, (beir / "queries.jsonl").read_text(encoding="utf-8").splitlines())
    }
    owner = {record.text: record.document for record in Corpus(chain.blocks)}
    labelled = list(read_labelled(tmp_path / "train.json"))
    assert labelled
    for question in labelled:
        judged = relevant[names[question.question]]
        assert question.positives and all(owner[passage.text] in judged for passage in question.positives)
        assert question.negatives and not any(owner[passage.text] in judged for passage in question.negatives)
    start = make_retriever(tmp_path / "start", chain.blocks)
    short = ("--retriever", start.path, "--steps", 2, "--batch-size", 4, "--micro-batch", 2)
    code, out, err = realmctl("dpr-finetune", *short, "--passages", tmp_path / "train.json")
    assert code == 0 and open_artifact(out.strip()).metrics["questions"] == len(labelled), err
    code, out, err = realmctl("dpr-finetune", *short, "--passages", beir, "--hard-negatives", 0)
    assert code == 0 and open_artifact(out.strip()).metrics["questions"] == len(relevant), err
    code, _, err = realmctl("dpr-finetune", *short, "--passages", beir)
    assert code == 3 and "--hard-negatives 0" in err


def test_judged_queries_measure_no_answers(chain, beir, tmp_path):
    qa_model = baseline(chain, "bm25", steps=1).make(tmp_path / "qa")
    with pytest.raises(ConfigError):
        EvalEm(blocks=chain.blocks, qa_model=qa_model, questions=beir).make(tmp_path / "scores")

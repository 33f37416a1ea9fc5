"""A BEIR folder of the chain's own documents, through search, its measures and fine-tuning."""

from __future__ import annotations

import json

import pytest

from realmctl.artifacts import open_artifact
from realmctl.corpus.corpus import Corpus
from realmctl.questions.questions import read_questions
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


def test_a_beir_folder_is_ranked_measured_and_trained_on(realmctl, chain, beir, tmp_path):
    pytest.importorskip("ir_measures")
    inputs = ("--blocks", chain.blocks.path, "--queries", beir, "--method", "bm25", "--unit", "document")
    assert realmctl("rank", *inputs, "--depth", 400)[0] == 0
    code, out, err = realmctl("eval-run", "--qrels", beir, "--measures", "Success@1")
    assert code == 0 and "judgements of test.tsv" in err, err
    assert 0 < open_artifact(out.strip()).metrics["Success@1"] <= 1
    relevant = {line.split("\t")[0] for line in (beir / "qrels/test.tsv").read_text().splitlines()[1:]}
    start = make_retriever(tmp_path / "start", chain.blocks)
    short = ("--retriever", start.path, "--steps", 2, "--batch-size", 4, "--micro-batch", 2)
    code, out, err = realmctl("dpr-finetune", *short, "--passages", beir, "--hard-negatives", 0)
    assert code == 0 and open_artifact(out.strip()).metrics["questions"] == len(relevant), err
    code, _, err = realmctl("dpr-finetune", *short, "--passages", beir)
    assert code == 3 and "--hard-negatives 0" in err

"""A retriever in MTEB: a tiny task of this machine, beside the measure by hand."""

from __future__ import annotations

import numpy as np
import pytest

from realmctl.extras.ir.mteb_search import MtebSearch
from realmctl.loading import load_retriever
from tests.fixtures.chain import Chain, documents

mteb, datasets = pytest.importorskip("mteb"), pytest.importorskip("datasets")
TEXTS = {f"d{number}": " ".join([*birth, *work]) for number, (birth, work) in enumerate(documents().values())}
QUERIES = {f"q{number}": f"Where was {name} born?" for number, name in enumerate([*documents()][:6])}


def test_a_task_gives_the_measure_by_hand(chain: Chain, tmp_path):
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    class Tiny(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Tiny", description="Where people were born.", type="Retrieval", category="t2t", reference=None, main_score="mrr_at_10",
            dataset={"path": "here/alone", "revision": "1"}, eval_splits=["test"], eval_langs=["eng-Latn"], date=None, domains=None,
            task_subtypes=None, license=None, annotations_creators=None, dialect=None, sample_creation=None, bibtex_citation=None,
        )  # fmt: skip

        def load_data(self, *_: object, **__: object) -> None:
            rows = {
                "corpus": [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()],
                "queries": [{"id": name, "text": text} for name, text in QUERIES.items()],
            }
            split = {name: datasets.Dataset.from_list(found) for name, found in rows.items()}
            judged = {name: {f"d{name[1:]}": 1} for name in QUERIES}
            self.dataset = {"default": {"test": {**split, "relevant_docs": judged, "top_ranked": None}}}
            self.data_loaded = True

    retriever = load_retriever(chain.retriever.path)
    score_BN = (
        retriever.encode_queries([*QUERIES.values()]) @ retriever.encode_blocks([""] * len(TEXTS), [*TEXTS.values()]).T
    )
    ranks = np.array([1 + (row > row[number]).sum() for number, row in enumerate(score_BN)])
    model = MtebSearch(retriever)
    assert isinstance(model, mteb.models.SearchProtocol)
    results = mteb.evaluate(model, Tiny(), cache=None, overwrite_strategy="always")
    [scores] = results.task_results[0].scores["test"]
    assert scores["mrr_at_10"] == pytest.approx(np.mean(np.where(ranks <= 10, 1 / ranks, 0)), abs=1e-4)
    assert results.model_name.startswith("realmctl/retriever")


def test_named_documents_alone_are_scored(chain: Chain):
    model = MtebSearch(load_retriever(chain.retriever.path))
    model.index(datasets.Dataset.from_list([{"id": name, "text": text} for name, text in TEXTS.items()]))
    queries = datasets.Dataset.from_list([{"id": "q0", "text": QUERIES["q0"]}])
    every = model.search(queries, top_k=99)["q0"]
    some = model.search(queries, top_k=99, top_ranked={"q0": ["d3", "d1"]})["q0"]
    assert len(every) == len(TEXTS) and some == pytest.approx({name: every[name] for name in ("d3", "d1")}, abs=1e-5)

"""`weigh-bm25` against the scores of both rankings, and the weight in every search of the workspace."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import realmctl
from realmctl.artifacts import Artifact, open_artifact
from realmctl.errors import InputError
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.ranking.trec import read_run
from realmctl.extras.serve.models import Searches
from realmctl.index.index_type import open_index
from realmctl.lab.asked_weight.weigh_bm25 import WeighBm25
from realmctl.retrieval.search.dense import DenseSearcher
from realmctl.retrieval.search.profile import SearchProfile
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, documents, make_index
from tests.fixtures.retriever import make_retriever

PARTS = ("blocks", "retriever", "index")


@pytest.fixture(scope="module")
def own(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """A workspace of these tests alone, since a weight changes each search of it."""
    folder = tmp_path_factory.mktemp("own")
    for name in PARTS:
        shutil.copytree(chain.folder / name, folder / name)
    parts: dict[str, Any] = {name: open_artifact(folder / name / "v1") for name in PARTS}
    return dataclasses.replace(chain, folder=folder, **parts)


@pytest.fixture(scope="module")
def asked(own: Chain) -> Path:
    """120 questions, of which twenty are asked twice."""
    path = own.folder / "asked.txt"
    names = [*documents()]
    texts = [
        f"{word} {name}?"
        for word in ("Who was", "Where was the school of", "When worked", "Which firm had", "Who met")
        for name in names
    ]
    path.write_text("\n".join([*texts, *texts[:20], ""]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def weighed(own: Chain, asked: Path) -> Artifact:
    parts = {name: getattr(own, name) for name in PARTS}
    return WeighBm25(questions=asked, precision="fp32", **parts).make(own.folder / "bm25-weight")


def test_the_weight_is_that_of_the_mean_gaps(own: Chain, asked: Path, weighed: Artifact, tmp_path: Path) -> None:
    means = {}
    for method in ("dense", "bm25"):
        parts = {name: getattr(own, name) for name in PARTS[: 1 if method == "bm25" else 3]}
        ranking = Rank(queries=asked, method=method, top=10, precision="fp32", **parts).make(tmp_path / method)
        runs = list(read_run(ranking.file("run.trec")))
        scores = [[*found.values()] for _, found in runs][:100]  # the rest was asked before
        means[method] = sum(each[0] - (each[9] if len(each) == 10 else 0) for each in scores) / 100
    vector_ND = open_index(own.index.path, "cpu").vectors(np.arange(40)).astype(float)
    dense = 32 / (vector_ND**2).sum(1).mean() * means["dense"]
    assert weighed.metrics["questions"] == 100
    assert weighed.metrics["gap_bm25"] == pytest.approx(means["bm25"], abs=1e-4)
    assert weighed.metrics["gap_dense"] == pytest.approx(dense, abs=1e-3)
    expected = np.clip(0.85 * (means["bm25"] / dense) ** 4, 0.7, 4)
    assert weighed.metrics["bm25_weight"] == pytest.approx(expected, rel=5e-3) and expected != 1


def test_every_search_of_the_workspace_takes_it_for_its_retriever_alone(own: Chain, weighed: Artifact) -> None:
    weight = weighed.metrics["bm25_weight"]
    search = realmctl.load_search(own.folder, method="hybrid", precision="fp32")
    assert search.profile is not None and search.profile.bm25_weight == weight
    served = Searches(DenseSearcher(own.retriever, own.index, own.blocks, "cpu", "fp32"))
    assert served.by("hybrid").profile == search.profile
    ranking = Rank(queries=own.questions, method="hybrid", **{name: getattr(own, name) for name in PARTS})
    told = json.loads(ranking.make(own.folder / "ranking").file("ranking.json").read_text(encoding="utf-8"))
    assert told["search"]["bm25_weight"] == weight
    for option in ({"bm25_weight": 1.0}, {"fusion": "ranks"}, {"bm25_tokens": "pieces"}):
        assert realmctl.load_search(own.folder, method="hybrid", **option).profile == SearchProfile.of(
            own.blocks, "hybrid", **option
        )
        assert SearchProfile.of(own.blocks, "hybrid", retriever=own.retriever, **option).bm25_weight == 1.0
    other = make_retriever(own.folder / "other-retriever", own.blocks, seed=5)
    assert SearchProfile.of(own.blocks, "hybrid", retriever=other).bm25_weight == 1.0
    assert SearchProfile.of(own.blocks, "hybrid", retriever=own.retriever).bm25_weight == weight


def test_documents_may_change_and_the_weight_stays(own: Chain, weighed: Artifact) -> None:
    changed = make_blocks(own.folder / "blocks", {**documents(), "New": [["A new page."]]})
    assert changed.content != own.blocks.content
    assert SearchProfile.of(changed, "hybrid", retriever=own.retriever).bm25_weight == weighed.metrics["bm25_weight"]


def test_few_questions_are_refused_with_their_number(own: Chain, tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("Who was Ada?\n" * 170, encoding="utf-8")
    parts = {name: getattr(own, name) for name in PARTS}
    with pytest.raises(InputError, match=r"few\.txt has 1 different questions, and 100 are needed"):
        WeighBm25(questions=tmp_path / "few.txt", **parts).make(tmp_path / "bm25-weight")
    assert not (tmp_path / "bm25-weight").exists() or not [*(tmp_path / "bm25-weight").glob("v*")]


def test_rankings_without_a_difference_leave_a_weight_that_is_a_number(tmp_path: Path) -> None:
    blocks = make_blocks(tmp_path / "blocks", {"Same": [["The same text."]]})
    retriever = make_retriever(tmp_path / "retriever", blocks)
    (tmp_path / "asked.txt").write_text("\n".join(f"Word{n}?" for n in range(100)), encoding="utf-8")
    index = make_index(tmp_path, blocks, retriever)
    made = WeighBm25(questions=tmp_path / "asked.txt", blocks=blocks, retriever=retriever, index=index)
    assert made.make(tmp_path / "bm25-weight").metrics["bm25_weight"] == 0.7

"""The page of artifact files is what the stages write: every file is on the page, and every file of the page exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from docs.make_artifact_files import BEGIN, KINDS, PAGE, condition, page
from realmctl.artifacts import Artifact, open_artifact
from realmctl.extras.ir.beir_shortcut import MeasuredCollection, make_table
from realmctl.extras.ir.collect import Collect
from realmctl.extras.ir.eval_run import EvalRun
from realmctl.extras.ir.rank import Rank
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.lab.asked_weight.weigh_bm25 import WeighBm25
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from realmctl.lab.cross_encoders.rerank_finetune import RerankFinetune
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.lab.judging.judge import Judge
from realmctl.lab.knn_lm.build_datastore import BuildDatastore
from realmctl.lab.knn_lm.eval_knn_lm import EvalKnnLm
from realmctl.lab.language_models.generate_queries import GenerateQueries
from realmctl.lab.language_models.lm_finetune import LmFinetune
from realmctl.lab.language_models.lm_init import LmInit
from realmctl.lab.late_interaction.late_embed import LateEmbed
from realmctl.lab.late_interaction.late_finetune import LateFinetune
from realmctl.retrieval.search import postings
from realmctl.retrieval.search.postings import Bm25Ranking
from stages.chunk import Chunk
from stages.eval_cloze import EvalCloze
from stages.eval_em import EvalEm
from stages.ict_init import IctInit
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import Chain, baseline, documents, finetune, make_index, pretrain
from tests.fixtures.chat_server import chat_server
from tests.fixtures.collections import hub_folder
from tests.fixtures.kinds import colbert
from tests.fixtures.language_models import make_babbler, make_t5
from tests.fixtures.realm_case import PROJECTION
from tests.fixtures.realm_checkpoints import RECORDS, imported, open_qa


@pytest.fixture(scope="module")
def made(chain: Chain, cross_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Artifact]:
    """One artifact of every kind that stages make, in every form that has other files."""
    folder = tmp_path_factory.mktemp("made")
    model = pretrain(chain).make(folder / "model")
    dense = finetune(chain, model).make(folder / "qa-model")
    bm25, closed_book = (baseline(chain, name).make(folder / name) for name in ("bm25", "none"))
    two_towers = IctInit(
        blocks=chain.blocks, bert="scratch:L1-H16", steps=1, batch_size=4, projection=8, towers="separate"
    ).make(folder / "two-towers")
    condenser = CondenserInit(blocks=chain.blocks, bert="scratch:L1-H16", steps=1, batch_size=2, length=24).make(
        folder / "condenser"
    )
    of_retriever = CondenserInit(
        blocks=chain.blocks,
        retriever=chain.retriever,
        contrastive=True,
        skip_from=0,
        steps=1,
        batch_size=2,
        length=24,
    ).make(folder / "of-retriever")
    cloze = EvalCloze(blocks=chain.blocks, method="bm25").make(folder / "cloze")
    hnsw = make_index(folder, chain.blocks, chain.retriever, type="hnsw", min_recall=0.1)
    shards = make_index(folder / "shards", chain.blocks, chain.retriever, type="hnsw", min_recall=0.1, shards=2)
    others = [
        make_index(folder / kind, chain.blocks, chain.retriever, type=kind, min_recall=0.1, **settings)
        for kind, settings in (("int8", {}), ("faiss", {"factory": "Flat"}))
    ]
    evaluated = {"blocks": chain.blocks, "questions": chain.questions}
    scores = [
        EvalEm(qa_model=qa_model, **evaluated).make(folder / f"scores-{number}")
        for number, qa_model in enumerate((dense, bm25, closed_book))
    ]
    recall = EvalEm(retriever=model, index=model, **evaluated).make(folder / "recall")
    utility = EvalUtility(model=model, spans=chain.spans, blocks=chain.blocks).make(folder / "utility")
    ranking = Rank(method="bm25", blocks=chain.blocks, queries=chain.questions).make(folder / "ranking")
    scores.append(EvalRun(ranking=ranking, **evaluated).make(folder / "ranking-scores"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(hub_folder(folder / "snapshot")))
        collection = Collect(dataset="hf:owner/Tiny").make(folder / "collection")
    one = MeasuredCollection(name="Tiny", documents=1, queries=1, measures={"RR@10": 1.0}, scores=scores[-1])
    negatives = MineNegatives(ranking=ranking, **evaluated).make(folder / "negatives")
    asking = {"lm": str(make_babbler(folder / "babbler")), "temperature": 1.0, "sample": 9}
    queries = GenerateQueries(blocks=chain.blocks, **asking).make(folder / "queries")
    with chat_server(lambda number, body: f"Where did traveller {number} sleep?") as server:
        served = GenerateQueries(blocks=chain.blocks, lm="m", endpoint=server.url, sample=2).make(folder / "served")
    passages = negatives.file("train.jsonl")
    taught = RerankFinetune(start=str(cross_encoder), passages=passages, steps=1, batch_size=2).make(folder / "taught")
    with chat_server(lambda number, body: '{"reason": "so", "grade": 1}') as server:
        asking = {"lm": "m", "endpoint": server.url, "sample": 1, "depth": 2}
        judgements = Judge(rankings=(ranking.path,), blocks=chain.blocks, **asking).make(folder / "judgements")
    trained = LateFinetune(
        start=str(colbert(folder / "late-start")), passages=passages, hard_negatives=0, steps=1, batch_size=2
    ).make(folder / "late-encoder")
    (folder / "asked.txt").write_text("\n".join(f"Who was Ada {number}?" for number in range(100)))
    weight = WeighBm25(
        blocks=chain.blocks, retriever=chain.retriever, index=chain.index, questions=folder / "asked.txt"
    ).make(folder / "bm25-weight")
    collections = [weight, taught, trained, negatives, queries, served, judgements, collection]
    collections.append(make_table([one], chain.retriever, folder))
    lm = LmInit(spans=chain.spans, lm=str(make_t5(folder / "t5")), steps=1, batch_size=2).make(folder / "lm")
    written = LmFinetune(language_model=lm, questions=chain.questions, steps=1, batch_size=2).make(folder / "lm-qa")
    read = pretrain(chain, encoder=None, steps=1, reader_lm=str(folder / "t5"), train_reader=True).make(folder / "read")
    stores = [
        BuildDatastore(encoder=chain.encoder, spans=chain.spans, type=type).make(folder / type)
        for type in ("exact", "hnsw")
    ]
    knn = EvalKnnLm(encoder=chain.encoder, datastore=stores[0], spans=chain.spans).make(folder / "knn")
    late = [
        LateEmbed(blocks=chain.blocks, encoder=str(colbert(folder / name, layers=layers))).make(folder / name / "made")
        for name, layers in (("late", True), ("late-without-layers", False))
    ]
    embeddings = open_artifact(chain.folder / "embeddings")
    first = [
        with_fields(folder),
        chain.blocks,
        chain.spans,
        chain.encoder,
        chain.retriever,
        two_towers,
        embeddings,
        chain.index,
        hnsw,
    ]
    first += [shards, *others, ranking, lm, written, read, *stores, knn]
    return [
        *first,
        *late,
        condenser,
        of_retriever,
        cloze,
        kept_bm25(chain, folder),
        *imports(folder),
        model,
        dense,
        bm25,
        closed_book,
        *scores,
        *collections,
        recall,
        utility,
    ]


def kept_bm25(chain: Chain, folder: Path) -> Artifact:
    """What a search keeps of many blocks."""
    blocks = make_blocks(folder / "of-search/blocks", documents())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(postings, "KEPT_FROM", 1)
        Bm25Ranking(blocks, "english")
    return open_artifact(folder / "of-search/kept-bm25")


def with_fields(folder: Path) -> Artifact:
    """Blocks of documents that have fields."""
    (folder / "dated.jsonl").write_text('{"id": "a", "text": "The lamp is old.", "date": "2024-05-01"}\n')
    corpus = (folder / "dated.jsonl",)
    return Chunk(corpus=corpus, tokenizer="train:200", workers=1, keep_fields="date").make(folder / "dated")


def first_shard_only(names: Iterable[str]) -> set[str]:
    """The names without those of the second shard, which the page stands for by the first."""
    return {name for name in names if not name.startswith("shard-001/")}


def imports(folder: Path) -> list[Artifact]:
    """The artifacts of an imported open-QA checkpoint."""
    rows = np.zeros((len(RECORDS), PROJECTION), dtype=np.float32)
    return list(imported(open_qa(folder / "checkpoint", rows), folder / "imports").values())


def with_parts(artifacts: list[Artifact]) -> Iterator[Artifact]:
    """The artifacts, and the artifacts inside them."""
    for artifact in artifacts:
        yield artifact
        yield from with_parts([artifact.part(name) for name in artifact.manifest.parts])


def test_every_file_and_part_is_on_the_page(made: list[Artifact]) -> None:
    for artifact in with_parts(made):
        kind = KINDS[artifact.kind]
        assert first_shard_only(artifact.manifest.files) <= set(kind.files), artifact
        assert set(artifact.manifest.parts) <= set(kind.parts), artifact
        for name, part in kind.parts.items():
            if name in artifact.manifest.parts:
                assert artifact.part(name).kind in part, artifact


def test_every_file_and_part_of_the_page_exists(made: list[Artifact]) -> None:
    found: dict[str, list[set[str]]] = {}
    for artifact in with_parts(made):
        names = {*artifact.manifest.files, *artifact.manifest.parts}
        found.setdefault(artifact.kind, []).append(first_shard_only(names))
    assert set(found) == set(KINDS)
    for name, kind in KINDS.items():
        always = {item for item in (*kind.files, *kind.parts) if not condition(kind, item)}
        assert all(always <= items for items in found[name]), name
        assert set().union(*found[name]) == {*kind.files, *kind.parts}, name


def test_page_is_fresh() -> None:
    text = Path(PAGE).read_text(encoding="utf-8")
    assert text.count(BEGIN) == 1 and text == page(text), "run: python docs/make_artifact_files.py"

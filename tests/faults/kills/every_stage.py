"""Every stage, small enough to be killed a thousand times."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from realmctl.artifacts import Artifact
from realmctl.extras.hub.import_encoder import Import
from realmctl.extras.ir.eval_run import EvalRun
from realmctl.extras.ir.rank import Rank
from realmctl.extras.ir.rerank import Rerank
from realmctl.extras.utility.eval_utility import EvalUtility
from realmctl.lab.asked_weight.weigh_bm25 import WeighBm25
from realmctl.lab.bottleneck.condenser_init import CondenserInit
from realmctl.lab.bottleneck.retromae_init import RetromaeInit
from realmctl.lab.cross_encoders.rerank_finetune import RerankFinetune
from realmctl.lab.dpr.dpr_finetune import DprFinetune
from realmctl.lab.dpr.mine_negatives import MineNegatives
from realmctl.lab.judging.judge import Judge
from realmctl.lab.knn_lm.build_datastore import BuildDatastore
from realmctl.lab.knn_lm.eval_knn_lm import EvalKnnLm
from realmctl.lab.language_models.generate_queries import GenerateQueries
from realmctl.lab.language_models.lm_finetune import LmFinetune
from realmctl.lab.language_models.lm_init import LmInit
from realmctl.lab.language_models.revela.revela_init import RevelaInit
from realmctl.lab.late_interaction.late_embed import LateEmbed
from realmctl.lab.late_interaction.late_finetune import LateFinetune
from realmctl.lab.late_interaction.late_rank import LateRank
from realmctl.lab.spider.spider_init import SpiderInit
from realmctl.lab.teachers.cut_queries import CutQueries
from realmctl.pipeline import Stage
from realmctl.tokens.tokenizer import Tokenizer
from stages.build_index import BuildIndex
from stages.chunk import Chunk
from stages.embed import Embed
from stages.eval_cloze import EvalCloze
from stages.eval_em import EvalEm
from stages.ict_init import IctInit
from stages.mlm_init import MlmInit
from stages.revise import Revise
from stages.tag import Tag
from tests.fixtures.blocks import make_blocks
from tests.fixtures.chain import TOWNS, Chain, documents, finetune, pretrain
from tests.fixtures.chat_server import ChatServer, chat_server
from tests.fixtures.cross_encoders import make_cross_encoder
from tests.fixtures.encoder_folders import folder_for
from tests.fixtures.kinds import colbert
from tests.fixtures.language_models import make_babbler, make_t5
from tests.fixtures.recurring import documents_that_share_a_span

TRAINING: dict[str, Any] = {"steps": 4, "batch_size": 4, "checkpoint_every": 1}
LM: dict[str, Any] = {**TRAINING, "warmup": 1, "precision": "fp32"}


def every_stage(chain: Chain, folder: Path) -> dict[str, Stage]:
    """{command: the stage}, with inputs below `folder`. `build-index` is there twice, for its two types."""
    corpus, edits, passages = folder / "corpus.jsonl", folder / "edits.jsonl", folder / "passages.json"
    corpus.write_text("".join(json.dumps(document) + "\n" for document in _plain_documents()))
    edits.write_text('{"op": "update", "id": "1", "text": "Ben was born in Harrow in 1950."}\n')
    passages.write_text(json.dumps(_labelled()))
    chunk = Chunk(corpus=(corpus,), tokenizer="train:300", workers=1)
    blocks, t5 = chunk.make(folder / "blocks"), str(make_t5(folder / "t5"))
    babbler, prompt = str(make_babbler(folder / "babbler")), folder / "prompt.txt"
    prompt.write_text("{block}\nQuestion:")
    recurring = make_blocks(folder / "recurring", documents_that_share_a_span())
    embed = Embed(blocks=chain.blocks, retriever=chain.retriever, batch_size=7)
    embeddings = embed.make(folder / "embeddings")
    rank = Rank(blocks=chain.blocks, retriever=chain.retriever, index=chain.index, queries=chain.questions, top=7)
    ranking = rank.make(folder / "ranking")
    parts: dict[str, Artifact] = {"retriever": chain.retriever, "index": chain.index}
    store: dict[str, Any] = {"encoder": chain.encoder, "spans": chain.spans, "precision": "fp32"}
    datastore = BuildDatastore(**store)
    utility = EvalUtility(blocks=chain.blocks, spans=chain.spans, encoder=chain.encoder, candidates=4, **parts)
    ict = IctInit(blocks=chain.blocks, encoder=chain.encoder, projection=8, **TRAINING)
    spider = SpiderInit(blocks=recurring, bert="scratch:L1-H16", projection=8, query_length=40, **TRAINING)
    dpr = DprFinetune(retriever=_with_block_tower(ict, folder), passages=passages, hard_negatives=0, **TRAINING)
    reader = str(make_cross_encoder(folder / "cross-encoder", Tokenizer.load(chain.blocks.path)))
    multi_vector = str(colbert(folder / "late"))
    (folder / "asked.txt").write_text("\n".join(f"Who was Ada {number}?" for number in range(100)))
    late = LateEmbed(blocks=chain.blocks, encoder=multi_vector)
    return {
        "chunk": chunk,
        "revise": Revise(blocks=blocks, edits=edits, workers=1),
        "tag": Tag(blocks=chain.blocks, tagger="anchors", query_length=24, workers=1),
        "mlm-init": MlmInit(blocks=chain.blocks, bert="scratch:L1-H16", length=16, **TRAINING),
        "condenser-init": CondenserInit(blocks=chain.blocks, bert="scratch:L2-H16", length=16, **TRAINING),
        "retromae-init": RetromaeInit(blocks=chain.blocks, bert="scratch:L1-H16", length=16, **TRAINING),
        "ict-init": ict,
        "spider-init": spider,
        "dpr-finetune": dpr,
        "embed": embed,
        "build-index": BuildIndex(embeddings=embeddings, type="hnsw", min_recall=0.0),
        "build-index, exact": BuildIndex(embeddings=embeddings, type="exact"),
        "pretrain": pretrain(chain, checkpoint_every=1),
        "finetune": finetune(chain, checkpoint_every=1),
        "rank": rank,
        "import": Import(source=str(folder_for(chain.blocks, folder / "sentence-encoder"))),
        "rerank": Rerank(ranking=ranking, blocks=chain.blocks, model=reader, depth=3),
        "rerank-finetune": RerankFinetune(start=reader, passages=passages, hard_negatives=1, max_length=32, **TRAINING),
        "cut-queries": CutQueries(blocks=chain.blocks, sample=9, words=2, sentences=1),
        "generate-queries": GenerateQueries(
            blocks=chain.blocks, lm=babbler, prompt=prompt, temperature=1.0, sample=9, batch_size=3
        ),
        "generate-queries, served": GenerateQueries(blocks=chain.blocks, lm="m", endpoint=_writer(), sample=9),
        "judge": Judge(rankings=(ranking.path,), blocks=chain.blocks, lm="m", endpoint=_writer(), sample=5, depth=2),
        "mine-negatives": MineNegatives(ranking=ranking, blocks=chain.blocks, questions=chain.questions),
        "eval-run": EvalRun(ranking=ranking, blocks=chain.blocks, questions=chain.questions),
        "eval-em": EvalEm(blocks=chain.blocks, questions=chain.questions, hits=5, precision="fp32", **parts),
        "eval-cloze": EvalCloze(blocks=chain.blocks, method="bm25"),
        "eval-utility": utility,
        "lm-init": LmInit(spans=chain.spans, lm=t5, **LM),
        "revela-init": RevelaInit(
            blocks=chain.blocks,
            retriever=chain.retriever,
            lm=babbler,
            blocks_each=2,
            length=40,
            **{**LM, "batch_size": 4},
        ),
        "lm-finetune": LmFinetune(lm=t5, questions=chain.questions, answer_length=12, **LM),
        "build-datastore": datastore,
        "eval-knn-lm": EvalKnnLm(datastore=datastore.make(folder / "datastore"), **store),
        "weigh-bm25": WeighBm25(blocks=chain.blocks, questions=folder / "asked.txt", **parts),
        "late-embed": late,
        "late-finetune": LateFinetune(start=multi_vector, passages=passages, hard_negatives=0, **TRAINING),
        "late-rank": LateRank(
            blocks=chain.blocks, late_index=late.make(folder / "late-index"), queries=chain.questions
        ),
    }


_OPEN: list[AbstractContextManager[ChatServer]] = []


@cache
def _writer() -> str:
    """The address of a server in this process, until it ends, that writes questions and grades."""

    def answer(number: int, body: dict[str, Any]) -> str:
        return f'{{"reason": "Why was {body["seed"]} chosen?", "grade": {body["seed"] % 4}}}'

    _OPEN.append(chat_server(answer))
    return _OPEN[-1].__enter__().url


def _plain_documents() -> list[dict[str, str]]:
    return [
        {"id": str(number), "title": title, "text": " ".join(sentence for block in blocks for sentence in block)}
        for number, (title, blocks) in enumerate(documents().items())
    ]


def _labelled() -> list[dict[str, Any]]:
    return [
        {
            "question": f"Where is {town}?",
            "answers": [town],
            "positive_ctxs": [{"title": town, "text": f"{town} is here."}],
            "negative_ctxs": [],
            "hard_negative_ctxs": [{"title": other, "text": f"{other} is there."}],
        }
        for town, other in zip(TOWNS, TOWNS[1:] + TOWNS[:1], strict=True)
    ]


def _with_block_tower(ict: IctInit, folder: Path) -> Artifact:
    return ict.make(folder / "retriever")

"""The vectors of the tokens of blocks, and rankings by MaxSim over them.

Legend: T tokens of all blocks, N blocks, L tokens of a query, D width.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.artifacts import Artifact, Writer
from realmctl.artifacts.arrays import open_array
from realmctl.artifacts.description import RANKING, RankingDescription, write_description
from realmctl.corpus.blocks import Block
from realmctl.corpus.corpus import Corpus
from realmctl.errors import InputError
from realmctl.execution.batches import batched
from realmctl.extras.ir.ranking.judged import judged_alone
from realmctl.extras.ir.ranking.queries import read_queries
from realmctl.extras.ir.ranking.trec import TrecNames, read_run, run_lines, trec_name
from realmctl.lab.late_interaction.encoder import LateEncoder, Side, open_late
from realmctl.lab.late_interaction.late_embed import LateEmbed
from realmctl.lab.late_interaction.late_rank import LateRank
from realmctl.lab.late_interaction.maxsim import maxsim_of_all
from realmctl.log import progress
from realmctl.models.precision import pick_device
from realmctl.questions.questions import Question

VECTORS, OFFSETS = "token_vectors.npy", "offsets.npy"


@torch.no_grad()
def token_vectors(
    encoder: LateEncoder, texts: list[str], side: Side, batch_size: int = 16
) -> Iterator[list[NDArray[np.float32]]]:
    """Yield the vectors that count of each text, float32 [L, D], a batch at a time."""
    for batch in batched(texts, batch_size):
        state_BLD, counts_BL = encoder(batch, side)
        yield [state[counts].float().cpu().numpy() for state, counts in zip(state_BLD, counts_BL, strict=True)]


def text_of(block: Block) -> str:
    """Return what is embedded of a block: its title and its text, as dense retrieval reads them."""
    return f"{block.title} {block.text}".strip()


def embed_blocks(settings: LateEmbed, out: Writer) -> dict[str, float]:
    """Write the encoder, and the vectors of all blocks end to end. Returns the metrics.

    Raises InputError for blocks without text and for an encoder that cannot be used; ResourceError for a disk that is too small.
    """
    corpus = Corpus(settings.blocks)
    if not len(corpus):
        raise InputError(f"{settings.blocks} holds no block, so there is nothing to embed.")
    encoder = open_late(settings.encoder)
    encoder.save(out.path)
    encoder = encoder.to(pick_device(settings.device))
    lengths: list[int] = []
    raw = out.scratch("vectors") / "raw"
    with raw.open("wb") as file, progress(len(corpus), "embedding", "blocks") as bar:
        for rows in batched(range(len(corpus)), 16 * settings.batch_size):
            texts = [text_of(corpus.block(row)) for row in rows]
            for vectors in token_vectors(encoder, texts, "document", settings.batch_size):
                lengths += map(len, vectors)
                file.write(np.concatenate(vectors).astype(settings.dtype).tobytes())
                bar.advance(len(vectors))
    offset_N = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    stored = np.memmap(raw, settings.dtype, "r", shape=(int(offset_N[-1]), encoder.width))
    np.save(out.file(VECTORS), stored)
    np.save(out.file(OFFSETS), offset_N)
    return {"blocks": len(corpus), "vectors": int(offset_N[-1]), "width": encoder.width}


class LateIndex:
    """Blocks, the vectors of their tokens, and the encoder of queries."""

    def __init__(self, late_index: Artifact, device: str = "auto") -> None:
        self.encoder = LateEncoder.load(late_index.path).to(pick_device(device))
        self.token_TD, self.offset_N = open_array(late_index.file(VECTORS)), open_array(late_index.file(OFFSETS))

    def scores(self, query: str, rows: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """Return the scores of all blocks for a query, or those of some rows, float32."""
        [[query_LD]] = token_vectors(self.encoder, [query], "query")
        if rows is None:
            return maxsim_of_all(query_LD, self.token_TD, self.offset_N)
        parts = [self.token_TD[self.offset_N[row] : self.offset_N[row + 1]] for row in rows.tolist()]
        offset_n = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return maxsim_of_all(query_LD, np.concatenate(parts) if parts else self.token_TD[:0], offset_n)


def write_ranking(settings: LateRank, out: Writer) -> dict[str, int]:
    """Rank for the queries in a file, and write run.trec, queries.jsonl and ranking.json. Returns the numbers of queries and hits.

    Raises InputError where the first ranking names a block that the blocks do not have.
    """
    index, corpus = LateIndex(settings.late_index, settings.device), Corpus(settings.blocks)
    identities = [block.id for block in corpus]
    first = _first(settings, {trec_name(name): row for row, name in enumerate(identities)})
    asked: list[Question] = [
        *(read_queries(settings.queries) if settings.qrels is None else judged_alone(settings.queries, settings.qrels))
    ]
    counts = {"queries": len(asked), "hits": 0, "without_hits": 0}
    with (
        out.file("run.trec").open("w", encoding="utf-8") as run,
        out.file("queries.jsonl").open("w", encoding="utf-8") as listed,
        progress(len(asked), "searching", "queries") as bar,
    ):
        queries, blocks = TrecNames(), TrecNames()
        for query in asked:
            rows = np.arange(len(corpus)) if first is None else first.get(trec_name(query.id), np.empty(0, np.int64))
            score_n = index.scores(query.question, None if first is None else rows)
            order = np.lexsort((rows, -score_n))[: settings.top]
            names = [blocks(identities[row]) for row in rows[order].tolist()]
            run.writelines(run_lines(queries(query.id), names, score_n[order], "realmctl-late"))
            listed.write(json.dumps({"id": query.id, "text": query.question}, ensure_ascii=False) + "\n")
            counts["hits"] += len(names)
            counts["without_hits"] += not names
            bar.advance(1)
    write_description(out.file(RANKING), RankingDescription(unit="block"))
    return counts


def _first(settings: LateRank, row_of: dict[str, int]) -> dict[str, NDArray[np.int64]] | None:
    if settings.ranking is None:
        return None
    found = {}
    for query, scores in read_run(settings.ranking.file("run.trec")):
        if missing := next((name for name in scores if name not in row_of), None):
            raise InputError(f"{settings.ranking} names the block {missing!r}, which {settings.blocks} does not have.")
        found[query] = np.array(sorted(row_of[name] for name in scores), dtype=np.int64)
    return found

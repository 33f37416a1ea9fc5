"""REALM pre-training: fill a masked salient span with the help of retrieved blocks (paper, section 3; official realm/model.py).

The index only chooses candidates. Their scores in the loss are recomputed with the live retriever, so that gradients
reach both towers; the query encoder that searches is the live one too, while the index may be some steps older.
Legend: B queries, N candidates (null first), Q query, J joint tokens, M masks, D projection.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifact import Artifact
from realmctl.index.protocol import Index
from realmctl.index.store import open_index
from realmctl.log import say
from realmctl.nn.inputs import Packed, Packer
from realmctl.nn.marginal import retrieval_utility, sequence_marginal, token_marginal
from realmctl.nn.reader import Reader
from realmctl.nn.retriever import Retriever
from realmctl.retrieval.candidates import NULL, candidates
from realmctl.retrieval.corpus import Corpus, Ids
from realmctl.retrieval.queries import Queries
from realmctl.signals import StopRequested, asked_to_stop
from realmctl.train.loop import Sums
from realmctl.train.masking import Masking, places
from realmctl.train.order import Order
from realmctl.train.refresh import Refresh

Marginal = Literal["token", "sequence"]
EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Options:
    """What decides the objective; see the stage's settings."""

    batch_size: int
    candidates: int
    marginal: Marginal
    masking: Masking
    max_masks: int
    query_length: int
    seed: int


@dataclass(frozen=True)
class Part:
    """A micro-batch: masked queries, what they hide, and their candidates (rows of blocks, null -1, none -2)."""

    queries: Packed
    tokens: list[Ids]
    position_BM: Tensor
    target_BM: Tensor
    mask_BM: Tensor
    rows_BN: NDArray[np.int64]
    normaliser: float


class Pretraining:
    """The marginal likelihood of hidden spans, with an index that is swapped as fresher ones come."""

    def __init__(
        self, retriever: Retriever, reader: Reader, queries: Queries, corpus: Corpus, packer: Packer,
        index: Artifact, refresh: Refresh, options: Options, *, micro_batch: int, index_device: str,
    ) -> None:  # fmt: skip
        self.modules = nn.ModuleDict({"retriever": retriever, "reader": reader})
        self.retriever, self.reader = retriever, reader
        self.queries, self.corpus, self.packer = queries, corpus, packer
        self.refresh, self.options = refresh, options
        self.micro_batch = micro_batch or options.batch_size
        self.index_device, self.index_step, self.begun = index_device, 0, False
        self.index: Index = open_index(index.path, index_device)
        self.order = Order(len(queries.spans), options.batch_size, options.seed)

    def before_step(self, step: int) -> Mapping[str, float]:
        """Offer a snapshot when it is time, take a fresher index when there is one, wait when ours is too old."""
        if not self.begun:
            self.refresh.begin(step)
            self.begun = True
        self.refresh.offer(step, self.retriever)
        self._swap(self.refresh.newest(step))
        waited = self._wait(step)
        return {"index_age_steps": step - self.index_step, **({"index_wait_seconds": waited} if waited else {})}

    def _swap(self, fresh: tuple[int, Artifact] | None) -> None:
        if fresh is not None and fresh[0] > self.index_step:
            self.index_step, self.index = fresh[0], open_index(fresh[1].path, self.index_device)
            self.refresh.hold(self.index_step)

    def _wait(self, step: int) -> float:
        if not self.refresh.too_old(step, self.index_step):
            return 0.0
        start = time.monotonic()
        say(f"pretrain: step {step}: the index is {step - self.index_step} steps old, waiting for a fresher one")
        while self.refresh.too_old(step, self.index_step):
            if asked_to_stop():
                raise StopRequested
            time.sleep(0.05)
            self._swap(self.refresh.newest(step))
        return time.monotonic() - start

    def state(self) -> dict[str, Any]:
        """The index that the next step starts with."""
        return {"index_step": self.index_step}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Open the index that the checkpoint was taken with."""
        step = int(state["index_step"])
        if step:
            self._swap((step, self.refresh.at(step)))

    def draw(self, step: int) -> Sequence[Part]:
        """Masked queries of the batch with the candidates that the index names now."""
        rng = np.random.default_rng([self.options.seed, step, 3])
        drawn = [self._masked(int(span), rng) for span in self.order.batch(step)]
        rows_BN = self._candidates([tokens for tokens, _, _, _ in drawn], [sentence for *_, sentence in drawn])
        hidden = sum(len(targets) for _, _, targets, _ in drawn)
        normaliser = float(hidden if self.options.marginal == "token" else len(drawn))
        cuts = range(0, len(drawn), self.micro_batch)
        return [self._part(drawn[i : i + self.micro_batch], rows_BN[i : i + self.micro_batch], normaliser) for i in cuts]

    def _masked(self, span: int, rng: np.random.Generator) -> tuple[Ids, NDArray[np.int64], NDArray[np.int64], int]:
        sentence, hidden = places(self.queries, span, self.options.masking, self.options.max_masks, rng)
        tokens = np.array(self.queries.tokens(sentence), dtype=np.int64)[: self.options.query_length - 2]
        hidden = hidden[hidden < len(tokens)]
        targets = tokens[hidden]
        tokens[hidden] = self.packer.mask_id
        return tokens, hidden, targets, sentence

    @torch.no_grad()
    def _candidates(self, tokens: list[Ids], sentences: list[int]) -> NDArray[np.int64]:
        self.retriever.eval()
        packed = self.packer.query(tokens, self.options.query_length)
        query_BD = self.retriever.embed_queries(packed.to(self._device)).float().cpu().numpy()
        self.retriever.train()
        return candidates(self.index, query_BD, self.queries.uid[sentences], self.corpus.uid, self.options.candidates)

    @property
    def _device(self) -> torch.device:
        return next(self.retriever.parameters()).device

    def _part(self, drawn: list[tuple[Ids, NDArray[np.int64], NDArray[np.int64], int]], rows_BN: NDArray[np.int64], normaliser: float) -> Part:
        most = max(1, max(len(targets) for _, _, targets, _ in drawn))
        position_BM, target_BM = torch.zeros(len(drawn), most, dtype=torch.long), torch.zeros(len(drawn), most, dtype=torch.long)
        mask_BM = torch.zeros(len(drawn), most, dtype=torch.bool)
        for row, (_, hidden, targets, _) in enumerate(drawn):
            position_BM[row, : len(hidden)] = torch.from_numpy(hidden) + 1
            target_BM[row, : len(hidden)] = torch.from_numpy(targets)
            mask_BM[row, : len(hidden)] = True
        tokens = [tokens for tokens, _, _, _ in drawn]
        return Part(self.packer.query(tokens, self.options.query_length), tokens, position_BM, target_BM, mask_BM, rows_BN, normaliser)

    def loss(self, part: Part) -> tuple[Tensor, Sums]:
        """-log p(y|x) of the part's hidden wordpieces over the whole batch's count, and what retrieval was worth."""
        device = self._device
        mask_BM, present_BN = part.mask_BM.to(device), torch.from_numpy(part.rows_BN >= NULL).to(device)
        score_BN = self._scores(part)
        joint = self._joint(part)
        log_prob_BNM = self.reader.mlm_log_prob(joint.to(device), part.position_BM.to(device), part.target_BM.to(device), part.rows_BN.shape[1])
        marginal = token_marginal if self.options.marginal == "token" else sequence_marginal
        loss, _ = marginal(score_BN, log_prob_BNM, mask_BM, present_BN, part.normaliser)
        return loss, self._worth(score_BN, log_prob_BNM, mask_BM, present_BN)

    def _scores(self, part: Part) -> Tensor:
        """f(x, z) with live weights; a block that several queries share is embedded once."""
        distinct, place_BN = np.unique(np.maximum(part.rows_BN, NULL), return_inverse=True)
        titles = [self.corpus.title(int(row)) if row >= 0 else EMPTY for row in distinct]
        bodies = [self.corpus.tokens(int(row)) if row >= 0 else EMPTY for row in distinct]
        packed = self.packer.block(titles, bodies, self.retriever.block_length)
        block_CD = self.retriever.embed_blocks(packed.to(self._device))
        query_BD = self.retriever.embed_queries(part.queries.to(self._device))
        place = torch.from_numpy(place_BN.reshape(part.rows_BN.shape)).to(self._device)
        return self.retriever.score(query_BD, block_CD[place])

    def _joint(self, part: Part) -> Packed:
        firsts = [tokens for tokens, rows in zip(part.tokens, part.rows_BN, strict=True) for _ in rows]
        seconds = [self.corpus.tokens(int(row)) if row >= 0 else EMPTY for row in part.rows_BN.flat]
        return self.packer.joint(firsts, seconds, self.options.query_length, self.retriever.block_length)

    def _worth(self, score_BN: Tensor, log_prob_BNM: Tensor, mask_BM: Tensor, present_BN: Tensor) -> Sums:
        utility = retrieval_utility(score_BN.detach(), log_prob_BNM.detach(), mask_BM, present_BN)
        hidden, queries = float(mask_BM.sum()), float(len(mask_BM))
        return {
            "retrieval_utility": (float(utility.token_gain) * hidden, hidden),
            "top_1_utility": (float(utility.top_1_B.sum()), queries),
            "null_share": (float(utility.null_share_B.sum()), queries),
        }

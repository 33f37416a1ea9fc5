"""REALM pre-training: fill a masked salient span with the help of retrieved blocks (REALM, section 3; realm/model.py).

The index only chooses candidates. Their scores in the loss are computed with the retriever in training, so that gradients
reach both towers. The query encoder that searches is the one in training too, although the index may be some steps older.
With `--official snapshot-queries` the query encoder of the index's snapshot searches.
Legend: B queries, N candidates (null first), C distinct candidates, M masks, D projection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.corpus.corpus import Corpus
from realmctl.deviations import PretrainDeviation
from realmctl.execution import processes
from realmctl.index.protocol import Index
from realmctl.models.bert.limits import require_positions
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.marginal import retrieval_utility, sequence_marginal, token_marginal
from realmctl.models.optimizer import layer_lr_multipliers
from realmctl.models.precision import autocast
from realmctl.models.reader import Reader
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.candidates import ABSENT, NULL, candidates, doubled, titles_and_bodies
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import Masking, TaggedQueries
from realmctl.training import data_parallel
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import span_order
from realmctl.training.monitoring.alarms import Alarms
from realmctl.training.monitoring.candidate_watch import WATCHED_QUERIES, CandidateWatch
from realmctl.training.monitoring.index_change import index_drift, overlap
from realmctl.training.monitoring.recall_questions import RecallQuestions
from realmctl.training.monitoring.telling_blocks import TellingBlocks
from realmctl.training.objective import Sums
from realmctl.training.refresh.index_in_use import IndexInUse

Marginal = Literal["token", "sequence"]


@dataclass(frozen=True, kw_only=True)
class PretrainOptions:
    """The settings of `pretrain` that define the objective.

    precision: arithmetic of the searches; the training loop sets the precision of the loss.
    """

    batch_size: int
    candidates: int
    marginal: Marginal
    masking: Masking
    seed: int
    null_document: bool = True
    exclude_own: bool = True
    official: tuple[PretrainDeviation, ...] = ()
    retriever_lr_multiplier: float = 1.0
    layer_decay: float = 1.0
    precision: str = "fp32"


@dataclass(frozen=True)
class PretrainMicroBatch:
    """Queries and their candidates.

    rows_BN: rows of blocks, int64, -1 for the null document, -2 for no candidate. normaliser: what the loss is divided by, the
    number of hidden wordpieces, or of queries, of the whole batch.
    """

    asked: QueryBatch
    rows_BN: NDArray[np.int64]
    normaliser: float


class PretrainObjective:
    """The marginal likelihood of hidden spans, with an index that is refreshed."""

    def __init__(
        self,
        retriever: Retriever,
        reader: Reader,
        queries: TaggedQueries,
        corpus: Corpus,
        collator: Collator,
        current: IndexInUse,
        options: PretrainOptions,
        *,
        micro_batch: int = 0,
        alarms: Alarms | None = None,
        recall_questions: RecallQuestions | None = None,
    ) -> None:
        longest_body = min(retriever.block_length - 2, int(corpus.lengths.max()))
        require_positions(
            reader.mlm.config, queries.query_length + longest_body + 1, "tag --query-length and chunk --max-wordpieces"
        )
        self.modules = nn.ModuleDict({"retriever": retriever, "reader": reader})
        self.retriever, self.reader = retriever, reader
        self.lr_multipliers: Mapping[nn.Module, float] = {
            retriever: options.retriever_lr_multiplier,
            **layer_lr_multipliers(reader.mlm.bert, options.layer_decay),
        }
        self.queries, self.corpus, self.collator = queries, corpus, collator
        self.current, self.options = current, options
        self.micro_batch = micro_batch or options.batch_size
        self.own = processes.share(options.batch_size, "queries")
        self.order = span_order(queries, options.batch_size, options.seed, options.official)
        self.alarms, self.recall_questions, self.watch = alarms or Alarms(), recall_questions, CandidateWatch()
        self._watched = self._watched_queries()
        self._seen: int | None = None  # step of the index with which the watched queries were last searched

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Switch to a fresher index if there is one, and measure how it changes the candidates.

        Before the first step it also measures whether the reader's gains single out telling blocks.

        Raises:
            QualityError: An alarm is on at which the run stops.
        """
        self.alarms.stop_if_raised(step)
        stale = self.current.index
        logged = self.current.renew(step, self.retriever)
        if self.current.step != self._seen:
            self._seen = self.current.step
            query_BD = self._vectors(self._watched)
            rows_BN = self._candidates(self._watched, query_BD)
            logged |= self.watch.changed(self._blocks_of(rows_BN))
            if stale is not self.current.index:
                logged |= self._change(stale, self.current.index, query_BD)
            logged |= self.recall_questions.recall(self.retriever, self.current.index) if self.recall_questions else {}
            if step == 0 and self.options.masking == "salient":
                logged |= self._reader_at_start(rows_BN)
        return logged

    def published(self, index: Index) -> dict[str, float]:
        """Measure the index of the final retriever as `before_step` measures a fresher one.

        Only the first process calls this. Where others train too, `_change` is left out, because they may hold parts of the index.
        """
        found = self.recall_questions.recall(self.retriever, index) if self.recall_questions else {}
        if processes.world_size() > 1:
            return found
        return found | self._change(self.current.index, index, self._vectors(self._watched))

    def _change(self, stale: Index, fresh: Index, query_BD: NDArray[np.float32]) -> dict[str, float]:
        """Return how far an old index was from a new one, for the watched queries and for some blocks."""
        rows = [self._blocks_of(self._candidates(self._watched, query_BD, index)) for index in (stale, fresh)]
        return {"index_overlap": overlap(*rows), "index_drift": index_drift(stale, fresh)}

    @torch.no_grad()
    def _reader_at_start(self, rows_BN: NDArray[np.int64]) -> Mapping[str, Any]:
        """Return metrics of the watched queries' gains with these candidates, and the alarms that they raise."""
        blocks, training = TellingBlocks(), self.modules.training
        self.modules.eval()
        for start in range(0, len(self._watched), self.micro_batch):
            cut = slice(start, start + self.micro_batch)
            part = PretrainMicroBatch(self._batch(self._watched[cut]), rows_BN[cut], 1.0)
            with autocast(self._device, self.options.precision):
                _, comparison = self.compare(part)
            blocks.add_compared([query.targets for query in part.asked.queries], part.rows_BN, self.corpus, *comparison)
        self.modules.train(training)
        found = blocks.at_start()
        raised = self.alarms.observe({"step": 0, **found})
        return {**found, **({"alarms": raised} if raised else {})}

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `hub_share`, and the alarms that this step raises, if any."""
        share = self.watch.hub_share()
        raised = [*line.get("alarms", ()), *self.alarms.observe({**line, **share})]
        return {**share, **({"alarms": raised} if raised else {})}

    def state(self) -> dict[str, Any]:
        """Return the state of the index in use, of the candidate watch and of the alarms."""
        return {"index": self.current.state(), "watch": self.watch.state(), "alarms": self.alarms.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned: open the index that was in use at the checkpoint."""
        self.current.restore(state["index"])
        self._seen = self.current.step
        self.watch.restore(state["watch"])
        self.alarms.restore(state["alarms"])

    def draw(self, step: int) -> Sequence[PretrainMicroBatch]:
        """Return this process's masked queries of a step, with their candidates from the current index."""
        rng, spans = generator(self.options.seed, Stream.QUERY_MASKS, step), self.order.batch(step)
        if self.options.masking == "salient":  # nothing is drawn, so the others' queries are not needed
            return self._searched([self._masked(int(span), rng) for span in spans[self.own]])
        return self._searched([self._masked(int(span), rng) for span in spans][self.own])

    def parts(self, spans: NDArray[np.int64], rng: np.random.Generator) -> Sequence[PretrainMicroBatch]:
        """Micro-batches of the salient spans with these numbers: each is hidden and has the candidates of its sentence."""
        return self._searched([self._masked(int(span), rng) for span in spans])

    def _searched(self, drawn: list[Query]) -> Sequence[PretrainMicroBatch]:
        query_BD = self._vectors(drawn)
        if "double-candidates" in self.options.official:
            single_B = ~doubled(self.current.index, query_BD, self.corpus.uid, self.options.candidates)
            drawn, query_BD = [drawn[place] for place in np.flatnonzero(single_B)], query_BD[single_B]
        if not data_parallel.anyone(bool(drawn)):
            return []
        rows_BN = self._candidates(drawn, query_BD)
        self.watch.add(np.concatenate(data_parallel.gather_rows(self._blocks_of(rows_BN))))
        counted = sum(len(query.targets) for query in drawn) if self.options.marginal == "token" else len(drawn)
        normaliser = max(1, data_parallel.total(counted))
        cuts = (slice(start, start + self.micro_batch) for start in range(0, len(drawn), self.micro_batch))
        return [PretrainMicroBatch(self._batch(drawn[cut]), rows_BN[cut], float(normaliser)) for cut in cuts]

    def _watched_queries(self) -> list[Query]:
        rng = generator(self.options.seed, Stream.FIXED_QUERIES)
        spans = rng.choice(len(self.queries.spans), min(WATCHED_QUERIES, len(self.queries.spans)), replace=False)
        return [self._masked(int(span), rng) for span in spans]

    def _blocks_of(self, rows_BN: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows_BN[:, int(self.options.null_document) :]

    def _masked(self, span: int, rng: np.random.Generator) -> Query:
        return self.queries.query(span, self.collator.mask_id, self.options.masking, rng)

    @torch.no_grad()
    def _vectors(self, drawn: Sequence[Query]) -> NDArray[np.float32]:
        """Query vectors to search with, float32 [B, D], in the arithmetic of training and evaluation."""
        encoder = self.current.encoder or self.retriever
        training, packed = encoder.training, self._batch(drawn).packed.to(self._device)
        with autocast(self._device, self.options.precision):
            query_BD: NDArray[np.float32] = encoder.eval().embed_queries(packed).float().cpu().numpy()
        encoder.train(training)
        return query_BD

    def search(self, drawn: Sequence[Query], count: int) -> NDArray[np.int64]:
        """Return the rows of the `count` best blocks of each query but its own block, int64 [B, count]; -2 fills free slots."""
        own_uid_B = self.queries.uid[[query.sentence for query in drawn]]
        return candidates(
            self.current.index,
            self._vectors(drawn),
            own_uid_B,
            self.corpus.uid,
            count,
            null=False,
            anyone=data_parallel.anyone,
        )

    def _candidates(
        self, drawn: Sequence[Query], query_BD: NDArray[np.float32], index: Index | None = None
    ) -> NDArray[np.int64]:
        """Return the candidates in `index`, by default the index in use. int64 [B, N]."""
        options = self.options
        own_uid_B = (
            self.queries.uid[np.array([query.sentence for query in drawn], dtype=np.int64)]
            if options.exclude_own
            else None
        )
        return candidates(
            index or self.current.index,
            query_BD,
            own_uid_B,
            self.corpus.uid,
            options.candidates,
            null=options.null_document,
            anyone=data_parallel.anyone,
        )

    def _batch(self, drawn: Sequence[Query]) -> QueryBatch:
        """Lay out queries as the retriever reads them."""
        tokens = [query.tokens for query in drawn]
        return QueryBatch.of(drawn, self.retriever.pack_queries(self.collator, tokens, self.queries.query_length))

    @property
    def _device(self) -> torch.device:
        return next(self.retriever.parameters()).device

    def loss(self, part: PretrainMicroBatch) -> tuple[Tensor, Sums]:
        """Return the loss and sums of the retrieval utility.

        The loss is the sum of -log p(y|x) over hidden wordpieces of the part, divided by their number in the batch.
        """
        loss, comparison = self.compare(part)
        return loss, self.utility_sums(*comparison)

    def compare(self, part: PretrainMicroBatch) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return the loss, and the arguments of `utility_sums`: mask_BM, score_BN, log_prob_BNM, present_BN, detached.

        Candidate 0 of these tensors is the null document, also where the objective has none.
        """
        device = self._device
        mask_BM = part.asked.hidden_BM.to(device, non_blocking=True)
        present_BN = torch.from_numpy(part.rows_BN != ABSENT).to(device, non_blocking=True)
        score_BN = self._scores(part)
        log_prob_BNM = self.read(part, part.rows_BN)
        marginal = token_marginal if self.options.marginal == "token" else sequence_marginal
        loss, _ = marginal(score_BN, log_prob_BNM, mask_BM, present_BN, part.normaliser)
        compared = score_BN.detach(), log_prob_BNM.detach(), present_BN
        if not self.options.null_document:
            compared = self._beside_null(part, *compared)
        return loss, (mask_BM, *compared)

    def _scores(self, part: PretrainMicroBatch) -> Tensor:
        """Return f(x, z) with the current weights. A block that several queries share is embedded once."""
        distinct_C, place_BN = np.unique(np.maximum(part.rows_BN, NULL), return_inverse=True)
        packed = self.retriever.pack_blocks(self.collator, *titles_and_bodies(self.corpus, distinct_C))
        block_CD = self.retriever.embed_blocks(packed.to(self._device))
        query_BD = self.retriever.embed_queries(part.asked.packed.to(self._device))
        places = torch.from_numpy(place_BN.reshape(part.rows_BN.shape)).to(self._device, non_blocking=True)
        return self.retriever.score(query_BD, block_CD[places])

    def read(self, part: PretrainMicroBatch, rows_BN: NDArray[np.int64]) -> Tensor:
        """Return log p(y_m|z,x) of each hidden wordpiece with each of these blocks, [B, N, M]. Negative rows are empty blocks."""
        count, device = rows_BN.shape[1], self._device
        queries = [query.tokens for query in part.asked.queries for _ in range(count)]
        _, bodies = titles_and_bodies(self.corpus, rows_BN.ravel())
        joint = self.collator.joint(queries, bodies, self.queries.query_length, self.retriever.block_length)
        position_BM, target_BM = (
            tensor.to(device, non_blocking=True) for tensor in (part.asked.position_BM, part.asked.target_BM)
        )
        return self.reader.mlm_log_prob(joint.to(device), position_BM, target_BM, count)

    @torch.no_grad()
    def _beside_null(
        self, part: PretrainMicroBatch, score_BN: Tensor, log_prob_BNM: Tensor, present_BN: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Prepend a null document of weight 0 to the candidates, as the baseline of the retrieval utility."""
        null_B1M = self.read(part, np.full((len(part.asked.queries), 1), NULL))
        score = F.pad(score_BN.float(), (1, 0), value=torch.finfo(torch.float32).min)
        return score, torch.cat([null_B1M, log_prob_BNM], 1), F.pad(present_BN, (1, 0), value=True)

    def utility_sums(self, mask_BM: Tensor, score_BN: Tensor, log_prob_BNM: Tensor, present_BN: Tensor) -> Sums:
        """Return {metric: (sum, count)}: the utility of retrieval, of the first block, and the null document's share."""
        utility = retrieval_utility(score_BN, log_prob_BNM, mask_BM, present_BN)
        hidden, queries = mask_BM.sum().double(), float(len(mask_BM))
        sums: dict[str, tuple[Tensor, float | Tensor]] = {
            "retrieval_utility": (utility.token_gain.double() * hidden, hidden),
            "top_1_utility": (utility.top_1_B.sum(), queries),
        }
        if self.options.null_document:
            sums["null_share"] = (utility.null_share_B.sum(), queries)
        return sums

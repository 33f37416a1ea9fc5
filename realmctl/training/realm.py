"""REALM pre-training in the order of the paper (Guu et al. 2020, section 3; google-research/language, realm/model.py).

A step draws tagged sentences and hides a salient span in each (section 3.4). That gives x, the sentence with masks, and y, the
hidden wordpieces. The index brings the blocks z that score highest for x; it only chooses candidates. With the weights in
training:

    f(x, z) = Embed_input(x) . Embed_doc(z)                  section 3.2, the retriever       `relevance`
    p(z|x)  = softmax of f(x, z) over the candidates         section 3.2                      `log_terms`
    p(y|z,x) = product over the masks of p(y_m|z,x)          section 3.2, the reader          `PretrainReader.read`
    p(y|x)  = sum over z of p(z|x) p(y|z,x)                  equation 1                       `Marginal`

The loss is -log p(y|x) (`Marginal`), or another `RetrieverLoss`. The gradient of `Marginal` reaches both towers of the retriever and the
reader. Beside the steps the index ages and is replaced (section 3.3, `IndexRenewal` in `refresh/index_in_use.py`). The query encoder that
searches is the one in training, although the index may be some steps older; with `--official snapshot-queries` it is that of the index's snapshot.
Maskings, sources of candidates, readers, losses and refreshes have names (`names.py`), so that other packages can add some. What watches a run is in `monitoring/pretrain_watch.py`.
Legend: B queries, N candidates (null first), C distinct candidates, M masks, D projection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.corpus.corpus import Corpus
from realmctl.execution import processes
from realmctl.execution.batches import slices
from realmctl.index.protocol import Index
from realmctl.models.evaluating import evaluating
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.marginal import retrieval_utility
from realmctl.models.precision import autocast, pick_device, to_device
from realmctl.models.retriever import Retriever
from realmctl.retrieval.search.candidates import ABSENT, NULL, Nearest, candidates, doubled, in_index, titles_and_bodies
from realmctl.spans.masking import masking_of
from realmctl.spans.query import Query
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import data_parallel
from realmctl.training.candidate_source import candidate_source
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import span_order
from realmctl.training.data.own_blocks import OwnBlocks
from realmctl.training.losses import RetrieverLoss, retriever_loss
from realmctl.training.objective import Objective, Sums, require_scalar
from realmctl.training.readers import PretrainReader, pretrain_reader
from realmctl.training.refresh.index_in_use import IndexInUse
from realmctl.training.settings.pretrain import PretrainSettings


@dataclass(frozen=True)
class Micro:
    """Masked queries and their candidates.

    rows_BN: rows of blocks, int64, -1 for the null document, -2 for no candidate. normaliser: what the loss is divided by, the
    number of hidden wordpieces, or of queries, of the whole batch.
    """

    asked: QueryBatch
    rows_BN: NDArray[np.int64]
    normaliser: float


class StepOut(NamedTuple):
    """What a step computes: the loss, f(x, z), log p(y_m|z,x), and which masks and candidates are there (bool)."""

    loss: Tensor
    score_BN: Tensor
    log_prob_BNM: Tensor
    hidden_BM: Tensor
    present_BN: Tensor


def realm_step(
    micro: Micro,
    retriever: Retriever,
    reader: PretrainReader,
    loss_of: RetrieverLoss,
    corpus: Corpus,
    collator: Collator,
) -> StepOut:
    """Score the candidates, read them, and take the loss of the masks: equation 1 for `Marginal`."""
    device = next(retriever.parameters()).device
    present_BN = to_device(torch.from_numpy(micro.rows_BN != ABSENT), device)
    score_BN = relevance(micro, retriever, corpus, collator)  # f(x, z)
    with torch.set_grad_enabled(torch.is_grad_enabled() and reader.is_trained):
        log_prob_BNM, hidden_BM = reader.read(micro.asked, micro.rows_BN)  # log p(y_m|z,x)
    # The loss of this run, divided by `normaliser`. For `Marginal` it is the sum of -log p(y|x), or of -log p(y_m|x) with `--marginal token`.
    loss = loss_of(score_BN, log_prob_BNM, hidden_BM, present_BN, micro.normaliser)
    return StepOut(loss, score_BN, log_prob_BNM, hidden_BM, present_BN)


def relevance(micro: Micro, retriever: Retriever, corpus: Corpus, collator: Collator) -> Tensor:
    """Return f(x, z) with the current weights, [B, N]. A block that several queries share is embedded once."""
    device = next(retriever.parameters()).device
    distinct_C, place_BN = np.unique(np.maximum(micro.rows_BN, NULL), return_inverse=True)
    packed = retriever.pack_blocks(collator, *titles_and_bodies(corpus, distinct_C))
    block_CD = retriever.embed_blocks(packed.to(device))
    query_BD = retriever.embed_queries(micro.asked.packed.to(device))
    places = to_device(torch.from_numpy(place_BN.reshape(micro.rows_BN.shape)), device)
    return retriever.score(query_BD, block_CD[places])


class RealmObjective(Objective[Micro]):
    """Draws sentences, hides a span of each, searches their candidates, and takes `realm_step`.

    own: The places of a batch whose queries this process computes. order: It says which spans each step hides.
    drawn_BN: The candidates that this process found in its last search, as in `Micro`, also of queries that have none. Each search sets it.
    `draw` searches, and `PretrainWatch` reads the result after the step. `parts` searches too, for eval-utility, which does not read it.
    """

    def __init__(self, settings: PretrainSettings, retriever: Retriever, in_use: IndexInUse) -> None:
        self.settings, self.retriever, self.in_use = settings, retriever, in_use
        self.corpus = Corpus(settings.blocks)
        words = Tokenizer.load(settings.blocks.path)
        self.collator = Collator.of(words)
        self.reader = pretrain_reader(settings, self.corpus, self.collator, retriever)
        self.queries, self.loss_of = self.reader.queries, retriever_loss(settings)
        self.own_blocks = OwnBlocks(self.corpus, settings.exclude_own)
        self.source = candidate_source(settings, self.corpus, in_use)
        self.masking = masking_of(settings.masking, words)
        self.modules = nn.ModuleDict({"retriever": retriever})
        self.lr_multipliers: Mapping[nn.Module, float] = {
            retriever: (settings.retriever_lr or settings.lr) / settings.lr
        }
        if self.reader.is_trained:
            self.modules["reader"] = self.reader.module
            self.lr_multipliers = {**self.lr_multipliers, **self.reader.lr_multipliers}
        else:  # no gradient, no optimizer, no place in checkpoints
            self.reader.module.requires_grad_(False).eval().to(pick_device(settings.device))
        self.own = processes.share(settings.batch_size, "queries")
        self.order = span_order(self.queries, settings.batch_size, settings.seed, settings.official)
        self.candidates = min(settings.candidates, len(self.corpus) + settings.null_document)
        self.drawn_BN: NDArray[np.int64] = np.empty((0, self.candidates), dtype=np.int64)

    @property
    def chance(self) -> float:
        """The loss of a model that tells nothing apart, in nats; 0 where it is not known."""
        return self.loss_of.chance(self.reader.chance)

    # A step draws sentences, hides spans and searches (sections 3.4 and 3.3).

    def draw(self, step: int) -> Sequence[Micro]:
        """Return this process's masked queries of a step, with their candidates from the index in use. One without candidates is left out."""
        rng, spans = generator(self.settings.seed, Stream.QUERY_MASKS, step), self.order.batch(step)
        if not self.masking.draws:  # so the others' queries are not needed
            return self._searched(self.masked(spans[self.own], rng))
        return self._searched(self.masked(spans, rng)[self.own])

    def parts(self, spans: NDArray[np.int64], rng: np.random.Generator) -> Sequence[Micro]:
        """Return micro-batches of the salient spans with these numbers: each is hidden and has the candidates of its sentence."""
        return self._searched(self.masked(spans, rng))

    def masked(self, spans: NDArray[np.int64], rng: np.random.Generator) -> list[Query]:
        """Hide these salient spans, each in its sentence."""
        return [self.queries.query(span, self.collator.mask_id, self.masking, rng) for span in spans.tolist()]

    def _searched(self, drawn: list[Query]) -> Sequence[Micro]:
        """Return micro-batches of these queries with their candidates. It sets `drawn_BN`."""
        self.drawn_BN = self.drawn_BN[:0]
        query_BD = self.vectors(drawn)
        if "double-candidates" in self.settings.official:
            single_B = ~doubled(self._nearest(drawn, query_BD), len(drawn), self.corpus.uid, self.candidates)
            drawn, query_BD = [drawn[place] for place in np.flatnonzero(single_B)], query_BD[single_B]
        if not data_parallel.anyone(bool(drawn)):
            return []
        rows_BN = self.drawn_BN = self.candidates_of(drawn, query_BD)
        found_B = (rows_BN != ABSENT).any(1)  # without the null document every block may be excluded
        return self.micros([drawn[place] for place in np.flatnonzero(found_B)], rows_BN[found_B])

    def micros(self, drawn: Sequence[Query], rows_BN: NDArray[np.int64]) -> Sequence[Micro]:
        """Return micro-batches of queries with these candidates, the batch of a step with those of the other processes."""
        counted = sum(map(self.reader.hidden, drawn)) if self.settings.per_token else len(drawn)
        normaliser, parts = float(max(1, data_parallel.total(counted))), slices(len(drawn), self.settings.at_once)
        return [Micro(self.batch(drawn[part]), rows_BN[part], normaliser) for part in parts]

    def batch(self, drawn: Sequence[Query]) -> QueryBatch:
        """Lay out queries as the retriever reads them."""
        tokens = [query.tokens for query in drawn]
        packed = self.retriever.pack_queries(self.collator, tokens, self.queries.query_length)
        return QueryBatch.of(drawn, packed, self.collator.frame)

    def vectors(self, drawn: Sequence[Query]) -> NDArray[np.float32]:
        """Query vectors to search with, float32 [B, D], in the arithmetic of training and evaluation."""
        encoder = self.in_use.encoder or self.retriever
        device = next(self.retriever.parameters()).device
        packed = self.batch(drawn).packed.to(device)
        with evaluating(encoder), autocast(device, self.settings.precision):
            query_BD: NDArray[np.float32] = encoder.embed_queries(packed).float().cpu().numpy()
        return query_BD

    def candidates_of(
        self, drawn: Sequence[Query], query_BD: NDArray[np.float32], index: Index | None = None
    ) -> NDArray[np.int64]:
        """Return the candidates in `index`, by default those of the run's source. int64 [B, N]."""
        return candidates(
            in_index(index, query_BD) if index else self._nearest(drawn, query_BD),
            len(drawn),
            self.own_blocks.excluded(self.own_uid(drawn)),
            self.corpus.uid,
            self.candidates,
            null=self.settings.null_document,
            anyone=data_parallel.anyone,
        )

    def _nearest(self, drawn: Sequence[Query], query_BD: NDArray[np.float32]) -> Nearest:
        """What finds the blocks of queries by the source of this run."""
        return lambda places, k: self.source.nearest([drawn[place] for place in places], query_BD[places], k)

    def own_uid(self, drawn: Sequence[Query]) -> NDArray[np.uint64]:
        """The uid of the block that holds each query's sentence, uint64 [B]."""
        return self.queries.own_uid[np.array([query.sentence for query in drawn], dtype=np.int64)]

    # Then it reads, and takes the marginal likelihood (section 3.2).

    def loss(self, part: Micro) -> tuple[Tensor, Sums]:
        """Return the loss of this run (`loss_of`), divided by `normaliser`, and sums of the retrieval utility."""
        found = self.step(part)
        require_scalar(found.loss, self.loss_of)
        return found.loss, {**self.utility_sums(self.beside_null(part, found)), **self.reader.sums()}

    def step(self, part: Micro) -> StepOut:
        """`realm_step` with the retriever, the reader and the loss of this run."""
        return realm_step(part, self.retriever, self.reader, self.loss_of, self.corpus, self.collator)

    @torch.no_grad()
    def beside_null(self, part: Micro, found: StepOut) -> StepOut:
        """The same without gradients, with the null document as candidate 0, of weight 0 where the objective has none: a baseline."""
        found = StepOut(*(tensor.detach() for tensor in found))
        if self.settings.null_document:
            return found
        null_B1M, _ = self.reader.read(part.asked, np.full((len(part.asked.queries), 1), NULL))
        return found._replace(
            score_BN=F.pad(found.score_BN.float(), (1, 0), value=torch.finfo(torch.float32).min),
            log_prob_BNM=torch.cat([null_B1M, found.log_prob_BNM], 1),
            present_BN=F.pad(found.present_BN, (1, 0), value=True),
        )

    def utility_sums(self, found: StepOut) -> Sums:
        """Return {metric: (sum, count)}: the utility of retrieval, of the first block, and the null document's share. See `beside_null`."""
        utility = retrieval_utility(found.score_BN, found.log_prob_BNM, found.hidden_BM, found.present_BN)
        hidden, queries = found.hidden_BM.sum().double(), float(len(found.hidden_BM))
        sums: dict[str, tuple[Tensor, float | Tensor]] = {
            "retrieval_utility": (utility.token_gain.double() * hidden, hidden),
            "top_1_utility": (utility.top_1_B.sum(), queries),
        }
        if self.settings.null_document:
            sums["null_share"] = (utility.null_share_B.sum(), queries)
        return sums

"""REALM pre-training, in the order of the paper (Guu et al. 2020, section 3; google-research/language, realm/model.py).

A step draws tagged sentences and hides a salient span in each (section 3.4). That gives x, the sentence with masks, and y, the
hidden wordpieces. The index brings the blocks z that score highest for x; it only chooses candidates. With the weights in
training:

    f(x, z) = Embed_input(x) . Embed_doc(z)                  section 3.2, the retriever
    p(z|x)  = softmax of f(x, z) over the candidates         section 3.2
    p(y|z,x) = product over the masks of p(y_m|z,x)          section 3.2, the knowledge-augmented encoder
    p(y|x)  = sum over z of p(z|x) p(y|z,x)                  equation 1

The loss is -log p(y|x). Its gradient reaches both towers of the retriever and the reader. With `--retriever-loss distill` or `replug` the retriever
learns the reader's own choice among the candidates instead. With `--ict-weight` the loss of the inverse cloze task is added (ORQA, section 4).
Beside the steps the index ages and is replaced (section 3.3, `before_step`). The query encoder that searches is the one in training,
although the index may be some steps older; with `--official snapshot-queries` it is that of the index's snapshot.
Legend: B queries, N candidates (null first), C distinct candidates, M masks, D projection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from realmctl.artifacts import Artifact, Writer
from realmctl.corpus.corpus import Corpus
from realmctl.execution import processes
from realmctl.execution.batches import slices
from realmctl.extras.trackers.tracking import add_later
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.lab.ict_beside.beside import Beside
from realmctl.lab.language_models.passages import Passages
from realmctl.lab.language_models.pretrain_reader import LanguageModelReader
from realmctl.models.evaluating import evaluating
from realmctl.models.inputs import Collator, QueryBatch
from realmctl.models.marginal import distillation, retrieval_utility, scaled, sequence_marginal, token_marginal
from realmctl.models.precision import autocast, pick_device, to_device
from realmctl.models.retriever import Retriever
from realmctl.questions.questions import read_questions
from realmctl.retrieval.embedding.embedding import seconds_to_embed
from realmctl.retrieval.embedding.settings import EmbedSettings
from realmctl.retrieval.search.candidates import ABSENT, NULL, candidates, doubled, titles_and_bodies
from realmctl.spans.query import Query
from realmctl.spans.tagged_queries import TaggedQueries
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training import data_parallel
from realmctl.training.budget import within_minutes
from realmctl.training.data.draws import Stream, generator
from realmctl.training.data.order import span_order
from realmctl.training.data.own_blocks import OwnBlocks
from realmctl.training.evaluation.on_cloze import ClozeQueries, train_on_cloze
from realmctl.training.index_shards import open_own_shard
from realmctl.training.loop import trained_weights
from realmctl.training.monitoring.alarms import Alarms, rules
from realmctl.training.monitoring.candidate_watch import WATCHED_QUERIES, CandidateWatch
from realmctl.training.monitoring.index_change import index_drift, overlap
from realmctl.training.monitoring.positive_blocks import PositiveBlocks
from realmctl.training.monitoring.recall_questions import RecallQuestions
from realmctl.training.objective import Objective, Sums
from realmctl.training.objectives.ict import InverseClozeObjective
from realmctl.training.readers.masked import MaskedReader
from realmctl.training.readers.reader import PretrainReader
from realmctl.training.refresh.index_in_use import IndexInUse, publish_retriever_and_index, refreshed_index
from realmctl.training.settings.pretrain import PretrainSettings
from realmctl.training.settings.retriever import IctSettings


def pretrain(settings: PretrainSettings, out: Writer) -> dict[str, Any]:
    """Pre-train retriever and reader together, and write both with the index of the trained retriever. Returns metrics."""
    retriever = Retriever.load(settings.retriever.path, settings.dropout)
    settings = _within_minutes(settings, retriever, out)
    with refreshed_index(settings, out, "snapshot-queries" in settings.official) as in_use:
        objective = PretrainObjective(settings, retriever, in_use)
        trained = beside_ict(objective, settings)
        metrics = train_on_cloze(trained, retriever, settings, settings.blocks, out, "pretrain")
    if not processes.is_first():  # the first process embeds the blocks with the trained retriever
        return metrics
    with trained_weights(settings, out, "pretrain"):
        index = publish_retriever_and_index(settings, out, retriever, metrics.get("kept_step", metrics["steps"]))
        last = _last_measures(objective, index, out, metrics["steps"])
    if settings.reader_is_trained or settings.reader_lm is None:  # a frozen language model stays where it is
        objective.reader.save(out)
    counts = {**metrics["alarms"], **objective.alarms.counts}
    return {**metrics, **last, "refreshes": in_use.refreshes, "alarms": counts}


def _within_minutes(settings: PretrainSettings, retriever: Retriever, out: Writer) -> PretrainSettings:
    """The settings with the steps that fit into the minutes. What is timed is another objective, so the run's own knows nothing of it."""
    if settings.seconds is None:
        return settings
    opener = open_own_shard if settings.index_shards else open_index

    def timed() -> Objective[Any]:
        in_use = IndexInUse(settings.index, str(pick_device(settings.device)), opener=opener)
        return beside_ict(PretrainObjective(settings, retriever, in_use), settings)

    def refreshes() -> float:
        where = settings.device if settings.refresh == "inline" else settings.refresh_device
        elsewhere = where == "elsewhere" or pick_device(where) != pick_device(settings.device)
        if settings.refresh == "never" or settings.refresh_every == "auto" or elsewhere:
            return 0.0
        embed = EmbedSettings(device=settings.device, precision=settings.precision)
        return seconds_to_embed(settings.blocks, settings.retriever, embed) / settings.period

    def measure() -> object:
        return asked.ranks(retriever) if asked else None

    asked = ClozeQueries.drawn(settings, settings.blocks) if settings.cloze_recall else None
    return within_minutes(settings, out, "pretrain", timed, measure if asked else None, refreshes)


def beside_ict(objective: PretrainObjective, settings: PretrainSettings) -> Objective[Any]:
    """The objective, with the loss of the inverse cloze task where the settings ask for it.

    Raises:
        InputError: Fewer than two blocks have two sentences.
        ConfigError: The sentences cannot be divided among the processes.
    """
    if not settings.ict_weight:
        return objective
    ict = IctSettings(
        blocks=settings.blocks,
        retriever=settings.retriever,
        batch_size=settings.ict_batch_size,
        micro_batch=settings.micro_batch,
        distill_start=settings.distill_start,
        cloze_recall=settings.cloze_recall,
        seed=settings.seed,
    )
    task = InverseClozeObjective(objective.retriever, objective.corpus, objective.collator, ict)
    return Beside(objective, task, settings.ict_weight, "ict")


def _last_measures(objective: PretrainObjective, index: Artifact, out: Writer, step: int) -> dict[str, float]:
    """Measure the trained retriever with its index, and append the numbers to metrics.jsonl, and to what a tracker shows."""
    if objective.recall_questions is None:
        return {}
    device = pick_device(objective.settings.device)
    objective.retriever.to(device)  # it was published from the CPU
    found = objective.published(open_index(index.path, str(device)))
    line = {"step": step, **found}
    add_later(objective.settings.track, "pretrain", out, line)
    with out.file("metrics.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
    return found


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

    finished = False

    def __init__(self, settings: PretrainSettings, retriever: Retriever, in_use: IndexInUse) -> None:
        self.settings, self.retriever, self.in_use = settings, retriever, in_use
        self.corpus = Corpus(settings.blocks)
        self.queries: TaggedQueries | Passages = (
            TaggedQueries(settings.spans, self.corpus)
            if settings.spans
            else Passages(self.corpus, retriever.query_length)
        )
        self.own_blocks = OwnBlocks(self.corpus, settings.exclude_own)
        self.collator = Collator.of(Tokenizer.load(settings.blocks.path))
        self.reader: PretrainReader = (
            LanguageModelReader(settings, self.queries, self.corpus)
            if settings.reader_lm or isinstance(self.queries, Passages)
            else MaskedReader(settings, self.queries, self.corpus, self.collator, retriever.block_length)
        )
        likelihood = (settings.retriever_loss, settings.mean_likelihood, settings.temperature) == ("marginal", False, 1)
        self.chance = self.reader.chance if likelihood else 0.0
        self.chance_is_exact = self.reader.chance_is_exact and likelihood
        self.modules = nn.ModuleDict({"retriever": retriever})
        self.lr_multipliers: Mapping[nn.Module, float] = {
            retriever: (settings.retriever_lr or settings.lr) / settings.lr
        }
        if settings.reader_is_trained:
            self.modules["reader"] = self.reader.module
            self.lr_multipliers = {**self.lr_multipliers, **self.reader.lr_multipliers}
        else:  # no gradient, no optimizer, no place in checkpoints
            self.reader.module.requires_grad_(False).eval().to(pick_device(settings.device))
        self.own = processes.share(settings.batch_size, "queries")
        self.order = span_order(self.queries, settings.batch_size, settings.seed, settings.official)
        self.candidates = min(
            settings.candidates, len(self.corpus) + settings.null_document
        )  # the cost follows the blocks
        self.watch = CandidateWatch()
        chance = (self.candidates - settings.null_document) / len(self.corpus)
        never = settings.refresh == "never" or settings.refresh_every == "auto"
        self.alarms = Alarms(rules(settings.steps, None if never else settings.period, chance), settings.stop_on)
        self.recall_questions = (
            RecallQuestions(read_questions(settings.recall_questions), self.corpus, self.collator, settings.precision)
            if settings.recall_questions
            else None
        )
        self._watched = self._watched_queries()
        self._seen: int | None = None  # step of the index with which the watched queries were last searched

    # A step draws sentences, hides spans and searches.

    def draw(self, step: int) -> Sequence[PretrainMicroBatch]:
        """Return this process's masked queries of a step, with their candidates from the index in use. One without candidates is left out."""
        rng, spans = generator(self.settings.seed, Stream.QUERY_MASKS, step), self.order.batch(step)
        if self.settings.masking == "salient":  # nothing is drawn, so the others' queries are not needed
            return self._searched(self._masked(spans[self.own], rng))
        return self._searched(self._masked(spans, rng)[self.own])

    def parts(self, spans: NDArray[np.int64], rng: np.random.Generator) -> Sequence[PretrainMicroBatch]:
        """Return micro-batches of the salient spans with these numbers: each is hidden and has the candidates of its sentence."""
        return self._searched(self._masked(spans, rng))

    def _masked(self, spans: NDArray[np.int64], rng: np.random.Generator) -> list[Query]:
        if isinstance(self.queries, Passages):
            return [*map(self.queries.query, spans.tolist())]
        return [self.queries.query(span, self.collator.mask_id, self.settings.masking, rng) for span in spans.tolist()]

    def _searched(self, drawn: list[Query]) -> Sequence[PretrainMicroBatch]:
        query_BD = self.vectors(drawn)
        if "double-candidates" in self.settings.official:
            single_B = ~doubled(self.in_use.index, query_BD, self.corpus.uid, self.candidates)
            drawn, query_BD = [drawn[place] for place in np.flatnonzero(single_B)], query_BD[single_B]
        if not data_parallel.anyone(bool(drawn)):
            return []
        rows_BN = self._candidates(drawn, query_BD)
        self.watch.add(np.concatenate(data_parallel.gather_rows(self._blocks_of(rows_BN))))
        found_B = (rows_BN != ABSENT).any(1)  # without the null document every block may be excluded
        drawn, rows_BN = [drawn[place] for place in np.flatnonzero(found_B)], rows_BN[found_B]
        counted = sum(map(self.reader.hidden, drawn)) if self.settings.per_token else len(drawn)
        normaliser, parts = float(max(1, data_parallel.total(counted))), slices(len(drawn), self.settings.at_once)
        return [PretrainMicroBatch(self._batch(drawn[part]), rows_BN[part], normaliser) for part in parts]

    def _batch(self, drawn: Sequence[Query]) -> QueryBatch:
        """Lay out queries as the retriever reads them."""
        tokens = [query.tokens for query in drawn]
        return QueryBatch.of(
            drawn, self.retriever.pack_queries(self.collator, tokens, self.queries.query_length), self.collator.frame
        )

    def vectors(self, drawn: Sequence[Query]) -> NDArray[np.float32]:
        """Query vectors to search with, float32 [B, D], in the arithmetic of training and evaluation."""
        encoder = self.in_use.encoder or self.retriever
        packed = self._batch(drawn).packed.to(self._device)
        with evaluating(encoder), autocast(self._device, self.settings.precision):
            query_BD: NDArray[np.float32] = encoder.embed_queries(packed).float().cpu().numpy()
        return query_BD

    def _candidates(
        self, drawn: Sequence[Query], query_BD: NDArray[np.float32], index: Index | None = None
    ) -> NDArray[np.int64]:
        """Return the candidates in `index`, by default the index in use. int64 [B, N]."""
        return candidates(
            index or self.in_use.index,
            query_BD,
            self.own_blocks.excluded(self.own_uid(drawn)),
            self.corpus.uid,
            self.candidates,
            null=self.settings.null_document,
            anyone=data_parallel.anyone,
        )

    def own_uid(self, drawn: Sequence[Query]) -> NDArray[np.uint64]:
        """The uid of the block that holds each query's sentence, uint64 [B]."""
        return self.queries.own_uid[np.array([query.sentence for query in drawn], dtype=np.int64)]

    # Then it reads, and takes the marginal likelihood.

    def loss(self, part: PretrainMicroBatch) -> tuple[Tensor, Sums]:
        """Return the loss and sums of the retrieval utility.

        The loss is the sum of -log p(y|x) over hidden wordpieces of the part, divided by their number in the batch.
        """
        loss, comparison = self.compare(part)
        return loss, {**self.utility_sums(*comparison), **self.reader.sums()}

    def compare(self, part: PretrainMicroBatch) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Return the loss, and the arguments of `utility_sums`: hidden_BM, score_BN, log_prob_BNM, present_BN, detached.

        Candidate 0 of these tensors is the null document, also where the objective has none.
        """
        present_BN = to_device(torch.from_numpy(part.rows_BN != ABSENT), self._device)
        score_BN = self._scores(part)  # f(x, z)
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.settings.reader_is_trained):
            log_prob_BNM, hidden_BM = self.reader.read(part.asked, part.rows_BN)  # log p(y_m|z,x)
        loss = self._objective(score_BN, log_prob_BNM, hidden_BM, present_BN, part.normaliser)
        compared = score_BN.detach(), log_prob_BNM.detach(), present_BN
        if not self.settings.null_document:
            compared = self._beside_null(part, *compared)
        return loss, (hidden_BM, *compared)

    def _objective(
        self, score_BN: Tensor, log_prob_BNM: Tensor, hidden_BM: Tensor, present_BN: Tensor, normaliser: float
    ) -> Tensor:
        """-log p(y|x); or the divergence between the reader's likelihoods and p(z|x), beside which a reader that learns has -log p(y|x)."""
        settings, others = self.settings, (hidden_BM, present_BN, normaliser)
        marginal = token_marginal if settings.per_token else sequence_marginal
        as_they_are = settings.temperature == 1 and not settings.mean_likelihood
        scaled_BNM = (
            log_prob_BNM
            if as_they_are
            else scaled(log_prob_BNM, hidden_BM, settings.mean_likelihood, settings.temperature)
        )
        if settings.retriever_loss == "marginal":
            return marginal(score_BN, scaled_BNM, *others)[0]
        loss = distillation(score_BN, scaled_BNM, *others, from_prior=settings.retriever_loss == "replug")
        if settings.reader_is_trained:
            loss = loss + marginal(score_BN.detach(), log_prob_BNM, *others)[0]
        return loss

    def _scores(self, part: PretrainMicroBatch) -> Tensor:
        """Return f(x, z) with the current weights. A block that several queries share is embedded once."""
        distinct_C, place_BN = np.unique(np.maximum(part.rows_BN, NULL), return_inverse=True)
        packed = self.retriever.pack_blocks(self.collator, *titles_and_bodies(self.corpus, distinct_C))
        block_CD = self.retriever.embed_blocks(packed.to(self._device))
        query_BD = self.retriever.embed_queries(part.asked.packed.to(self._device))
        places = to_device(torch.from_numpy(place_BN.reshape(part.rows_BN.shape)), self._device)
        return self.retriever.score(query_BD, block_CD[places])

    @torch.no_grad()
    def _beside_null(
        self, part: PretrainMicroBatch, score_BN: Tensor, log_prob_BNM: Tensor, present_BN: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Prepend a null document of weight 0 to the candidates, as the baseline of the retrieval utility."""
        null_B1M, _ = self.reader.read(part.asked, np.full((len(part.asked.queries), 1), NULL))
        score = F.pad(score_BN.float(), (1, 0), value=torch.finfo(torch.float32).min)
        return score, torch.cat([null_B1M, log_prob_BNM], 1), F.pad(present_BN, (1, 0), value=True)

    def utility_sums(self, hidden_BM: Tensor, score_BN: Tensor, log_prob_BNM: Tensor, present_BN: Tensor) -> Sums:
        """Return {metric: (sum, count)}: the utility of retrieval, of the first block, and the null document's share."""
        utility = retrieval_utility(score_BN, log_prob_BNM, hidden_BM, present_BN)
        hidden, queries = hidden_BM.sum().double(), float(len(hidden_BM))
        sums: dict[str, tuple[Tensor, float | Tensor]] = {
            "retrieval_utility": (utility.token_gain.double() * hidden, hidden),
            "top_1_utility": (utility.top_1_B.sum(), queries),
        }
        if self.settings.null_document:
            sums["null_share"] = (utility.null_share_B.sum(), queries)
        return sums

    # Beside the steps: the index ages and is replaced.

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Switch to a fresher index if there is one, and measure how it changes the candidates.

        Before the first step it also measures whether the reader's gains single out positive blocks.

        Raises:
            QualityError: An alarm is on at which the run stops.
        """
        self.alarms.stop_if_raised(step)
        stale = self.in_use.index
        logged = self.in_use.renew(step, self.retriever)
        if self.in_use.step != self._seen:
            self._seen = self.in_use.step
            query_BD = self.vectors(self._watched)
            rows_BN = self._candidates(self._watched, query_BD)
            logged |= self.watch.changed(self._blocks_of(rows_BN))
            if stale is not self.in_use.index:
                logged |= self._change(stale, self.in_use.index, query_BD)
            logged |= self.recall_questions.recall(self.retriever, self.in_use.index) if self.recall_questions else {}
            if step == 0 and self.settings.masking == "salient" and self.settings.spans:
                logged |= self._reader_at_start(rows_BN)
        return logged

    def published(self, index: Index) -> dict[str, float]:
        """Measure the index of the final retriever as `before_step` measures a fresher one.

        Only the first process calls this. Where others train too, `_change` is left out, because they may hold parts of the index.
        """
        found = self.recall_questions.recall(self.retriever, index) if self.recall_questions else {}
        if processes.world_size() > 1:
            return found
        return found | self._change(self.in_use.index, index, self.vectors(self._watched))

    def _change(self, stale: Index, fresh: Index, query_BD: NDArray[np.float32]) -> dict[str, float]:
        """Return how far an old index was from a new one, for the watched queries and for some blocks."""
        rows = [self._blocks_of(self._candidates(self._watched, query_BD, index)) for index in (stale, fresh)]
        return {"index_overlap": overlap(*rows), "index_drift": index_drift(stale, fresh)}

    def _reader_at_start(self, rows_BN: NDArray[np.int64]) -> Mapping[str, Any]:
        """Return metrics of the watched queries' gains with these candidates, and the alarms that they raise."""
        blocks = PositiveBlocks()
        for cut in slices(len(self._watched), self.settings.at_once):
            part = PretrainMicroBatch(self._batch(self._watched[cut]), rows_BN[cut], 1.0)
            with evaluating(self.modules), autocast(self._device, self.settings.precision):
                _, comparison = self.compare(part)
            blocks.add_compared([query.targets for query in part.asked.queries], part.rows_BN, self.corpus, *comparison)
        found = blocks.at_start()
        raised = self.alarms.observe({"step": 0, **found})
        return {**found, **({"alarms": raised} if raised else {})}

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `hub_share`, and the alarms that this step raises, if any."""
        share = self.watch.hub_share()
        raised = [*line.get("alarms", ()), *self.alarms.observe({**line, **share})]
        return {**share, **({"alarms": raised} if raised else {})}

    def at_end(self, step: int) -> Mapping[str, Any]:
        """Nothing: what was trained is measured with its own index, when that is there (`published`)."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state of the index in use, of the candidate watch and of the alarms."""
        return {"index": self.in_use.state(), "watch": self.watch.state(), "alarms": self.alarms.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned: open the index that was in use at the checkpoint."""
        self.in_use.restore(state["index"])
        self._seen = self.in_use.step
        self.watch.restore(state["watch"])
        self.alarms.restore(state["alarms"])

    def _watched_queries(self) -> list[Query]:
        rng = generator(self.settings.seed, Stream.FIXED_QUERIES)
        spans = rng.choice(self.queries.count, min(WATCHED_QUERIES, self.queries.count), replace=False)
        return self._masked(spans, rng)

    def _blocks_of(self, rows_BN: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows_BN[:, int(self.settings.null_document) :]

    @property
    def _device(self) -> torch.device:
        return next(self.retriever.parameters()).device

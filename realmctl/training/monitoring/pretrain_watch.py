"""The watch over pre-training: candidates, the index and what a refresh changes, the reader at the start, and their alarms.

Nothing of it trains: without the watch the weights are the same. Its measures and alarms are explained in docs/refresh.md.
Legend: B queries, N candidates, K candidates without the null document, D projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from realmctl.artifacts import Artifact
from realmctl.execution import processes
from realmctl.execution.batches import slices
from realmctl.index.index_type import open_index
from realmctl.index.protocol import Index
from realmctl.models.evaluating import evaluating
from realmctl.models.precision import autocast, pick_device
from realmctl.questions.questions import read_questions
from realmctl.spans.query import Query
from realmctl.training import data_parallel
from realmctl.training.data.draws import Stream, generator
from realmctl.training.monitoring.alarms import Alarms, rules
from realmctl.training.monitoring.candidate_watch import WATCHED_QUERIES, CandidateWatch, index_drift, overlap
from realmctl.training.monitoring.positive_blocks import PositiveBlocks
from realmctl.training.monitoring.recall_questions import RecallQuestions
from realmctl.training.names import NEVER
from realmctl.training.objective import Observer, merged
from realmctl.training.realm import Micro, RealmObjective


class PretrainWatch(Observer):
    """Watches a run of REALM. It comes after the observer that renews the index."""

    name = "watch"

    def __init__(self, realm: RealmObjective) -> None:
        self.realm, settings = realm, realm.settings
        self.candidates = CandidateWatch()
        random_share = (realm.candidates - settings.null_document) / len(realm.corpus)
        period = None if settings.refresh == NEVER else settings.refresh_every
        self.alarms = Alarms(rules(settings.steps, period, random_share), settings.stop_on)
        self.recall_questions = (
            RecallQuestions(read_questions(settings.recall_questions), realm.corpus, realm.collator, settings.precision)
            if settings.recall_questions
            else None
        )
        self._watched = self._watched_queries()
        self._index = realm.in_use.index  # before the last renewal
        self._seen: int | None = None  # step of the index with which the watched queries were last searched

    def before_step(self, step: int) -> Mapping[str, Any]:
        """Measure how a fresher index changes the candidates, and before the first step whether the reader's gains single out positive blocks.

        Raises:
            QualityError: An alarm is on at which the run stops.
        """
        self.alarms.stop_if_raised(step)
        realm, logged = self.realm, dict[str, Any]()
        stale, self._index = self._index, realm.in_use.index
        if realm.in_use.step == self._seen:
            return {}
        self._seen = realm.in_use.step
        query_BD = realm.vectors(self._watched)
        rows_BN = realm.candidates_of(self._watched, query_BD)
        logged |= self.candidates.changed(self._blocks_of(rows_BN))
        if stale is not self._index:
            logged |= self._change(stale, self._index, query_BD)
        logged |= self.recall_questions.recall(realm.retriever, self._index) if self.recall_questions else {}
        if step == 0 and realm.settings.masking == "salient" and self._tells_answers():
            logged |= self._reader_at_start(rows_BN)
        return logged

    def after_step(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `hub_share`, and the alarms that this step raises, if any."""
        if data_parallel.anyone(bool(len(self.realm.drawn_BN))):
            self.candidates.add(np.concatenate(data_parallel.gather_rows(self._blocks_of(self.realm.drawn_BN))))
        share = self.candidates.hub_share()
        return merged(share, {"alarms": self.alarms.observe({**line, **share})})

    def published(self, made: Artifact) -> dict[str, float]:
        """Measure the index of the final retriever as `before_step` measures a fresher one. Without recall questions it measures nothing.

        Only the first process calls this. Where others train too, it does not compare the indexes, because they may hold parts of the old one.
        """
        if self.recall_questions is None:
            return {}
        device = pick_device(self.realm.settings.device)
        index = open_index(made.path, str(device))
        self.realm.retriever.to(device)  # it was published from the CPU
        found = self.recall_questions.recall(self.realm.retriever, index)
        if processes.world_size() > 1:
            return found
        return found | self._change(self.realm.in_use.index, index, self.realm.vectors(self._watched))

    def _change(self, stale: Index, fresh: Index, query_BD: NDArray[np.float32]) -> dict[str, float]:
        """Return how far an old index was from a new one, for the watched queries and for some blocks."""
        rows = [self._blocks_of(self.realm.candidates_of(self._watched, query_BD, index)) for index in (stale, fresh)]
        return {"index_overlap": overlap(*rows), "index_drift": index_drift(stale, fresh)}

    def state(self) -> dict[str, Any]:
        """Return the state of the candidate watch and of the alarms."""
        return {"candidates": self.candidates.state(), "alarms": self.alarms.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, after the index in use was restored."""
        self._index, self._seen = self.realm.in_use.index, self.realm.in_use.step
        self.candidates.restore(state["candidates"])
        self.alarms.restore(state["alarms"])

    def _tells_answers(self) -> bool:
        """Whether what is hidden are wordpieces, which blocks may contain."""
        return any(query.hidden for query in self._watched)

    def _reader_at_start(self, rows_BN: NDArray[np.int64]) -> Mapping[str, Any]:
        """Return metrics of the watched queries' gains with these candidates, and the alarms that they raise."""
        realm, blocks = self.realm, PositiveBlocks()
        for cut in slices(len(self._watched), realm.settings.at_once):
            part = Micro(realm.batch(self._watched[cut]), rows_BN[cut], 1.0)
            device = next(realm.retriever.parameters()).device
            with evaluating(realm.modules), autocast(device, realm.settings.precision):
                found = realm.beside_null(part, realm.step(part))
            targets = [query.targets for query in part.asked.queries]
            compared = found.hidden_BM, found.score_BN, found.log_prob_BNM, found.present_BN
            blocks.add_compared(targets, part.rows_BN, realm.corpus, *compared)
        measured = blocks.at_start()
        return merged(measured, {"alarms": self.alarms.observe({"step": 0, **measured})})

    def _watched_queries(self) -> list[Query]:
        rng = generator(self.realm.settings.seed, Stream.FIXED_QUERIES)
        count = self.realm.queries.count
        return self.realm.masked(rng.choice(count, min(WATCHED_QUERIES, count), replace=False), rng)

    def _blocks_of(self, rows_BN: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the candidates without the null document, int64 [B, K]."""
        return rows_BN[:, int(self.realm.settings.null_document) :]

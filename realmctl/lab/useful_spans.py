"""Spans chosen by what blocks say about them: `pretrain --objective useful-spans`.

Why it is here: p(z|x) learns from spans that some block makes likelier, and of most sentences no other block speaks. So more sentences are read than are
trained on (docs/results/wikipedia/report.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from realmctl.execution import processes
from realmctl.models.evaluating import evaluating
from realmctl.models.marginal import retrieval_utility
from realmctl.training import data_parallel
from realmctl.training.data.draws import Stream, generator
from realmctl.training.realm import Micro, RealmObjective

OFFERS = {"realmctl.objectives": {"useful-spans": "realmctl.lab.useful_spans:UsefulSpans"}}
POOL = 2
"""Batches that are read for each one that is trained on."""


class UsefulSpans(RealmObjective):
    """REALM's loss (equation 1) of the sentences whose best block helps the reader most, of `POOL` times as many.

    A block helps by log p(y|z,x) - log p(y|null,x), its retrieval utility (section 4.5), here in nats a hidden wordpiece. It is computed with the weights in
    training, without gradients. Several processes choose together, so one may have more of the batch than another.
    """

    def draw(self, step: int) -> Sequence[Micro]:
        """This process's chosen queries of a step, with their candidates."""
        rng = generator(self.settings.seed, Stream.QUERY_MASKS, step)
        spans = [self.order.batch(POOL * step + number) for number in range(POOL)]
        if self.masking.draws:  # the others' queries are drawn too
            drawn = [query for batch in spans for query in self.masked(batch, rng)[self.own]]
        else:
            drawn = self.masked(np.concatenate([batch[self.own] for batch in spans]), rng)
        parts = self._searched(drawn)
        if not data_parallel.anyone(bool(parts)):
            return []
        helped = data_parallel.gather_rows(np.concatenate([np.empty(0), *map(self.helped, parts)]))
        of_all, first = np.concatenate(helped), sum(map(len, helped[: processes.rank()]))
        best = np.argsort(-of_all, kind="stable")[: -(-len(of_all) // POOL)] - first
        kept = np.sort(best[(best >= 0) & (best < len(helped[processes.rank()]))])
        queries = [query for part in parts for query in part.asked.queries]
        rows_BN = np.concatenate([self.drawn_BN[:0], *(part.rows_BN for part in parts)])
        return self.micros([queries[place] for place in kept], rows_BN[kept])

    def helped(self, part: Micro) -> NDArray[np.float64]:
        """What the best block adds to the likelihood of each query's hidden wordpieces, in nats a wordpiece, float64 [B]."""
        with evaluating(self.modules), torch.no_grad():
            found = self.beside_null(part, self.step(part))
        utility = retrieval_utility(found.score_BN, found.log_prob_BNM, found.hidden_BM, found.present_BN)
        gain_BN = utility.document_BN[:, 1:].masked_fill(~found.present_BN[:, 1:], -torch.inf)
        best_B = gain_BN.amax(1) / found.hidden_BM.sum(1)
        return best_B.double().cpu().numpy()

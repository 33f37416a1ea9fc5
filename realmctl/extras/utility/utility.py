"""Retrieval utility: the gain from retrieval on sentences that were not trained on (REALM, section 4.5).

Besides the retrieved candidates it reads three blocks whose worth is known beforehand: the sentence's own block, another
block that tells what is hidden, and a random block. They show what the reader can do, whatever the retriever brings.
Legend: B queries, N candidates, M masks, K kinds of blocks.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.execution.batches import batched
from realmctl.extras.utility.settings import UtilitySettings
from realmctl.log import progress
from realmctl.models.precision import autocast, pick_device
from realmctl.models.retriever import Retriever
from realmctl.models.weights import require_finite_scores
from realmctl.retrieval.search.candidates import ABSENT, candidates, in_index
from realmctl.training.data.draws import Stream, generator
from realmctl.training.monitoring.positive_blocks import PositiveBlocks, positives
from realmctl.training.objective import Sums
from realmctl.training.realm import Micro, RealmObjective
from realmctl.training.refresh.index_in_use import IndexInUse

KINDS = ("own", "told", "random")
"""own: the block that the sentence comes from, if it is in the corpus. told: of the `SEARCHED` blocks that the retriever scores
highest, the first other block that contains the hidden wordpieces. random: any other block."""
SEARCHED = 20


def eval_utility(settings: UtilitySettings) -> dict[str, object]:
    """Measure the utility of a model, or of its parts. Returns what `measure_utility` returns."""
    asked = settings.pretraining()
    in_use = IndexInUse(asked.index, str(pick_device(settings.device)))
    objective = RealmObjective(asked, Retriever.load(asked.retriever.path), in_use)
    return measure_utility(objective, settings.queries)


@torch.no_grad()
def measure_utility(objective: RealmObjective, most: int = 0) -> dict[str, object]:
    """Hide every salient span once and fill it with the objective's candidates, in the objective's precision.

    The objective must have a null document. `most` above 0 measures a random sample of that many spans.

    Returns:
        Means: `log_prob`, log p(y_m|x) of a hidden wordpiece in nats; `retrieval_utility`, the mean of log p(y_m|x) -
        log p(y_m|null,x) over hidden wordpieces; `top_1_utility`, the mean over queries of log p(y|z,x) - log p(y|null,x) for
        the best-scored block z; `null_share`, p(null|x); `own_utility`, `told_utility`, `random_utility`, the means of
        log p(y_m|z,x) - log p(y_m|null,x) over hidden wordpieces where z is a block of that kind (`KINDS`). Counts: `queries`,
        hidden `wordpieces`, and `told_queries`, the queries that have a told block. Also the values of
        `PositiveBlocks.measured`, which show whether the reader's gains identify the blocks that contain the answer.
    """
    where, batch_size = pick_device(objective.settings.device), objective.settings.batch_size
    objective.modules.to(where).eval()
    chosen = np.arange(objective.queries.count)
    rng = generator(objective.settings.seed, Stream.FIXED_QUERIES)
    if 0 < most < len(chosen):
        chosen = np.sort(rng.permutation(len(chosen))[:most])
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    blocks, told = PositiveBlocks(), 0
    with progress(len(chosen), "eval-utility", "queries") as bar:
        for spans in batched(chosen, batch_size):
            for part in objective.parts(spans, rng):
                with autocast(where, objective.settings.precision):
                    found = objective.step(part)
                    require_finite_scores(found.loss, f"the reader {objective.reader}")
                    worth = objective.utility_sums(found)
                targets = [query.targets for query in part.asked.queries]
                compared = found.hidden_BM, found.score_BN, found.log_prob_BNM, found.present_BN
                blocks.add_compared(targets, part.rows_BN, objective.corpus, *compared)
                rows_BK = _rows_by_kind(objective, part, rng)
                told += int((rows_BK[:, KINDS.index("told")] != ABSENT).sum())
                hidden = float(found.hidden_BM.sum())
                likelihood = {"log_prob": (-float(found.loss) * part.normaliser, hidden)}
                for each in (worth, likelihood, _by_kind(objective, part, rows_BK, found.log_prob_BNM[:, :1])):
                    _add_sums(sums, each)
            bar.advance(len(spans))
    _add_sums(sums, objective.reader.sums())
    means = {name: total / number for name, (total, number) in sums.items() if number}
    counts = {"queries": len(chosen), "wordpieces": int(sums["log_prob"][1]), "told_queries": told}
    return {**counts, **means, **blocks.measured()}


def _add_sums(sums: dict[str, list[float]], more: Sums) -> None:
    for name, (total, number) in more.items():
        sums[name][0] += float(total)
        sums[name][1] += float(number)


def _rows_by_kind(objective: RealmObjective, part: Micro, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a block of each of `KINDS` for each query, int64 [B, 3]; -2 where there is none."""
    corpus, uid_B = objective.corpus, objective.own_uid(part.asked.queries)
    query_BD = objective.vectors(part.asked.queries)
    searched_BN = candidates(
        in_index(objective.in_use.index, query_BD),
        len(query_BD),
        list(uid_B[:, None]),
        corpus.uid,
        SEARCHED,
        null=False,
    )
    positive_BN = positives([query.targets for query in part.asked.queries], searched_BN, corpus)
    rows_BK = np.full((len(uid_B), len(KINDS)), ABSENT, dtype=np.int64)
    for query, uid in enumerate(uid_B):
        own, other = np.flatnonzero(corpus.uid == uid), np.flatnonzero(corpus.uid != uid)
        if len(own):
            rows_BK[query, 0] = own[0]
        if positive_BN[query].any():
            rows_BK[query, 1] = searched_BN[query, positive_BN[query].argmax()]
        if len(other):
            rows_BK[query, 2] = rng.choice(other)
    return rows_BK


def _by_kind(
    objective: RealmObjective, part: Micro, rows_BK: NDArray[np.int64], null_B1M: Tensor
) -> dict[str, tuple[float, float]]:
    """Return {kind's utility: (sum over hidden wordpieces, their number)}."""
    with autocast(null_B1M.device, objective.settings.precision):
        log_prob_BKM, hidden_BM = objective.reader.read(part.asked, rows_BK)
    gain_BKM = (log_prob_BKM.float() - null_B1M.float()).cpu()
    counted_BKM = hidden_BM.cpu()[:, None, :] & torch.from_numpy(rows_BK != ABSENT)[:, :, None]
    return {
        f"{kind}_utility": (float(gain_BKM[:, k][counted_BKM[:, k]].sum()), float(counted_BKM[:, k].sum()))
        for k, kind in enumerate(KINDS)
    }

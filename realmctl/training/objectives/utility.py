"""Retrieval utility: the gain from retrieval on sentences that were not trained on (REALM, section 4.5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from realmctl.log import progress
from realmctl.nn.marginal import retrieval_utility
from realmctl.nn.precision import autocast, pick_device
from realmctl.retrieval.corpus import Corpus
from realmctl.training.monitoring.telling_blocks import TellingBlocks
from realmctl.training.objectives.masking import MaskedQuery
from realmctl.training.objectives.mlm import occurrences
from realmctl.training.objectives.pretrain import PretrainMicroBatch, PretrainObjective
from realmctl.training.random_streams import Stream, generator


@torch.no_grad()
def measure_utility(objective: PretrainObjective, device: str, batch_size: int) -> dict[str, Any]:
    """Hide every salient span once and fill it with the objective's candidates, in the objective's precision.

    The objective must have a null document.

    Returns:
        Means: `log_prob`, log p(y_m|x) of a hidden wordpiece in nats; `retrieval_utility`, the mean of log p(y_m|x) -
        log p(y_m|null,x) over hidden wordpieces; `top_1_utility`, the mean over queries of log p(y|z,x) - log p(y|null,x) for
        the best-scored block z; `null_share`, p(null|x). Counts: `queries` and hidden `wordpieces`. Also the values of
        `TellingBlocks.measured`, which show whether the reader's gains identify the blocks that contain the answer.
    """
    where = pick_device(device)
    objective.modules.to(where).eval()
    count, rng = len(objective.queries.spans), generator(objective.options.seed, Stream.FIXED_QUERIES)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    blocks = TellingBlocks()
    with progress(count, "eval-utility", "queries") as bar:
        for start in range(0, count, batch_size):
            spans = np.arange(start, min(start + batch_size, count))
            for part in objective.parts(spans, rng):
                with autocast(where, objective.options.precision):
                    loss, comparison = objective.compare(part)
                    worth = objective.utility_sums(*comparison)
                _add(blocks, objective, part, *comparison)
                hidden = float(part.mask_BM.sum())
                for name, (total, number) in {**worth, "log_prob": (-float(loss) * part.normaliser, hidden)}.items():
                    sums[name][0] += total
                    sums[name][1] += number
            bar.advance(len(spans))
    means = {name: total / max(number, 1.0) for name, (total, number) in sums.items()}
    return {"queries": count, "wordpieces": int(sums["log_prob"][1]), **means, **blocks.measured()}


def _add(
    blocks: TellingBlocks, objective: PretrainObjective, part: PretrainMicroBatch,
    mask_BM: Tensor, score_BN: Tensor, log_prob_BNM: Tensor, present_BN: Tensor,
) -> None:  # fmt: skip
    gain_BN = retrieval_utility(score_BN, log_prob_BNM, mask_BM, present_BN).document_BN
    rows_BN = part.rows_BN[:, 1:]
    tells_BN = telling(part.queries, rows_BN, objective.corpus)
    blocks.add(gain_BN[:, 1:].float().cpu().numpy(), score_BN[:, 1:].float().cpu().numpy(), tells_BN, rows_BN >= 0)


def telling(queries: Sequence[MaskedQuery], rows_BN: NDArray[np.int64], corpus: Corpus) -> NDArray[np.bool_]:
    """Return which candidates hold the hidden wordpieces of their query side by side, bool [B, N]; False at rows below 0."""
    tells_BN = np.zeros(rows_BN.shape, dtype=bool)
    for place, row in np.ndenumerate(rows_BN):
        if row >= 0:
            body = np.asarray(corpus.tokens(int(row)), dtype=np.int64)
            tells_BN[place] = len(occurrences(body, queries[place[0]].targets)) > 0
    return tells_BN

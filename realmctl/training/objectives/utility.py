"""Retrieval utility: what retrieval is worth on sentences that were not trained on (REALM, section 4.5)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import torch

from realmctl.log import progress
from realmctl.nn.precision import autocast, pick_device
from realmctl.training.objectives.pretrain import PretrainObjective
from realmctl.training.random_streams import Stream, generator


@torch.no_grad()
def measure_utility(objective: PretrainObjective, device: str, batch_size: int) -> dict[str, Any]:
    """Hide every salient span once and fill it with the objective's candidates, in the objective's precision.

    Returns:
        Means: `log_prob`, log p(y_m|x) of a hidden wordpiece in nats; `retrieval_utility`, log p(y_m|x) - log p(y_m|null,x);
        `top_1_utility`, log p(y|z,x) - log p(y|null,x) of the best-scored block of a query; `null_share`, p(null|x).
        Counts: `queries` and hidden `wordpieces`.
    """
    where = pick_device(device)
    objective.modules.to(where).eval()
    count, rng = len(objective.queries.spans), generator(objective.options.seed, Stream.FIXED_QUERIES)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with progress(count, "eval-utility", "queries") as bar:
        for start in range(0, count, batch_size):
            spans = np.arange(start, min(start + batch_size, count))
            for part in objective.parts(spans, rng):
                with autocast(where, objective.options.precision):
                    loss, worth = objective.loss(part)
                hidden = float(part.mask_BM.sum())
                for name, (total, number) in {**worth, "log_prob": (-float(loss) * part.normaliser, hidden)}.items():
                    sums[name][0] += total
                    sums[name][1] += number
            bar.advance(len(spans))
    means = {name: total / max(number, 1.0) for name, (total, number) in sums.items()}
    return {"queries": count, "wordpieces": int(sums["log_prob"][1]), **means}

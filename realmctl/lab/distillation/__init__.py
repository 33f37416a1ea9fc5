"""The reader teaches the retriever: distillation (Atlas, Izacard et al. 2022) and REPLUG (Shi et al. 2023) in place of REALM's loss.

Why it is here: it trains a retriever for a reader that stays frozen. REALM's own loss was ahead of it wherever both ran (docs/results/starts.md).
"""

OFFERS = {
    "realmctl.retriever_losses": {
        "distill": "realmctl.lab.distillation.losses:Distillation",
        "replug": "realmctl.lab.distillation.losses:Replug",
    },
    "realmctl.options.pretrain": {
        "distillation": "realmctl.lab.distillation.options:DistillationOptions",
    },
}

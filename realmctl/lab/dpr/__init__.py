"""Labelled passages: contrast on them, and hard negatives (DPR, Karpukhin et al. 2020).

Why it is here: it is what people do who have labels, and what a start without labels is compared with (docs/results/adapt.md).
"""

OFFERS = {
    "realmctl.stages": {
        "dpr-finetune": "realmctl.lab.dpr.dpr_finetune:DprFinetune",
        "mine-negatives": "realmctl.lab.dpr.mine_negatives:MineNegatives",
    },
}

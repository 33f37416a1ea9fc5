"""Labelled passages: contrast on them, and hard negatives (DPR, Karpukhin et al. 2020)."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "dpr-finetune": "realmctl.lab.dpr.dpr_finetune:DprFinetune",
        "mine-negatives": "realmctl.lab.dpr.mine_negatives:MineNegatives",
    },
}

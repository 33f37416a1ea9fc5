"""Late interaction (ColBERT, Khattab and Zaharia 2020): a vector for each token, and MaxSim of a query's vectors with a block's.

Why it is here: published multi-vector encoders rank well without training, and nobody has REALM's gradient through MaxSim (docs/lab/late-interaction.md).
"""

OFFERS = {
    "realmctl.stages": {
        "late-embed": "realmctl.lab.late_interaction.late_embed:LateEmbed",
        "late-finetune": "realmctl.lab.late_interaction.late_finetune:LateFinetune",
        "late-rank": "realmctl.lab.late_interaction.late_rank:LateRank",
    },
}

"""Cross-encoders are trained here, so that a teacher need not come from the hub.

Why it is here: `--rerank` and `dpr-finetune --loss` need a model that reads question and passage together, and published ones are of other texts.
"""

OFFERS = {
    "realmctl.stages": {
        "rerank-finetune": "realmctl.lab.cross_encoders.rerank_finetune:RerankFinetune",
    },
}

"""Language models that write and read text: readers, baselines, and writers of queries."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "lm-init": "realmctl.lab.language_models.lm_init:LmInit",
        "lm-finetune": "realmctl.lab.language_models.lm_finetune:LmFinetune",
        "generate-queries": "realmctl.lab.language_models.generate_queries:GenerateQueries",
    },
    "realmctl.answerers": {
        "generative": "realmctl.lab.language_models.generative:GenerativeAnswerer",
    },
}

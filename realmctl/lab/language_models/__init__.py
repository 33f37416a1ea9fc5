"""Language models that write and read text: readers of pre-training, baselines that answer, and writers of queries.

Why it is here: with a small causal reader the retriever learned most (docs/results/starts.md), and a closed book is the baseline that REALM
compares with.
"""

OFFERS = {
    "realmctl.stages": {
        "lm-init": "realmctl.lab.language_models.lm_init:LmInit",
        "lm-finetune": "realmctl.lab.language_models.lm_finetune:LmFinetune",
        "generate-queries": "realmctl.lab.language_models.generate_queries:GenerateQueries",
        "revela-init": "realmctl.lab.language_models.revela.revela_init:RevelaInit",
    },
    "realmctl.answerers": {
        "generative": "realmctl.lab.language_models.generative:GenerativeAnswerer",
    },
    "realmctl.readers": {
        "language-model": "realmctl.lab.language_models.pretrain_reader:LanguageModelReader",
    },
    "realmctl.options.pretrain": {
        "language-models": "realmctl.lab.language_models.options:PretrainLmOptions",
    },
    "realmctl.options.eval-utility": {
        "language-models": "realmctl.lab.language_models.options:UtilityLmOptions",
    },
    "realmctl.options.adapt": {
        "language-models": "realmctl.lab.language_models.options:AdaptLmOptions",
    },
    "realmctl.options.ask": {
        "language-models": "realmctl.lab.language_models.options:AskLmOptions",
    },
    "realmctl.options.eval-em": {
        "language-models": "realmctl.lab.language_models.options:EvalLmOptions",
    },
}

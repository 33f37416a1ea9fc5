"""Language models that write and read text: readers of pre-training, baselines that answer, and writers of queries.

Why it is here: with a small causal reader the retriever learned most (docs/results/readers.md), and a closed book is the baseline that REALM
compares with.
"""

HERE = "realmctl.lab.language_models."
OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "lm-init": HERE + "lm_init:LmInit",
        "lm-finetune": HERE + "lm_finetune:LmFinetune",
        "generate-queries": HERE + "generate_queries:GenerateQueries",
    },
    "realmctl.commands": {"lm-ask": HERE + "lm_ask_command:lm_ask"},
    "realmctl.answerers": {"generative": HERE + "generative:GenerativeAnswerer"},
    "realmctl.readers": {"language-model": HERE + "pretrain_reader:LanguageModelReader"},
    "realmctl.options.pretrain": {"language-models": HERE + "options:PretrainLmOptions"},
    "realmctl.options.eval-utility": {"language-models": HERE + "options:UtilityLmOptions"},
    "realmctl.options.eval-em": {"language-models": HERE + "options:EvalLmOptions"},
}

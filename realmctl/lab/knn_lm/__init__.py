"""The kNN-LM (Khandelwal et al. 2020) over tagged sentences.

Why it is here: it is the other way to give a language model a memory, and a baseline of REALM's masks (docs/how-to/baselines.md).
"""

OFFERS = {
    "realmctl.stages": {
        "build-datastore": "realmctl.lab.knn_lm.build_datastore:BuildDatastore",
        "eval-knn-lm": "realmctl.lab.knn_lm.eval_knn_lm:EvalKnnLm",
    },
}

"""The kNN-LM (Khandelwal et al. 2020) over tagged sentences, as a baseline."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.stages": {
        "build-datastore": "realmctl.lab.knn_lm.build_datastore:BuildDatastore",
        "eval-knn-lm": "realmctl.lab.knn_lm.eval_knn_lm:EvalKnnLm",
    },
}

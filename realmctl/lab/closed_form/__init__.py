"""Starts without steps: a masked-language-model head by ridge regression, and a projection by principal components.

Why it is here: a sentence encoder has neither, and on real text a projection by PCA was the best start of all (docs/results/starts.md).
"""

OFFERS = {
    "realmctl.heads": {
        "ridge": "realmctl.lab.closed_form.closed_form:RidgeHead",
    },
    "realmctl.projections": {
        "pca": "realmctl.lab.closed_form.closed_form:Pca",
    },
}

"""`realmctl eval-utility`: the gain from retrieval on sentences that no training saw (REALM, section 4.5)."""

OFFERS = {
    "realmctl.stages": {
        "eval-utility": "realmctl.extras.utility.eval_utility:EvalUtility",
    },
    "realmctl.groups": {
        "eval-utility": "Pre-training",
    },
}

"""Scores beside those of other runs, query by query, and floors: `--baseline` and `--floor` of what measures, for CI."""

OFFERS = {
    "realmctl.options.eval-run": {"comparison": "realmctl.extras.comparison.options:ComparedStage"},
    "realmctl.options.eval-em": {"comparison": "realmctl.extras.comparison.options:ComparedStage"},
    "realmctl.options.eval-cloze": {"comparison": "realmctl.extras.comparison.options:ComparedStage"},
    "realmctl.options.eval-beir": {"comparison": "realmctl.extras.comparison.options:ComparedCommand"},
}

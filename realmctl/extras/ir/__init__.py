"""Rankings of test collections: queries, judgements, runs and measures."""

OFFERS = {
    "realmctl.stages": {
        "rank": "realmctl.extras.ir.rank:Rank",
        "rerank": "realmctl.extras.ir.rerank:Rerank",
        "eval-run": "realmctl.extras.ir.eval_run:EvalRun",
        "collect": "realmctl.extras.ir.collect:Collect",
    },
    "realmctl.commands": {
        "eval-beir": "realmctl.extras.ir.eval_beir_command:EvalBeir",
    },
}

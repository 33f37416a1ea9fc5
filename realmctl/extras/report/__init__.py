"""`realmctl report`: one HTML page of a run."""

OFFERS = {
    "realmctl.commands": {
        "report": "realmctl.extras.report.command:Report",
    },
}

"""`realmctl report`: one HTML page of a run."""

OFFERS: dict[str, dict[str, str]] = {
    "realmctl.commands": {
        "report": "realmctl.extras.report.command:report",
    },
}
